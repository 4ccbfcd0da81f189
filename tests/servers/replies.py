"""Answers of the reference server: complete ones, event streams, and all errors."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Fields = list[tuple[str, str]]

#: Status to the code and the text of its error.
ERRORS = {
    400: ("invalid_request", "the request is not valid"),
    401: ("unauthorized", "the token is missing or wrong"),
    403: ("forbidden", "the key has no right to this operation"),
    404: ("not_found", "there is nothing here"),
    405: ("method_not_allowed", "this path takes other methods"),
    408: ("request_timeout", "the request did not come in time"),
    409: ("idempotency_conflict", "another request was sent under this Idempotency-Key"),
    413: ("too_large", "the request is too large"),
    414: ("target_too_long", "the address is too long"),
    415: ("unsupported_media", "the content type is not one that is taken here"),
    416: ("range_not_satisfiable", "the file is shorter"),
    422: ("undecodable", "the media cannot be decoded"),
    429: ("rate_limited", "too many requests"),
    431: ("headers_too_large", "the header fields are too large"),
    500: ("internal", "something went wrong here"),
    501: ("no_backend", "nothing is configured for this operation"),
    502: ("upstream_failed", "the server behind this one failed"),
    503: ("overloaded", "the queue is full"),
    504: ("upstream_timeout", "the server behind this one did not answer in time"),
    507: ("storage_full", "there is no room for the result"),
}
_ERROR_FIELDS: dict[int, Fields] = {
    401: [("WWW-Authenticate", "Bearer")],
    405: [("Allow", "GET, POST")],
    429: [("Retry-After", "1")],
    503: [("Retry-After", "1")],
}


@dataclass
class Reply:
    """One answer. With `events` it is a chunked stream that starts with `body`."""

    status: int
    body: bytes = b""
    headers: Fields = field(default_factory=list)
    events: AsyncIterator[bytes] | None = None


class RefusedError(Exception):
    """Makes the request fail with this error."""

    def __init__(self, status: int, text: str, *, code: str = "", param: str = "") -> None:
        super().__init__(text)
        self.reply = error_reply(status, text, code=code, param=param)


def json_reply(value: Any, status: int = 200, headers: Fields | None = None) -> Reply:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Reply(status, body, [("Content-Type", "application/json"), *(headers or [])])


def error_reply(
    status: int, text: str = "", *, code: str = "", param: str = "", headers: Fields | None = None
) -> Reply:
    """An error in the API's JSON form."""
    usual_code, usual_text = ERRORS.get(status, ("", f"status {status}"))
    value = {"error": text or usual_text, "code": code or usual_code}
    if param:
        value["param"] = param
    return json_reply(value, status, _ERROR_FIELDS.get(status, []) if headers is None else headers)


def event(value: Any) -> bytes:
    """One server-sent event with a JSON value or an unchanged text."""
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"data: {data}\n\n".encode()


def http_date(seconds_from_now: float, form: str = "imf") -> str:
    """A date in HTTP's format (RFC 9110, 5.6.7)."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds_from_now)
    if form == "rfc850":
        return moment.strftime("%A, %d-%b-%y %H:%M:%S GMT")
    if form == "asctime":
        return moment.strftime("%a %b %e %H:%M:%S %Y")
    return format_datetime(moment, usegmt=True)


def retry_after_forms() -> dict[str, list[str]]:
    """Valid and invalid values of Retry-After: a name, and the header's values in order."""
    return {
        "seconds": ["2"],
        "zero": ["0"],
        "date": [http_date(2)],
        "date in RFC 850's form": [http_date(2, "rfc850")],
        "date in asctime's form": [http_date(2, "asctime")],
        "date in the past": [http_date(-3600)],
        "date in ten years": [http_date(10 * 365 * 86_400)],
        "negative": ["-1"],
        "scientific": ["1e9"],
        "huge": ["1000000000"],
        "beyond 64 bits": ["9" * 40],
        "fraction": ["0.5"],
        "blanks": ["  2 "],
        "word": ["soon"],
        "empty": [""],
        "twice": ["1", "5"],
        "list": ["1, 5"],
    }
