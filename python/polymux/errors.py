"""The exceptions of polymux.

::

    PolymuxError
    ├── InvalidRequestError (ValueError)          an option or argument is invalid
    │   └── UnsupportedEncodingError              unsupported Content-Type of a body
    ├── MediaError                                the content of the input is invalid
    │   ├── UnsupportedMediaError                 container or codec not supported
    │   ├── UndecodableError                      damaged, or nothing can be decoded
    │   ├── NoAudioError                          no audio stream, or not the requested one
    │   ├── EncryptedMediaError                   protected by DRM or encryption
    │   ├── LimitExceededError                    a limit of `Limits` was exceeded
    │   └── EncoderError                          the MP3 encoder failed
    ├── InputError (OSError)                      the input cannot be read
    │   ├── InputNotFoundError (FileNotFoundError)
    │   ├── InputUnreadableError                  directory, pipe, permission denied, read error
    │   └── InputChangedError                     changed while it was sent
    ├── OutputError (OSError)                     the output cannot be written
    │   ├── OutputExistsError (FileExistsError)   already exists
    │   ├── OutputRefusedError                    a symlink, directory, device, or the input itself
    │   └── OutputFailedError                     disk full, permission denied, write error
    ├── URLRefusedError (ValueError)              a URL that must not be fetched
    ├── TransportError (ConnectionError)          communication failed, at `stage`
    │   ├── ConnectError                          connection failed: name, address or proxy
    │   │   └── TLSError                          certificate not trusted, or no common TLS version
    │   └── ConnectionLostError                   connection lost before the response was complete
    ├── RequestTimeoutError (TimeoutError)        timed out; `limit` names the timeout
    ├── AnswerTooLargeError                       a response is too large
    ├── StreamInterruptedError (ConnectionError)  a streamed answer ended early
    ├── DecodeError (ValueError)                  a response is invalid
    ├── APIError                                  the server reported a failure
    │   └── APIStatusError                        by HTTP status; `request_id`, `body`
    │       ├── BadRequestError                   400
    │       ├── AuthenticationError               401
    │       ├── PermissionDeniedError             403
    │       ├── NotFoundError                     404
    │       ├── ConflictError                     409
    │       ├── RequestTooLargeError              413
    │       ├── UnprocessableEntityError          422
    │       ├── RateLimitError                    429
    │       └── InternalServerError               500 and above
    │           ├── NoBackendError                501
    │           └── OverloadedError               503
    ├── PredictionFailedError                     a job failed or was canceled
    ├── SongIndexError                            the song index cannot be read or written
    ├── NoMatchError                              no song matches
    ├── OperationCancelledError                   the operation was canceled
    ├── OutOfMemoryError (MemoryError)            an allocation failed
    ├── MissingDependencyError (ImportError)      a dependency is missing
    └── InternalError                             a bug in polymux

An exception of the caller's own file object or callback is raised unchanged and is not in this
tree.

Example:
    >>> import polymux
    >>> try:
    ...     polymux.convert_to_mp3("missing.wav")
    ... except polymux.InputNotFoundError as error:
    ...     print(error.code, error.input_name)
    input_not_found missing.wav
"""

from __future__ import annotations

import os

from polymux._util.redaction import redact
from polymux._util.text import printable, shortened

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from typing import Any, Self

_TELLING_CHARACTERS = 40


