"""What can go wrong, as one tree.

::

    PolymuxError
    ├── InvalidRequestError (ValueError)          an option or argument is out of its range
    │   └── UnsupportedEncodingError              a body's Content-Type is not taken
    ├── MediaError                                the content of the input is the problem
    │   ├── UnsupportedMediaError                 not one of the accepted containers or codecs
    │   ├── UndecodableError                      broken, or nothing in it can be decoded
    │   ├── NoAudioError                          no audio stream, or not the one asked for
    │   ├── EncryptedMediaError                   protected by DRM or encryption
    │   ├── LimitExceededError                    a limit of `Limits` was passed
    │   └── EncoderError                          the MP3 encoder refused or failed
    ├── InputError (OSError)                      the input cannot be read
    │   ├── InputNotFoundError (FileNotFoundError)
    │   ├── InputUnreadableError                  folder, pipe, device, no permission, read error
    │   └── InputChangedError                     changed while it was being sent
    ├── OutputError (OSError)                     the output cannot be written
    │   ├── OutputExistsError (FileExistsError)   exists, and overwriting was not allowed
    │   ├── OutputRefusedError                    a symlink, folder, device, or the input itself
    │   └── OutputFailedError                     disk full, no permission, write error
    ├── URLRefusedError (ValueError)              a URL that must not be fetched
    ├── TransportError (ConnectionError)          the exchange with a server failed, at `stage`
    │   ├── ConnectError                          no connection: the name, the address, the proxy
    │   │   └── TLSError                          its certificate was refused, or no TLS agreed on
    │   └── ConnectionLostError                   broke off before the answer was whole
    ├── RequestTimeoutError (TimeoutError)        a deadline passed; `limit` says which
    ├── AnswerTooLargeError                       an answer passed a limit of its size
    ├── StreamInterruptedError (ConnectionError)  a streamed answer broke off before its end
    ├── DecodeError (ValueError)                  an answer is not what the interface sends
    ├── APIError                                  the server reported a failure
    │   └── APIStatusError                        by HTTP's status; `request_id`, `body`
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
    ├── PredictionFailedError                     the model's job failed or was cancelled
    ├── CatalogueError                            a catalogue of songs cannot be read or written
    ├── NoMatchError                              no song is like the recording
    ├── OperationCancelledError                   somebody asked for the end of the operation
    ├── OutOfMemoryError (MemoryError)            an allocation failed
    ├── MissingDependencyError (ImportError)      a part of this installation is missing
    └── InternalError                             a defect of polymux

An exception raised by the caller's own file object or callback is passed on unchanged and is
not in this tree.

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_TELLING_CHARACTERS = 40


class PolymuxError(Exception):
    """Root of everything polymux raises on purpose.

    Errors print as one sentence, pickle and copy with all their attributes.

    Args:
        message: What was wrong and what to do.
        code: Stable lower-case name of the failure; default: that of the class.
        input_name: The input's name as shown to people, at most 200 characters; empty when no
            input is concerned.
        position_s: Position in the media in seconds, when the failure has one.
        ffmpeg_code: FFmpeg's error number (negative), when FFmpeg reported the failure.
        ffmpeg_text: FFmpeg's text for it.
        errno: The operating system's error number, when a system call failed.
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
        """The message with its input, and FFmpeg's words where they add something."""
        text = self.message
        # The core may have shortened a long name at another place; its end is always there.
        if self.input_name and self.input_name[-_TELLING_CHARACTERS:] not in text:
            text = f"{self.input_name}: {text}"
        if self.ffmpeg_text and self.ffmpeg_text not in text:
            text = f"{text.rstrip('.')} (FFmpeg: {self.ffmpeg_text})"
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by keyword, which the positional protocol of `OSError` cannot."""
        details = {"code": self.code, **self._details()}
        return _restored, (type(self), self.message, details), dict(self.__dict__)

    def _details(self) -> dict[str, Any]:
        names = ("input_name", "position_s", "ffmpeg_code", "ffmpeg_text", "errno")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """The error as plain JSON-able values.

        Returns:
            ``type``, ``code``, ``message`` and those attributes that are set.

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
    """One thing that is wrong with a request: a tuple of both.

    Attributes:
        field: Path of the field, such as ``messages[0].role``; empty for the request as a whole.
        message: Field, value and rule: ``width=100: must be from 256 to 1280 px``.
    """

    __slots__ = ()

    def __new__(cls, field: str, message: str) -> Self:
        """Takes both."""
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
    """An option or argument is out of its documented range; the message names it.

    Attributes:
        problems: Of a request that does not keep the contract, everything that is wrong with it, up
            to 20 of them; empty for other errors.
    """

    code = "invalid_argument"
    problems: tuple[Problem, ...] = ()


