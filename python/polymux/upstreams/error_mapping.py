"""How an upstream's failure is told to whoever asked this server (`contracts.md` 0.5 and G.1).

A caller learns what was wrong with its own request, and nothing of this server's key, of addresses,
or of what the upstream says to its customer.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import ceil, isnan
from typing import TYPE_CHECKING, TypeVar

from polymux import errors
from polymux._util.redaction import redact
from polymux._util.text import printable, shortened
from polymux.client.answer import told_in
from polymux.service.errors import of_upstream, status_error

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
_MAX_CHARACTERS = 300
_MIN_WAIT_S, _USUAL_WAIT_S, _MAX_WAIT_S = 1.0, 5.0, 3600.0
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
#: Statuses that are told as the code of such an error.
_CODED = {str(one): one for one in (400, 401, 402, 403, 404, 413, 422, 429, 503, 529)}
_ACCOUNT_CODES = ("401", "402", "403", "429")
_TOO_LONG = "context_length_exceeded"
_TOO_LONG_AT_LLAMA_CPP = "exceed_context_size_error"
_TOO_LONG_AT_VLLM = re.compile(r"\bmaximum context length is \d+ tokens", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w.\[\]-]{0,80}", re.ASCII)
#: A refusal of this server's key by a status that is for requests, as Google's server has it.
_KEY = re.compile(r"\bAPI[ _-]?key\b", re.IGNORECASE | re.ASCII)
_NO_MODEL_CODES = ("model_not_found", "model_decommissioned")
#: How servers say so that have no code for it: OpenRouter by 400; vLLM, Ollama and Google by 404.
_NO_MODEL = re.compile(
    r"\bnot a valid model\b|\bno such model\b|\bunknown model\b", re.IGNORECASE | re.ASCII
)
_MODEL_NOT_FOUND = re.compile(
    r"\bmodels?\b.*(?:\bnot found\b|\bnot exist\b|n't exist\b)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
#: With how many seconds their numbers are.
_RETRY_FIELDS = (("retry-after-ms", 1e-3), ("retry-after", 1.0))
_MAX_DATE_CHARACTERS = 100
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


def map_error(
    name: str, error: errors.PolymuxError, *, operation: str, ours: bool = False
) -> errors.PolymuxError:
    """The failure of a request to an upstream, as callers get it.

    Args:
        operation: What was asked for: chats never answer 422.
        ours: Whether it is a polymux, whose codes mean what ours do. Default: False.

    Returns:
        502, 504, 429 or 503 for what concerns the upstream; 400, 404, 413, 415, 422 or 501 for what
        concerns the request. Anything that is no failure of an exchange is given back as it is.
    """
    if isinstance(error, errors.RequestTimeoutError):
        return late(name)
    if isinstance(error, errors.APIStatusError):
        return of_upstream(_of_status(name, error, operation, ours=ours))
    if isinstance(error, errors.APIError):
        return failed(name, _words_of(error))
    return failed(name, reason_of(error)) if isinstance(error, _UNANSWERED) else error


def map_error_body(name: str, error: errors.PolymuxError, *, operation: str) -> errors.PolymuxError:
    """A failure that came in the place of an answer, as callers get it.

    Some servers answer by 200 and tell the status as the failure's code, as OpenRouter does.
    """
    if isinstance(error, errors.APIError) and not isinstance(error, errors.APIStatusError):
        status = 400 if error.code == _TOO_LONG else _CODED.get(error.code)
        if status is not None:
            found = errors.APIStatusError(str(error))
            found.status, found.code, found.param = status, error.code, error.param
            found.body = {"error": {"message": str(error)}}
            error = found
    return map_error(name, error, operation=operation)


def failed(name: str, reason: str) -> errors.InternalServerError:
    """An upstream that does not do what it should."""
    return status_error(
        errors.InternalServerError,
        f"the upstream {name} failed: {reason}",
        code="upstream_failed",
        status=502,
    )


def late(name: str) -> errors.InternalServerError:
    return status_error(
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
    return status_error(kind, words, code=code, status=status)


def cleaned(text: str) -> str:
    """Words of an upstream as strangers may read them: no addresses, keys or accounts."""
    plain = _PRIVATE.sub("...", redact(printable(" ".join(text.split()))))
    return shortened(plain, _MAX_CHARACTERS)


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
    if _ACCOUNT.search(kinds) or error.code in _ACCOUNT_CODES:
        return "it broke off its answer, for a reason that concerns this server's account with it"
    return f"it broke off its answer: {cleaned(str(error))}"


def _of_status(
    name: str, error: errors.APIStatusError, operation: str, *, ours: bool
) -> errors.PolymuxError:
    status = error.status or 0
    if status == 429:
        message = f"the upstream {name} has a limit of its own, and it is reached: ask again later"
        return _later(status_error(errors.RateLimitError, message), error)
    if status in _BUSY:
        message = f"the upstream {name} is busy: ask again later"
        return _later(status_error(errors.OverloadedError, message), error)
    if status == 504:
        return late(name)
    chat = operation in _CHATS
    said = _said(error)
    if chat and status in (400, 404) and _lacks_model(error, said):
        message = f"the upstream {name} has no such model"
        return status_error(
            errors.BadRequestError, message, code="model_not_found", status=400, param="model"
        )
    if ours and _OWN_CODES.get(error.code) == status:
        return of_code(name, error.code, str(error))
    kind = _CALLERS.get(status)
    if kind is None or (status == 400 and not ours and _KEY.search(said)):
        return failed(name, f"it answered with status {status}")
    if status == 422:
        # Of others it means no more than 400 does.
        kind, status = errors.BadRequestError, 400
    code = "too_large" if status == 413 else "invalid_request"
    if chat and status == 400 and _is_too_long(error, said):
        code = _TOO_LONG
    param = error.param if error.param and _WORD.fullmatch(error.param) else None
    words = f"the upstream {name} refuses this{f': {cleaned(said)}' if said else ''}"
    return status_error(kind, words, code=code, status=status, param=param)


def _said(error: errors.APIStatusError) -> str:
    """Its message; empty where its answer has none, whatever else it holds."""
    message = told_in(error.body).get("message")
    return shortened(message.strip(), 2 * _MAX_CHARACTERS) if isinstance(message, str) else ""


def _is_too_long(error: errors.APIStatusError, said: str) -> bool:
    if error.code == _TOO_LONG or told_in(error.body).get("type") == _TOO_LONG_AT_LLAMA_CPP:
        return True
    return _TOO_LONG_AT_VLLM.search(said) is not None


def _lacks_model(error: errors.APIStatusError, said: str) -> bool:
    """Whether it has no model of the name that this server knows it by."""
    if error.code in _NO_MODEL_CODES or _NO_MODEL.search(said):
        return True
    return error.status == 404 and _MODEL_NOT_FOUND.search(said) is not None


def _later(found: Failure, error: errors.APIStatusError) -> Failure:
    """The same, with after how many seconds to come again."""
    asked_s = retry_after_s(error.headers)
    wait_s = _USUAL_WAIT_S if asked_s is None else max(_MIN_WAIT_S, asked_s)
    found.headers["retry-after"] = str(ceil(wait_s))
    return found


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to be left alone for, an hour at most (RFC 9110, 10.2.3).

    Example:
        >>> from polymux.upstreams.error_mapping import retry_after_s
        >>> retry_after_s({"retry-after": "7"})
        7.0
    """
    for name, unit in _RETRY_FIELDS:
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) * unit
            return None if isnan(seconds) else min(max(seconds, 0.0), _MAX_WAIT_S)
    with suppress(ValueError, OverflowError):
        until = parsedate_to_datetime(headers.get("retry-after", "")[:_MAX_DATE_CHARACTERS])
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return min(max(until.timestamp() - time.time(), 0.0), _MAX_WAIT_S)
    return None