class PolymuxError(Exception):
    """Base class of all exceptions that polymux raises deliberately.

    They can be pickled and copied with all attributes.

    Args:
        message: The problem and how to fix it.
        code: Stable lower-case name of the failure. Default: that of the class.
        input_name: Display name of the input, at most 200 characters; may be empty.
        position_s: Position in the media in seconds, if known.
        ffmpeg_code: FFmpeg's error number (negative), if FFmpeg failed.
        ffmpeg_text: FFmpeg's error message.
        errno: The operating system's error number, if a system call failed.
    """

    code: str = "error"
    input_name: str
    position_s: float | None
    ffmpeg_code: int | None
    ffmpeg_text: str
    errno: int | None

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        input_name: str = "",
        position_s: float | None = None,
        ffmpeg_code: int | None = None,
        ffmpeg_text: str = "",
        errno: int | None = None,
    ) -> None:
        message = redact(message)
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.input_name = shortened(printable(input_name))
        self.position_s = position_s
        self.ffmpeg_code = ffmpeg_code
        self.ffmpeg_text = ffmpeg_text
        self.errno = errno

    def __str__(self) -> str:
        """Return the message with the input's name, and FFmpeg's message if it adds something."""
        text = self.message
        # The core may have shortened a long name differently, but its end is always included.
        if self.input_name and self.input_name[-_TELLING_CHARACTERS:] not in text:
            text = f"{self.input_name}: {text}"
        if self.ffmpeg_text and self.ffmpeg_text not in text:
            text = f"{text.rstrip('.')} (FFmpeg: {self.ffmpeg_text})"
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by keyword, because `OSError` pickles only positional arguments."""
        details = {"code": self.code, **self._details()}
        return _restored, (type(self), self.message, details), dict(self.__dict__)

    def _details(self) -> dict[str, Any]:
        names = ("input_name", "position_s", "ffmpeg_code", "ffmpeg_text", "errno")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON-compatible values.

        Returns:
            ``type``, ``code``, ``message`` and the attributes that are set.

        Example:
            >>> import polymux
            >>> polymux.NoAudioError("no sound", input_name="a.mkv").to_dict()["code"]
            'no_audio'
        """
        plain = {"type": type(self).__name__, "code": self.code, "message": str(self)}
        details = self._details().items()
        return plain | {key: value for key, value in details if value not in (None, "")}


def _restored(kind: type[PolymuxError], message: str, details: dict[str, Any]) -> PolymuxError:
    return kind(message, **details)


class Problem(tuple[str, str]):
    """One problem of a request, as a tuple of its attributes.

    Attributes:
        field: Path of the field, such as ``messages[0].role``; empty for the request as a whole.
        message: Field, value and rule: ``width=100: must be from 256 to 1280 px``.
    """

    __slots__ = ()

    def __new__(cls, field: str, message: str) -> Self:
        """Create a problem from its attributes."""
        return tuple.__new__(cls, (field, message))

    @property
    def field(self) -> str:
        """Path of the field."""
        return self[0]

    @property
    def message(self) -> str:
        """Field, value and rule."""
        return self[1]

    def __repr__(self) -> str:
        return f"Problem(field={self.field!r}, message={self.message!r})"

    def __getnewargs__(self) -> tuple[str, str]:
        return self.field, self.message


class InvalidRequestError(PolymuxError, ValueError):
    """An option or argument is invalid; the message names it.

    Attributes:
        problems: Problems of an invalid request, at most 20; empty for other errors.
    """

    code = "invalid_argument"
    problems: tuple[Problem, ...] = ()


class UnsupportedEncodingError(InvalidRequestError):
    """The Content-Type of a received body is not supported."""

    code = "unsupported_encoding"


class OperationCancelledError(PolymuxError):
    """The operation was canceled. No partial output is left."""

    code = "cancelled"


class OutOfMemoryError(PolymuxError, MemoryError):
    """An allocation failed."""

    code = "out_of_memory"


class MissingDependencyError(PolymuxError, ImportError):
    """A dependency is missing; the message names what to install."""

    code = "missing_dependency"


class InternalError(PolymuxError):
    """A bug in polymux. Please report it with the message."""

    code = "internal"


