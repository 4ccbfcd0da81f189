"""Responses in raw ASGI: JSON, errors and common header fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from polymux._native import core
from polymux._native.version import __version__
from polymux.errors import InvalidRequestError
from polymux.service.warnings import warnings_fields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Fields = Sequence[tuple[bytes, bytes]]

VERSION_FIELD = (b"polymux-version", __version__.encode())
JSON_TYPE = (b"content-type", b"application/json")
#: Statuses without a body and without Content-Length (RFC 9110, 8.6).
_BODILESS = (204, 304)
CLOSE = (b"connection", b"close")
_AUTHENTICATE = (b"www-authenticate", b'Bearer realm="polymux"')


def to_json(value: Any) -> bytes:
    """Encode JSON. Escapes lone surrogates, which untrusted JSON may contain."""
    try:
        return core.write_json(value)
    except InvalidRequestError:
        pass  # It rejects lone surrogates.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


async def send_whole(
    send: Send, status: int, body: bytes, fields: Fields = (), *, request_id: str = ""
) -> None:
    headers = [VERSION_FIELD, *fields]
    if status not in _BODILESS:
        headers.append((b"content-length", str(len(body)).encode()))
    if request_id:
        headers.append((b"x-request-id", request_id.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_json(
    send: Send, status: int, value: Any, fields: Fields = (), *, request_id: str = ""
) -> None:
    await send_whole(send, status, to_json(value), (JSON_TYPE, *fields), request_id=request_id)


def metrics_fields(metrics: Mapping[str, float]) -> Fields:
    """Return the header field with the metrics of a response without ``metrics`` (RFC 9651, 3.2).

    Example:
        >>> from polymux.server.http.responses import metrics_fields
        >>> metrics_fields({"offset_s": 3.25, "speed": 1.0})
        ((b'polymux-metrics', b'offset_s=3.25, speed=1.0'),)
    """
    if not metrics:
        return ()
    words = ", ".join(f"{name}={round(value, 3)}" for name, value in metrics.items())
    return ((b"polymux-metrics", words.encode("ascii")),)


def with_warnings(headers: Fields, lines: Sequence[str]) -> Fields:
    """Return header fields with further warnings in ``polymux-warnings``.

    Example:
        >>> from polymux.server.http.responses import with_warnings
        >>> with_warnings([(b"polymux-warnings", b'"a"')], ["b"])
        [(b'polymux-warnings', b'"a", "b"')]
    """
    ((name, value),) = warnings_fields(lines)
    values = [given for other, given in headers if other == name]
    rest = [one for one in headers if one[0] != name]
    return [*rest, (name, b", ".join([*values, value]))]


def error_body(error: Mapping[str, Any], request_id: str) -> dict[str, Any]:
    """Return the JSON body of an error in the polymux API."""
    body: dict[str, Any] = {"error": error["message"], "code": error["code"]}
    if error.get("param"):
        body["param"] = error["param"]
    if request_id:
        body["request_id"] = request_id
    return body


def error_headers(error: Mapping[str, Any], fields: Fields = ()) -> list[tuple[bytes, bytes]]:
    """Return the header fields of an error, after the given ones."""
    headers: list[tuple[bytes, bytes]] = [*fields]
    if error["status"] == 401:
        headers.append(_AUTHENTICATE)
    if error.get("retry_after"):
        headers.append((b"retry-after", str(error["retry_after"]).encode()))
    if error.get("content_range"):  # The file's size (RFC 9110, 15.5.17).
        headers.append((b"content-range", str(error["content_range"]).encode()))
    return headers


async def send_error(
    send: Send,
    error: Mapping[str, Any],
    request_id: str,
    fields: Fields = (),
    *,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Send the result of `errors.described` as an error response."""
    body = error_body(error, request_id) | dict(more or {})
    await send_json(
        send, error["status"], body, error_headers(error, fields), request_id=request_id
    )