class UnsupportedEncodingError(InvalidRequestError):
    """A received request's body is of a Content-Type that is not taken."""

    code = "unsupported_encoding"


class OperationCancelledError(PolymuxError):
    """The operation was cancelled before its end; nothing was left behind."""

    code = "cancelled"


class OutOfMemoryError(PolymuxError, MemoryError):
    """An allocation failed."""

    code = "out_of_memory"


class MissingDependencyError(PolymuxError, ImportError):
    """A part of this installation is missing; the message names what to install."""

    code = "missing_dependency"


class InternalError(PolymuxError):
    """A defect of polymux; please report it with the message."""

    code = "internal"


class _FileError(PolymuxError, OSError):
    """Fills in what handlers of `OSError` look at."""

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
    """The input is a folder, pipe or device, is not permitted, or a read failed."""

    code = "input_unreadable"


class InputChangedError(InputError):
    """The input shrank, grew or was written to while it was being sent; nothing was sent whole."""

    code = "input_changed"


class OutputError(_FileError):
    """The output cannot be written. Base class."""

    code = "output_error"


class OutputExistsError(OutputError, FileExistsError):
    """The destination exists and overwriting was not allowed."""

    code = "output_exists"


class OutputRefusedError(OutputError):
    """The destination is a symlink, a folder, a device, or the input itself."""

    code = "output_refused"


class OutputFailedError(OutputError):
    """Writing failed: disk full, no permission, or an I/O error."""

    code = "output_failed"


class MediaError(PolymuxError):
    """The content of the input is the problem. Base class."""

    code = "media_error"


class UnsupportedMediaError(MediaError):
    """The content is not one of the accepted containers or codecs."""

    code = "unsupported_media"


class UndecodableError(MediaError):
    """An accepted container that is broken, or that holds nothing decodable."""

    code = "undecodable"


class NoAudioError(MediaError):
    """The media holds no audio stream, or not the one asked for."""

    code = "no_audio"


class EncryptedMediaError(MediaError):
    """The media is protected by DRM or encryption."""

    code = "encrypted"


class LimitExceededError(MediaError):
    """A limit of `polymux.Limits` was passed; the message gives both numbers."""

    code = "limit_exceeded"


class EncoderError(MediaError):
    """The MP3 encoder refused the settings or failed while encoding."""

    code = "encoder_failed"


class URLRefusedError(PolymuxError, ValueError):
    """A URL that must not be fetched: its form, its scheme, its port, or where it leads.

    The message never has the address that a name stands for.

    Attributes:
        limit: ``"redirects"`` where it led on through more than are followed, which says nothing of
            where to; else empty.
    """

    code = "url_refused"
    limit: str = ""


class _SystemError(PolymuxError, OSError):
    """Fills in what handlers of `OSError` look at."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.strerror = message


class TransportError(_SystemError, ConnectionError):
    """The exchange with a server failed. Base class.

    Attributes:
        stage: Where: ``"resolve"``, ``"connect"``, ``"proxy"``, ``"tls"``, ``"send"`` or
            ``"receive"``.
    """

    code = "transport_failed"
    stage: str = ""


class ConnectError(TransportError):
    """There is no connection to the server: nothing of the request was sent."""

    code = "connect_failed"


class TLSError(ConnectError):
    """The server's certificate was refused, or TLS could not be agreed on."""

    code = "tls_failed"


class ConnectionLostError(TransportError):
    """The connection broke off before the answer was whole; the server may have done the work."""

    code = "connection_lost"


class AnswerTooLargeError(PolymuxError):
    """An answer passed a limit of its size; the message names the limit."""

    code = "answer_too_large"


class _AnswerError(PolymuxError):
    """What was received of an answer before it failed.

    Attributes:
        text: The text so far, of the first choice; empty where none came.
        chunks: How many chunks were delivered before.
        offset_bytes: Where in the answer, in bytes from its beginning; None if not known.
    """

    text: str = ""
    chunks: int = 0
    offset_bytes: int | None = None


