"""How many connections there may be: of all peers together, and of one address."""

from __future__ import annotations

import ipaddress
import json
import resource
import secrets

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from polymux._native.version import __version__

_MAX_DESCRIPTORS = 1 << 16
_MIN_CONNECTIONS = 8
#: What one address may have where nothing is said is so much of all.
_SHARE = 2


class ConnectionLimiter:
    """The connections of a server, by who has them.

    An address of IPv6 stands for its network of 64 bits, which is what one line has.

    Args:
        most: Of all peers. Default: what the process's limit on descriptors leaves when files and
            engines have theirs.
        of_one: Of one address. Default: half of all, and as many as there may be from this machine
            itself, where proxies are.
    """

    def __init__(self, most: int | None = None, of_one: int | None = None) -> None:
        self.most = _max_connections() if most is None else most
        self._of_one = of_one
        self._counts: dict[str, int] = {}
        self._all = 0

    def acquire(self, address: str | None) -> tuple[str, bool]:
        """Counts a connection in.

        Returns:
            By what `release` counts it out, and whether there may be one more, of its address too.
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
    """What counts as one address, and whether that is this machine."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address, False
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return found.exploded[:19], found.is_loopback
        found = found.ipv4_mapped
    return str(found), found.is_loopback


def _max_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_MIN_CONNECTIONS, min(soft, _MAX_DESCRIPTORS) * 3 // 4)


_REASONS = {
    400: ("invalid_request", "the request is none of HTTP/1.1, or not for this server"),
    408: ("too_slow", "the request's header came too slowly"),
    431: ("header_too_large", "the request's header is too large"),
    503: ("overloaded", "there are more connections than this server takes; ask again later"),
    505: ("wrong_version", "the request is of another version of HTTP than 1.0 and 1.1"),
}


def new_request_id() -> str:
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
