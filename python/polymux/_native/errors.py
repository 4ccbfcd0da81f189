"""Converts errors of the native modules to exceptions. The native modules call it."""

from polymux import errors
from polymux._util.redaction import redact
from polymux._util.text import printable
from polymux.errors import (
    APIError,
    DecodeError,
    InternalError,
    InvalidRequestError,
    PolymuxError,
    Problem,
    RequestTimeoutError,
    StreamInterruptedError,
    TransportError,
    URLRefusedError,
)

#: The core cuts messages at 1000 bytes, perhaps within a key. This limit is well below that.
_MAX_MESSAGE_CHARACTERS = 600
_OF_CODE: dict[str, type[PolymuxError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, PolymuxError)
}


def from_native(
    code: str,
    message: str,
    input_name: str | None,
    position_s: float | None,
    ffmpeg_code: int | None,
    ffmpeg_text: str | None,
    os_errno: int | None,
    stage: str,
) -> PolymuxError:
    """Return the exception for an error of the native core; `code` is a name of its `ErrorCode`.

    A code without an exception class (`callback_failed` if the callback's exception was lost)
    becomes an `InternalError` with this code.
    """
    error = _OF_CODE.get(code, InternalError)(
        message,
        code=code,
        input_name=input_name or "",
        position_s=position_s,
        ffmpeg_code=ffmpeg_code,
        ffmpeg_text=ffmpeg_text or "",
        errno=os_errno,
    )
    if isinstance(error, TransportError):
        error.stage = stage
    elif isinstance(error, (RequestTimeoutError, URLRefusedError)):
        error.limit = stage
    return error


def stream_ended(
    state: str,
    message: str,
    text: str,
    chunks: int,
    offset_bytes: int,
    error_type: str,
    error_code: str,
    error_param: str,
    *,
    repeatable: bool,
) -> PolymuxError:
    """Return the exception for a stream that failed; `state` is the core's name of the state.

    `repeatable`: whether the client or the server has declared that a retry is safe.
    """
    error: APIError | StreamInterruptedError | DecodeError
    message = redact(message)
    if len(message) > _MAX_MESSAGE_CHARACTERS:
        message = f"{message[:_MAX_MESSAGE_CHARACTERS]}..."
    if state == "failed":
        error = APIError(printable(message), code=printable(redact(error_code)) or None)
        error.type = printable(redact(error_type)) or None
        error.param = printable(redact(error_param)) or None
    elif state == "interrupted":
        error = StreamInterruptedError(message)
        error.retry_safe = repeatable and chunks == 0
    else:
        error = DecodeError(f"{message} (at byte {offset_bytes} of the response)")
    error.text = text
    error.chunks = chunks
    error.offset_bytes = offset_bytes
    return error


def stream_failed(error: PolymuxError, text: str, chunks: int) -> PolymuxError:
    """Add the received text to the exception of a failed stream."""
    if isinstance(error, (RequestTimeoutError, DecodeError)):
        error.text = text
        error.chunks = chunks
    return error


def invalid_request(message: str, problems: list[tuple[str, str]]) -> InvalidRequestError:
    """Return the exception for an invalid request."""
    error = InvalidRequestError(printable(message))
    error.problems = tuple(Problem(*map(printable, problem)) for problem in problems)
    return error
