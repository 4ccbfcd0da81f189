"""Convert errors of upstreams to errors for clients (`contracts.md` 0.5 and G.1).

Clients learn what was wrong with their own request. They learn neither this server's API key nor
URLs nor messages about the operator's account.
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
from polymux.client.answer import error_fields
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
#: Patterns of URLs, addresses, API keys and accounts in messages.
#: Each pattern starts at a word boundary, to avoid repeated scans of the same characters.
_PRIVATE = re.compile(
    r"\b\w++://\S+|\bwww\.\S+|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\[[\da-fA-F:.]{3,}\]\S*"
    r"|(?<![\w.-])[\w.-]+\.[a-z]{2,}:\d+|\blocalhost(?::\d+)?"
    r"|\b(?:sk|gsk|pk|key|org|proj|project|acct|cus|user|req|sess)[-_](?=\S{0,200}\d)[\w-]{4,}"
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])\w{24,}",
    re.ASCII,
)
#: Words in the code of a stream error that concern this server's account, not the client.
_ACCOUNT = re.compile(r"rate|quota|billing|limit|auth|key|permission|account", re.IGNORECASE)
#: Statuses that upstreams also send as the code of a stream error.
_CODED = {str(one): one for one in (400, 401, 402, 403, 404, 413, 422, 429, 503, 529)}
_ACCOUNT_CODES = ("401", "402", "403", "429")
_TOO_LONG = "context_length_exceeded"
_TOO_LONG_AT_LLAMA_CPP = "exceed_context_size_error"
_TOO_LONG_AT_VLLM = re.compile(r"\bmaximum context length is \d+ tokens", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w.\[\]-]{0,80}", re.ASCII)
#: Google's server rejects this server's API key with a status for invalid requests.
_KEY = re.compile(r"\bAPI[ _-]?key\b", re.IGNORECASE | re.ASCII)
_NO_MODEL_CODES = ("model_not_found", "model_decommissioned")
#: Messages of servers without an error code for it: OpenRouter (400); vLLM, Ollama, Google (404).
_NO_MODEL = re.compile(
    r"\bnot a valid model\b|\bno such model\b|\bunknown model\b", re.IGNORECASE | re.ASCII
)
_MODEL_NOT_FOUND = re.compile(
    r"\bmodels?\b.*(?:\bnot found\b|\bnot exist\b|n't exist\b)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
#: Header fields and the unit of their numbers in seconds.
_RETRY_FIELDS = (("retry-after-ms", 1e-3), ("retry-after", 1.0))
_MAX_DATE_CHARACTERS = 100
_BUSY = (498, 503, 529)
#: Statuses of any upstream for invalid requests.
_CALLERS: Mapping[int, type[errors.APIStatusError]] = {
    400: errors.BadRequestError,
    413: errors.RequestTooLargeError,
    422: errors.UnprocessableEntityError,
}
#: Codes of polymux servers for invalid requests, and their statuses.
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
    """Convert the error of a request to an upstream to an error for clients.

    Args:
        operation: The operation: chats never return 422.
        ours: Whether it is a polymux server, with the same error codes. Default: False.

    Returns:
        502, 504, 429 or 503 if the upstream caused it; 400, 404, 413, 415, 422 or 501 if the
        request caused it. Returns errors that are not from an exchange unchanged.
    """
    if isinstance(error, errors.RequestTimeoutError):
        return late(name)
    if isinstance(error, errors.APIStatusError):
        return of_upstream(_of_status(name, error, operation, ours=ours))
    if isinstance(error, errors.APIError):
        return failed(name, _words_of(error))
    return failed(name, reason_of(error)) if isinstance(error, _UNANSWERED) else error


def map_error_body(name: str, error: errors.PolymuxError, *, operation: str) -> errors.PolymuxError:
    """Convert an error that arrived instead of an answer to an error for clients.

    Some servers, such as OpenRouter, return 200 and the real status as the error's code.
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
    """Create the error for a failed upstream."""
    return status_error(
        errors.InternalServerError,
        f"the upstream {name} failed: {reason}",
        code="upstream_failed",
        status=502,
    )


def late(name: str) -> errors.InternalServerError:
    return status_error(
        errors.InternalServerError,
        f"the upstream {name} timed out",
        code="upstream_timeout",
        status=504,
    )


