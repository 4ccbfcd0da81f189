"""Errors of what a server answers."""

from __future__ import annotations

from polymux.errors._base import PolymuxError
from polymux.errors._transport import _SystemError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from polymux.client.responses import Prediction


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
        prediction: The job, with `logs` and all else that was answered; None where there is none.
    """

    code = "prediction_failed"
    prediction: Prediction | None = None


class NoMatchError(PolymuxError):
    """No known song is like the recording."""

    code = "no_match"