class StreamInterruptedError(_AnswerError, _SystemError, ConnectionError):
    """A streamed answer broke off: neither a finish reason nor the end of the stream had come.

    Attributes:
        text: The text so far, of the first choice; empty where none came.
        chunks: How many chunks were delivered before.
        offset_bytes: Where in the answer, in bytes from its beginning.
        retry_safe: Whether asking again is known to do no harm: no chunk was delivered, and
            `Retry(repeatable=True)` was given, or the server is one of polymux, which ends a chat
            whose caller has left: at most work is begun twice. Of a job's events always True: they
            are only read.
    """

    code = "stream_interrupted"
    retry_safe: bool = False


class RequestTimeoutError(_AnswerError, _SystemError, TimeoutError):
    """A deadline passed.

    Attributes:
        limit: Which: ``"connect"``, ``"write"``, ``"first_byte"``, ``"idle"``, ``"event"``,
            ``"rate"`` or ``"total"``.
        text: Of a chat stream, the text so far; empty where none came.
        chunks: How many chunks were delivered before.
        offset_bytes: None.
    """

    code = "timed_out"
    limit: str = ""


class DecodeError(_AnswerError, ValueError):
    """An answer is not what the interface sends: wrong JSON, a web page, an event over the limit.

    Attributes:
        text: The text so far, of the first choice; empty where none came.
        chunks: How many chunks were delivered before.
        offset_bytes: Where in the answer, in bytes from its beginning; None if not known.
    """

    code = "undecodable_answer"


class APIError(_AnswerError):
    """The server reported a failure; the message is its own.

    Attributes:
        code: The server's code, such as ``"rate_limited"``; ``"api_error"`` where it gave none.
        type: The server's kind of failure; None where it gave none.
        param: The field concerned; None where the server named none.
        text: The text so far, of the first choice; empty where none came.
        chunks: How many chunks were delivered before.
        offset_bytes: Where in the answer, in bytes from its beginning; None if not known.
    """

    code = "api_error"
    type: str | None = None
    param: str | None = None


class PredictionFailedError(PolymuxError):
    """The job of a model failed, was cancelled or ran out of time.

    Attributes:
        prediction: The job as a `polymux.Prediction`, with its `logs`; None if there is none.
    """

    code = "prediction_failed"
    # Any: a Prediction imports this module for its errors.
    prediction: Any = None


class NoMatchError(PolymuxError):
    """No known song is like the recording."""

    code = "no_match"


class APIStatusError(APIError):
    """The server answered with a status that is no success (RFC 9110, 15).

    Attributes:
        status: Of HTTP, such as 404.
        request_id: Names the request in the server's log; None where the server has none.
        body: The answer's JSON, else its text; shortened where it is long.
        headers: Header fields of the answer, names in lower case.
        tries: How often the request was sent.
    """

    code = "status_error"
    status: int = 0
    request_id: str | None = None
    body: Any = None
    headers: dict[str, str]
    tries: int = 1

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.headers = {}


class BadRequestError(APIStatusError):
    """Status 400: the server refuses the request; `param` names the field where it says so."""

    code = "bad_request"


class AuthenticationError(APIStatusError):
    """Status 401: no key, or a wrong one."""

    code = "unauthorized"


class PermissionDeniedError(APIStatusError):
    """Status 403: the key does not allow this operation."""

    code = "forbidden"


class NotFoundError(APIStatusError):
    """Status 404: no such path, job, file or model; nothing was found."""

    code = "not_found"


class ConflictError(APIStatusError):
    """Status 409: another request has gone before with the same idempotency key."""

    code = "conflict"


class RequestTooLargeError(APIStatusError):
    """Status 413: the body, or what it holds once decoded, is over the server's limit."""

    code = "too_large"


class UnprocessableEntityError(APIStatusError):
    """Status 422: the media was received whole and cannot be worked with."""

    code = "unprocessable"


class RateLimitError(APIStatusError):
    """Status 429: too many requests, after all retries."""

    code = "rate_limited"


class InternalServerError(APIStatusError):
    """Status 500 or above: the server, or one behind it, failed."""

    code = "server_error"


class NoBackendError(InternalServerError):
    """Status 501: the server has nothing that could do this; asking again does not help."""

    code = "no_backend"


class OverloadedError(InternalServerError):
    """Status 503: the server has too much to do, starts or stops; after all retries."""

    code = "overloaded"


class CatalogueError(PolymuxError):
    """A catalogue of songs cannot be opened, read or written.

    Attributes:
        code: ``catalogue_failed``; ``catalogue_busy`` where another process writes to it,
            ``catalogue_damaged`` where its database is no longer whole, ``storage_full`` where its
            disk is full.

    Example:
        >>> import polymux
        >>> polymux.CatalogueError("its disk is full", code="storage_full").code
        'storage_full'
    """

    code = "catalogue_failed"
