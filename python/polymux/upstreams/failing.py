"""How an upstream's failure is told to whoever asked this server (`contracts.md` 0.5 and G.1).

A caller learns what was wrong with its own request, and nothing of this server's key, of addresses,
or of what the upstream says to its customer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from polymux import errors
from polymux.service.failures import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

Failure = TypeVar("Failure", bound=errors.APIStatusError)

_UNANSWERED = (
    errors.TransportError,
    errors.StreamInterruptedError,
    errors.DecodeError,
    errors.AnswerTooLargeError,
)
#: Statuses by which an upstream says that the request itself is wrong, and what becomes of them.
_CALLERS: Mapping[int, type[errors.APIStatusError]] = {
    400: errors.BadRequestError,
    404: errors.NotFoundError,
    413: errors.RequestTooLargeError,
    415: errors.BadRequestError,
    422: errors.UnprocessableEntityError,
}
_RETRY_FIELDS = ("retry-after-ms", "retry-after")


def told(name: str, error: errors.PolymuxError, *, operation: str) -> errors.PolymuxError:
    """The failure of a request to an upstream, as callers get it.

    Args:
        name: The upstream's, as configuration has it.
        error: What its exchange ended with.
        operation: What was asked for: chats never answer 422.

    Returns:
        502, 504, 429 or 503 for what concerns the upstream; 400, 404, 413 or 422 for what concerns
        the request. Anything that is no failure of an exchange is given back as it is.
    """
    if isinstance(error, errors.RequestTimeoutError):
        return refusal(
            errors.InternalServerError,
            f"the upstream {name} did not answer in time",
            code="upstream_timeout",
            status=504,
        )
    if isinstance(error, _UNANSWERED):
        return failed(name, _reason(error))
    if isinstance(error, errors.APIStatusError):
        return _of_status(name, error, operation)
    if isinstance(error, errors.APIError):
        return failed(name, f"it says: {error}")
    return error


def failed(name: str, reason: str) -> errors.InternalServerError:
    """An upstream that does not do what it should."""
    return refusal(
        errors.InternalServerError,
        f"the upstream {name} failed: {reason}",
        code="upstream_failed",
        status=502,
    )


def _reason(error: errors.PolymuxError) -> str:
    """Without addresses: a name that leads into the operator's network is nobody's business."""
    if isinstance(error, errors.TLSError):
        return "its certificate is not trusted"
    if isinstance(error, errors.ConnectError):
        return "there is no connection to it"
    if isinstance(error, errors.DecodeError):
        return "its answer is not what the interface has"
    if isinstance(error, errors.AnswerTooLargeError):
        return "its answer is too large"
    return "its answer broke off"


def _of_status(name: str, error: errors.APIStatusError, operation: str) -> errors.APIStatusError:
    status = error.status or 0
    if status == 429:
        return _later(
            refusal(
                errors.RateLimitError,
                f"the upstream {name} has a limit of its own, and it is reached: ask again later",
            ),
            error,
        )
    if status == 503:
        return _later(
            refusal(errors.OverloadedError, f"the upstream {name} is busy: ask again later"), error
        )
    if status == 504:
        return refusal(
            errors.InternalServerError,
            f"the upstream {name} gave up on this",
            code="upstream_timeout",
            status=504,
        )
    kind = _CALLERS.get(status)
    if kind is None:
        return failed(name, f"it answered with status {status}")
    if operation in ("chat", "free_chat") and status in (404, 415, 422):
        kind, status = errors.BadRequestError, 400
    code = (
        error.code if error.code in ("model_not_found", "no_match", "no_result", "gone") else None
    )
    return refusal(kind, f"the upstream {name} refuses this: {error}", code=code, param=error.param)


def _later(found: Failure, error: errors.APIStatusError) -> Failure:
    for field in _RETRY_FIELDS:
        value = error.headers.get(field)
        if value is not None:
            try:
                seconds = float(value) / (1000 if field.endswith("-ms") else 1)
            except ValueError:
                continue
            found.headers["retry-after"] = str(max(1, min(3600, round(seconds))))
            return found
    found.headers["retry-after"] = "5"
    return found