def of_code(name: str, code: str, message: str) -> errors.PolymuxError:
    """Convert the error code of a job on a polymux server to an error for clients."""
    if code == "no_match":
        return errors.NoMatchError(cleaned(message))
    status = _OWN_CODES.get(code)
    if status is None:
        return failed(name, f"its job failed (code: {code or 'none'})")
    kind = _CLASSES.get(status, errors.APIStatusError)
    words = f"the upstream {name} rejected the request: {cleaned(message)}"
    return status_error(kind, words, code=code, status=status)


def cleaned(text: str) -> str:
    """Remove URLs, addresses, API keys and accounts from an upstream's text, for clients."""
    plain = _PRIVATE.sub("...", redact(printable(" ".join(text.split()))))
    return shortened(plain, _MAX_CHARACTERS)


def reason_of(error: errors.PolymuxError) -> str:
    """Return the reason without addresses, which may reveal the operator's network."""
    if isinstance(error, errors.TLSError):
        return "its TLS certificate is not trusted"
    if isinstance(error, errors.ConnectError):
        return "cannot connect to it"
    if isinstance(error, errors.DecodeError):
        return "its response is invalid"
    if isinstance(error, errors.AnswerTooLargeError):
        return "its response is too large"
    if isinstance(error, errors.URLRefusedError):
        return "its response contains a file URL that is not allowed"
    return "its response was interrupted"


def _words_of(error: errors.APIError) -> str:
    """Return the reason of a stream error."""
    kinds = f"{error.code} {error.type or ''}"
    if _ACCOUNT.search(kinds) or error.code in _ACCOUNT_CODES:
        return "its response was interrupted because of this server's account at the upstream"
    return f"its response was interrupted: {cleaned(str(error))}"


def _of_status(
    name: str, error: errors.APIStatusError, operation: str, *, ours: bool
) -> errors.PolymuxError:
    status = error.status or 0
    if status == 429:
        message = f"rate limited by the upstream {name}. Try again later"
        return _later(status_error(errors.RateLimitError, message), error)
    if status in _BUSY:
        message = f"the upstream {name} is busy. Try again later"
        return _later(status_error(errors.OverloadedError, message), error)
    if status == 504:
        return late(name)
    chat = operation in _CHATS
    reason = _message_in(error)
    if chat and status in (400, 404) and _lacks_model(error, reason):
        message = f"model: not found on the upstream {name}"
        return status_error(
            errors.BadRequestError, message, code="model_not_found", status=400, param="model"
        )
    if ours and _OWN_CODES.get(error.code) == status:
        return of_code(name, error.code, str(error))
    kind = _CALLERS.get(status)
    if kind is None or (status == 400 and not ours and _KEY.search(reason)):
        return failed(name, f"it returned status {status}")
    if status == 422:
        # Other servers do not distinguish 422 from 400.
        kind, status = errors.BadRequestError, 400
    code = "too_large" if status == 413 else "invalid_request"
    if chat and status == 400 and _is_too_long(error, reason):
        code = _TOO_LONG
    param = error.param if error.param and _WORD.fullmatch(error.param) else None
    words = f"the upstream {name} rejected the request{f': {cleaned(reason)}' if reason else ''}"
    return status_error(kind, words, code=code, status=status, param=param)


def _message_in(error: errors.APIStatusError) -> str:
    """Return the message in the response body, or an empty string."""
    message = error_fields(error.body).get("message")
    return shortened(message.strip(), 2 * _MAX_CHARACTERS) if isinstance(message, str) else ""


def _is_too_long(error: errors.APIStatusError, message: str) -> bool:
    if error.code == _TOO_LONG or error_fields(error.body).get("type") == _TOO_LONG_AT_LLAMA_CPP:
        return True
    return _TOO_LONG_AT_VLLM.search(message) is not None


def _lacks_model(error: errors.APIStatusError, message: str) -> bool:
    """Check whether the upstream does not know the configured model name."""
    if error.code in _NO_MODEL_CODES or _NO_MODEL.search(message):
        return True
    return error.status == 404 and _MODEL_NOT_FOUND.search(message) is not None


def _later(found: Failure, error: errors.APIStatusError) -> Failure:
    """Add the ``Retry-After`` header field."""
    asked_s = retry_after_s(error.headers)
    wait_s = _USUAL_WAIT_S if asked_s is None else max(_MIN_WAIT_S, asked_s)
    found.headers["retry-after"] = str(ceil(wait_s))
    return found


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the delay that a server requests in seconds, at most an hour (RFC 9110, 10.2.3).

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
