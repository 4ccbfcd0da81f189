"""Answers in the interface's form to what is no request yet: made by the connection itself."""

from __future__ import annotations

import json
import secrets

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from polymux._native.version import __version__

_REASONS = {
    400: ("invalid_request", "the request is none of HTTP/1.1, or not for this server"),
    408: ("too_slow", "the request's header came too slowly"),
    431: ("header_too_large", "the request's header is too large"),
    503: ("overloaded", "there are more connections than this server takes; ask again later"),
    505: ("wrong_version", "the request is of another version of HTTP than 1.0 and 1.1"),
}


def new_request_id() -> str:
    """A name for a request that has none."""
    return f"req_{secrets.token_hex(12)}"


def early_refusal(status: int) -> bytes:
    """A whole answer, of a server that has not read a request."""
    code, message = _REASONS[status]
    request_id = new_request_id()
    body = json.dumps({"error": message, "code": code, "request_id": request_id}).encode()
    lines = (
        STATUS_LINE[status],
        b"content-type: application/json\r\n",
        b"content-length: %d\r\n" % len(body),
        b"polymux-version: %s\r\n" % __version__.encode(),
        b"x-request-id: %s\r\n" % request_id.encode(),
        b"retry-after: 5\r\n" if status == 503 else b"",
        b"connection: close\r\n\r\n",
        body,
    )
    return b"".join(lines)
