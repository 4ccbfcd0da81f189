"""Limits of connections: in total and per address."""

from __future__ import annotations

import ipaddress
import json
import resource
import secrets

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from polymux._native.version import __version__

_MAX_DESCRIPTORS = 1 << 16
_MIN_CONNECTIONS = 8
#: The default limit per address is the total divided by this number.
_SHARE = 2


class ConnectionLimiter:
    """Counts the connections of a server by address.

    An IPv6 address counts as its /64 network, because a subscriber usually has all of it.

    Args:
        most: Maximum in total. Default: three quarters of the process's limit of descriptors, which
            leaves some for files and engines.
        of_one: Maximum per address. Default: half of the total; unlimited for this machine, which
            may run a proxy.
    """

    def __init__(self, most: int | None = None, of_one: int | None = None) -> None:
        self.most = max_connections() if most is None else most
        self._of_one = of_one
        self._counts: dict[str, int] = {}
        self._all = 0

    def acquire(self, address: str | None) -> tuple[str, bool]:
        """Count a new connection.

        Returns:
            The name for `release`, and whether the connection is within both limits.
        """
        name, is_here = _network(address or "")
        self._all += 1
        count = self._counts[name] = self._counts.get(name, 0) + 1
        most = self._of_one
        if most is None:
            most = self.most if is_here or not name else max(1, self.most // _SHARE)
        return name, count <= most and self._all <= self.most

    def release(self, name: str) -> None:
        self._all -= 1
        count = self._counts.get(name, 0) - 1
        if count > 0:
            self._counts[name] = count
        else:
            self._counts.pop(name, None)


def _network(address: str) -> tuple[str, bool]:
    """Return the name under which an address is counted, and whether it is this machine."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address, False
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return found.exploded[:19], found.is_loopback
        found = found.ipv4_mapped
    return str(found), found.is_loopback


def max_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_MIN_CONNECTIONS, min(soft, _MAX_DESCRIPTORS) * 3 // 4)


_REASONS = {
    400: ("invalid_request", "invalid HTTP/1.1 request"),
    408: ("too_slow", "timed out: the request header arrives too slowly"),
    431: ("header_too_large", "the request header is too large"),
    503: ("overloaded", "too many connections. Try again later"),
    505: ("wrong_version", "HTTP version not supported (supported: 1.0 and 1.1)"),
}


def new_request_id() -> str:
    return f"req_{secrets.token_hex(12)}"


def early_refusal(status: int) -> bytes:
    """Build a whole error response for a request that was not parsed."""
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