class _FileError(PolymuxError, OSError):
    """Sets the attributes of `OSError`."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.filename = self.input_name or None
        self.strerror = os.strerror(self.errno) if self.errno is not None else message


class InputError(_FileError):
    """The input cannot be read. Base class."""

    code = "input_error"


class InputNotFoundError(InputError, FileNotFoundError):
    """The input path does not exist."""

    code = "input_not_found"


class InputUnreadableError(InputError):
    """The input is a directory, pipe or device, permission is denied, or a read failed."""

    code = "input_unreadable"


class InputChangedError(InputError):
    """The input changed while it was sent; it was not sent completely."""

    code = "input_changed"


class OutputError(_FileError):
    """The output cannot be written. Base class."""

    code = "output_error"


class OutputExistsError(OutputError, FileExistsError):
    """The output already exists and overwriting was not allowed."""

    code = "output_exists"


class OutputRefusedError(OutputError):
    """The output is a symlink, a directory, a device, or the input itself."""

    code = "output_refused"


class OutputFailedError(OutputError):
    """Writing failed: disk full, permission denied, or an I/O error."""

    code = "output_failed"


class MediaError(PolymuxError):
    """The content of the input is invalid. Base class."""

    code = "media_error"


class UnsupportedMediaError(MediaError):
    """The container or codec is not supported."""

    code = "unsupported_media"


class UndecodableError(MediaError):
    """The media is damaged, or nothing in it can be decoded."""

    code = "undecodable"


class NoAudioError(MediaError):
    """The media has no audio stream, or not the requested one."""

    code = "no_audio"


class EncryptedMediaError(MediaError):
    """The media is protected by DRM or encryption."""

    code = "encrypted"


class LimitExceededError(MediaError):
    """A limit of `polymux.Limits` was exceeded; the message has both numbers."""

    code = "limit_exceeded"


class EncoderError(MediaError):
    """The MP3 encoder rejected the settings or failed."""

    code = "encoder_failed"


class URLRefusedError(PolymuxError, ValueError):
    """A URL that must not be fetched because of its syntax, scheme, port or addresses.

    The message never contains the IP address of a host name.

    Attributes:
        limit: ``"redirects"`` if there were too many redirects; else empty.
    """

    code = "url_refused"
    limit: str = ""


class _SystemError(PolymuxError, OSError):
    """Sets the attributes of `OSError`."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.strerror = message


class TransportError(_SystemError, ConnectionError):
    """Communication with a server failed. Base class.

    Attributes:
        stage: Stage of the failure: ``"resolve"``, ``"connect"``, ``"proxy"``, ``"tls"``,
            ``"send"`` or ``"receive"``.
        retry_reasons: For each time that the request was sent again: why, and after which delay.
    """

    code = "transport_failed"
    stage: str = ""
    retry_reasons: tuple[str, ...] = ()


class ConnectError(TransportError):
    """The connection to the server failed; no part of the request was sent."""

    code = "connect_failed"


class TLSError(ConnectError):
    """The server's certificate is not trusted, or the TLS handshake failed."""

    code = "tls_failed"


class ConnectionLostError(TransportError):
    """The connection was lost before the response was complete; the work may be done."""

    code = "connection_lost"


class AnswerTooLargeError(PolymuxError):
    """A response is too large; the message names the limit."""

    code = "answer_too_large"


class _AnswerError(PolymuxError):
    """The received part of a failed response.

    Attributes:
        text: Text of the first choice so far; may be empty.
        chunks: Number of chunks delivered before.
        offset_bytes: Position of the failure in the response, in bytes; None if unknown.
    """

    text: str = ""
    chunks: int = 0
    offset_bytes: int | None = None


class StreamInterruptedError(_AnswerError, _SystemError, ConnectionError):
    """A streamed answer ended without a finish reason and without the end-of-stream event.

    Attributes:
        text: Text of the first choice so far; may be empty.
        chunks: Number of chunks delivered before.
        offset_bytes: Position of the failure in the response, in bytes.
        retry_safe: Whether a retry is known to be safe: no chunk was delivered, and either
            `Retry(repeatable=True)` was set or the server is a polymux server. The latter stops a
            chat whose client disconnects, so at most some work is done twice. Always True for a
            job's events, which are only read.
    """

    code = "stream_interrupted"
    retry_safe: bool = False


class RequestTimeoutError(_AnswerError, _SystemError, TimeoutError):
    """A request timed out.

    Attributes:
        limit: Name of the timeout: ``"connect"``, ``"write"``, ``"first_byte"``, ``"idle"``,
            ``"event"``, ``"rate"`` or ``"total"``.
        retry_reasons: For each time that the request was sent again: why, and after which delay.
        text: Text of a chat stream so far; may be empty.
        chunks: Number of chunks delivered before.
        offset_bytes: None.
    """

    code = "timed_out"
    limit: str = ""
    retry_reasons: tuple[str, ...] = ()


