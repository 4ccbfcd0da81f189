"""How an upstream's failure is told to whoever asked this server (`contracts.md` 0.5 and G.1).

A caller learns what was wrong with its own request, and nothing of this server's key, of addresses,
or of what the upstream says to its customer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from polymux import errors
from polymux._secrets import hidden
from polymux._text import printable, shortened
from polymux.service.failures import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

Failure = TypeVar("Failure", bound=errors.APIStatusError)

_UNANSWERED = (
    errors.TransportError,
    errors.StreamInterruptedError,
    errors.DecodeError,
    errors.AnswerTooLargeError,
    errors.URLRefusedError,
)
_CHATS = ("chat", "free_chat")
_MOST_CHARACTERS = 300
_SHORTEST_WAIT_S, _USUAL_WAIT_S, _LONGEST_WAIT_S = 1, 5, 3600
#: What addresses, keys and accounts look like in a sentence.
#: Each begins where a word does, so that no letter is looked at again and again.
_PRIVATE = re.compile(
    r"\b\w++://\S+|\bwww\.\S+|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\[[\da-fA-F:.]{3,}\]\S*"
    r"|(?<![\w.-])[\w.-]+\.[a-z]{2,}:\d+|\blocalhost(?::\d+)?"
    r"|\b(?:sk|gsk|pk|key|org|proj|project|acct|cus|user|req|sess)[-_](?=\S{0,200}\d)[\w-]{4,}"
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])\w{24,}",
    re.ASCII,
)
#: Words of an error within a stream that concern this server's account and not the caller.
_ACCOUNT = re.compile(r"rate|quota|billing|limit|auth|key|permission|account", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_][\w.\[\]-]{0,80}", re.ASCII)
_RETRY_FIELDS = ("retry-after-ms", "retry-after")
_BUSY = (498, 503, 529)
#: Statuses by which any upstream says that the request itself is wrong.
_CALLERS: Mapping[int, type[errors.APIStatusError]] = {
    400: errors.BadRequestError,
    413: errors.RequestTooLargeError,
    422: errors.UnprocessableEntityError,
}
#: Codes of a polymux that concern the request, and the statuses that they have.
_OWN_CODES: Mapping[str, int] = {
    "invalid_request": 400,
    "context_length_exceeded": 400,
    "model_not_found": 400,
    "url_refused": 400,
    "no_match": 404,
    "no_result": 404,
    "gone": 404,
    "too_large": 413,
    "unsupported_media": 415,
    "undecodable": 422,
    "no_audio": 422,
    "no_speech": 422,
    "encrypted": 422,
    "estimate_over_limit": 422,
    "no_backend": 501,
}
_CLASSES: Mapping[int, type[errors.APIStatusError]] = {
    **_CALLERS,
    404: errors.NotFoundError,
    501: errors.NoBackendError,
}


def told(
    name: str, error: errors.PolymuxError, *, operation: str, ours: bool = False
) -> errors.PolymuxError:
    """The failure of a request to an upstream, as callers get it.

    Args:
        name: The upstream's, as configuration has it.
        error: What its exchange ended with.
        operation: What was asked for: chats never answer 422.
        ours: Whether it is a polymux, whose codes mean what ours do. Default: False.

    Returns:
        502, 504, 429 or 503 for what concerns the upstream; 400, 404, 413, 415, 422 or 501 for what
        concerns the request. Anything that is no failure of an exchange is given back as it is.
    """
    if isinstance(error, errors.RequestTimeoutError):
        return late(name)
    if isinstance(error, errors.APIStatusError):
        return _of_status(name, error, operation, ours=ours)
    if isinstance(error, errors.APIError):
        return failed(name, _words_of(error))
    return failed(name, reason_of(error)) if isinstance(error, _UNANSWERED) else error


def failed(name: str, reason: str) -> errors.InternalServerError:
    """An upstream that does not do what it should."""
    return refusal(
        errors.InternalServerError,
        f"the upstream {name} failed: {reason}",
        code="upstream_failed",
        status=502,
    )


def late(name: str) -> errors.InternalServerError:
    """An upstream that takes too long."""
    return refusal(
        errors.InternalServerError,
        f"the upstream {name} did not answer in time",
        code="upstream_timeout",
        status=504,
    )


def of_code(name: str, code: str, message: str) -> errors.PolymuxError:
    """The failure of a job at a polymux, by the code that its prediction has."""
    if code == "no_match":
        return errors.NoMatchError(cleaned(message))
    status = _OWN_CODES.get(code)
    if status is None:
        return failed(name, f"its prediction failed ({code or 'without a code'})")
    kind = _CLASSES.get(status, errors.APIStatusError)
    words = f"the upstream {name} refuses this: {cleaned(message)}"
    return refusal(kind, words, code=code, status=status)


def cleaned(text: str) -> str:
    """Words of an upstream as strangers may read them: no addresses, keys or accounts."""
    plain = _PRIVATE.sub("...", hidden(printable(" ".join(text.split()))))
    return shortened(plain, _MOST_CHARACTERS)


def reason_of(error: errors.PolymuxError) -> str:
    """Without addresses: a name that leads into the operator's network is nobody's business."""
    if isinstance(error, errors.TLSError):
        return "its certificate is not trusted"
    if isinstance(error, errors.ConnectError):
        return "there is no connection to it"
    if isinstance(error, errors.DecodeError):
        return "its answer is not what the interface has"
    if isinstance(error, errors.AnswerTooLargeError):
        return "its answer is too large"
    if isinstance(error, errors.URLRefusedError):
        return "its answer names a file where nothing may be fetched from"
    return "its answer broke off"


def _words_of(error: errors.APIError) -> str:
    """What it says of a failure within a stream."""
    kinds = f"{error.code} {error.type or ''}"
    if _ACCOUNT.search(kinds):
        return "it broke off its answer, for a reason that concerns this server's account with it"
    return f"it broke off its answer: {cleaned(str(error))}"


def _of_status(
    name: str, error: errors.APIStatusError, operation: str, *, ours: bool
) -> errors.PolymuxError:
    status = error.status or 0
    if status == 429:
        message = f"the upstream {name} has a limit of its own, and it is reached: ask again later"
        return _later(refusal(errors.RateLimitError, message), error)
    if status in _BUSY:
        message = f"the upstream {name} is busy: ask again later"
        return _later(refusal(errors.OverloadedError, message), error)
    if status == 504:
        return late(name)
    chat = operation in _CHATS
    if chat and error.code == "model_not_found" and status in (400, 404):
        message = f"the upstream {name} has no such model"
        return refusal(
            errors.BadRequestError, message, code="model_not_found", status=400, param="model"
        )
    if ours and _OWN_CODES.get(error.code) == status:
        return of_code(name, error.code, str(error))
    kind = _CALLERS.get(status)
    if kind is None:
        return failed(name, f"it answered with status {status}")
    if status == 422:
        # Of others it means no more than 400 does.
        kind, status = errors.BadRequestError, 400
    code = "too_large" if status == 413 else "invalid_request"
    if chat and status == 400 and error.code == "context_length_exceeded":
        code = error.code
    param = error.param if error.param and _WORD.fullmatch(error.param) else None
    words = f"the upstream {name} refuses this: {cleaned(str(error))}"
    return refusal(kind, words, code=code, status=status, param=param)


def _later(found: Failure, error: errors.APIStatusError) -> Failure:
    """The same, with after how many seconds to come again, within bounds."""
    wait_s: float = _USUAL_WAIT_S
    for field in _RETRY_FIELDS:
        value = error.headers.get(field, "")
        if re.fullmatch(r"-?\d{1,12}(\.\d{1,6})?", value, re.ASCII):
            wait_s = float(value) / (1000 if field.endswith("-ms") else 1)
            break
    wait_s = max(_SHORTEST_WAIT_S, min(_LONGEST_WAIT_S, round(wait_s)))
    found.headers["retry-after"] = str(wait_s)
    return found
