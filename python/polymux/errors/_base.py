"""The root of all errors, and those that belong to no part of polymux alone."""

from __future__ import annotations

from polymux._util.redaction import hidden
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
        """Keeps the arguments as attributes of the same names."""
        message = hidden(message)
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
        details = {
            "code": self.code,
            "input_name": self.input_name,
            "position_s": self.position_s,
            "ffmpeg_code": self.ffmpeg_code,
            "ffmpeg_text": self.ffmpeg_text,
            "errno": self.errno,
        }
        return _restored, (type(self), self.message, details), dict(self.__dict__)

    def to_dict(self) -> dict[str, Any]:
        """The error as plain JSON-able values.

        Returns:
            ``type``, ``code``, ``message`` and those attributes that are set.

        Example:
            >>> import polymux
            >>> polymux.NoAudioError("no sound", input_name="a.mkv").to_dict()["code"]
            'no_audio'
        """
        details = {
            "input_name": self.input_name,
            "position_s": self.position_s,
            "ffmpeg_code": self.ffmpeg_code,
            "ffmpeg_text": self.ffmpeg_text,
            "errno": self.errno,
        }
        plain = {"type": type(self).__name__, "code": self.code, "message": str(self)}
        return plain | {key: value for key, value in details.items() if value not in (None, "")}


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
        """Both, by name."""
        return f"Problem(field={self.field!r}, message={self.message!r})"

    def __getnewargs__(self) -> tuple[str, str]:
        """For pickles."""
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