class DecodeError(_AnswerError, ValueError):
    """A response is invalid: not JSON, a web page, or an event that is too large.

    Attributes:
        text: Text of the first choice so far; may be empty.
        chunks: Number of chunks delivered before.
        offset_bytes: Position of the failure in the response, in bytes; None if unknown.
    """

    code = "undecodable_answer"


class APIError(_AnswerError):
    """The server reported a failure. The message is the server's.

    Attributes:
        code: The server's code, such as ``"rate_limited"``; ``"api_error"`` if missing.
        type: The server's type of failure; None if missing.
        param: The field that caused the failure; None if unknown.
        text: Text of the first choice so far; may be empty.
        chunks: Number of chunks delivered before.
        offset_bytes: Position of the failure in the response, in bytes; None if unknown.
    """

    code = "api_error"
    type: str | None = None
    param: str | None = None


class PredictionFailedError(PolymuxError):
    """A job failed, was canceled or timed out.

    Attributes:
        prediction: The job as a `polymux.Prediction` with its `logs`; None if unknown.
    """

    code = "prediction_failed"
    # Any: `Prediction` imports this module.
    prediction: Any = None


class NoMatchError(PolymuxError):
    """No song matches the recording."""

    code = "no_match"


class APIStatusError(APIError):
    """The server returned an error status (RFC 9110, 15).

    Attributes:
        status: HTTP status, such as 404.
        request_id: ID of the request in the server's log; None if the server does not send one.
        body: JSON of the response, else its text, shortened if it is long.
        headers: Header fields of the response with lower-case names.
        tries: Number of attempts.
        retry_reasons: For each time that the request was sent again: why, and after which delay.
    """

    code = "status_error"
    status: int = 0
    request_id: str | None = None
    body: Any = None
    headers: dict[str, str]
    tries: int = 1
    retry_reasons: tuple[str, ...] = ()

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.headers = {}


class BadRequestError(APIStatusError):
    """Status 400: the request is invalid; `param` names the field if the server sends it."""

    code = "bad_request"


class AuthenticationError(APIStatusError):
    """Status 401: missing or invalid API key."""

    code = "unauthorized"


class PermissionDeniedError(APIStatusError):
    """Status 403: the API key does not allow this operation."""

    code = "forbidden"


class NotFoundError(APIStatusError):
    """Status 404: the path, job, file or model does not exist, or no result was found."""

    code = "not_found"


class ConflictError(APIStatusError):
    """Status 409: another request used the same idempotency key."""

    code = "conflict"


class RequestTooLargeError(APIStatusError):
    """Status 413: the body, or a decoded part of it, is too large."""

    code = "too_large"


class UnprocessableEntityError(APIStatusError):
    """Status 422: the media was received but cannot be processed."""

    code = "unprocessable"


class RateLimitError(APIStatusError):
    """Status 429: rate limited, even after all retries."""

    code = "rate_limited"


class InternalServerError(APIStatusError):
    """Status 500 or above: the server or an upstream failed."""

    code = "server_error"


class NoBackendError(InternalServerError):
    """Status 501: no engine or upstream is configured for this; retries do not help."""

    code = "no_backend"


class OverloadedError(InternalServerError):
    """Status 503: the server is overloaded, starting or stopping, even after all retries."""

    code = "overloaded"


class SongIndexError(PolymuxError):
    """The song index cannot be opened, read or written.

    Attributes:
        code: ``song_index_failed``; ``song_index_busy`` if another process writes to it,
            ``song_index_damaged`` if its database is damaged, ``storage_full`` if the disk is full.

    Example:
        >>> import polymux
        >>> polymux.SongIndexError("its disk is full", code="storage_full").code
        'storage_full'
    """

    code = "song_index_failed"


if not TYPE_CHECKING:  # Otherwise type checkers would accept misspelled names.

    def __getattr__(name: str) -> object:
        """Return the class of a deprecated name, with a warning."""
        if name != "CatalogueError":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from polymux._util.deprecation import warn_of_old_name

        warn_of_old_name(__name__, name, "SongIndexError")
        return SongIndexError
