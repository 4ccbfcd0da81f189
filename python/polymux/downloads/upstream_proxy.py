"""The operator's proxy: connects to addresses that passed SSRF protection."""

from __future__ import annotations

import asyncio
import base64
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from polymux._util.redaction import register_secret
from polymux.errors import InvalidRequestError

_MAX_HEAD_BYTES = 16 << 10
_USUAL_PORT = 3128
_OK = (b"HTTP/1.0 2", b"HTTP/1.1 2")


class UpstreamProxy(NamedTuple):
    """An HTTP forward proxy that supports CONNECT (RFC 9110, 9.3.6).

    polymux sends it the validated IP address, so its DNS cannot redirect the connection. It must
    allow CONNECT to IP addresses, including port 80 for sites without TLS.

    Attributes:
        host: Host name or address; not checked because the operator configured it.
        login: Base64 value for ``Proxy-Authorization: Basic``; empty for none. A secret.
    """

    host: str
    port: int
    login: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.host!r}, {self.port})"

    @classmethod
    def of(cls, url: str) -> UpstreamProxy:
        """Parse a URL such as ``http://user:password@proxy.example:3128``.

        Raises:
            InvalidRequestError: The URL is invalid; the error does not repeat it.

        Example:
            >>> from polymux.downloads.upstream_proxy import UpstreamProxy
            >>> UpstreamProxy.of("http://proxy.example:8080")
            UpstreamProxy('proxy.example', 8080)
        """
        try:
            parts = urlsplit(url)
            port = parts.port or _USUAL_PORT
        except ValueError:
            parts, port = urlsplit(""), 0
        plain = url.isascii() and url.isprintable() and " " not in url
        more = parts.path not in ("", "/") or parts.query or parts.fragment
        if not plain or parts.scheme != "http" or not parts.hostname or more:
            raise InvalidRequestError(
                "invalid proxy URL (allowed: http://HOST:PORT, such as http://proxy.example:3128)"
            )
        login = ""
        if parts.username is not None:
            name, password = unquote(parts.username), unquote(parts.password or "")
            login = base64.b64encode(f"{name}:{password}".encode()).decode()
            register_secret(password, parts.password, login)
        return cls(parts.hostname, port, login)

    async def connection(
        self, address: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to an address through the proxy.

        Args:
            address: IP address; IPv6 without brackets.

        Raises:
            OSError: The proxy is unreachable or rejects the connection.
        """
        place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        if self.login:
            lines.append(f"Proxy-Authorization: Basic {self.login}")
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=_MAX_HEAD_BYTES)
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode("ascii"))
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(_OK):
                raise ConnectionRefusedError("the proxy rejected CONNECT")  # noqa: TRY301
        except BaseException as error:
            writer.close()
            if isinstance(error, (asyncio.IncompleteReadError, asyncio.LimitOverrunError)):
                raise ConnectionResetError("the proxy sent no valid response") from None
            raise
        return reader, writer
