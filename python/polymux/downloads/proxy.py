"""The SSRF-checking forward proxy: the only network access of a downloader's process.

A downloader follows any URL in a page. The proxy checks each connection like an untrusted URL
(`polymux.fetch.fetcher`), connects only to the validated addresses, and counts the bytes.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from polymux import errors
from polymux.fetch.fetcher import FetchLimits, FetchPolicy, ajudged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Self

    from polymux.downloads.upstream_proxy import UpstreamProxy

_MAX_HEAD_BYTES = 64 << 10
_HEAD_S = 10.0
_CONNECT_S = 10.0
_PIECE_BYTES = 64 << 10
_MAX_CONNECTIONS = 64
_FORBIDDEN = 403
#: Limits of the DNS lookup of a checked host.
LOOK_UP = FetchLimits(connect_ms=10_000, total_ms=10_000)
#: Hop-by-hop fields, which a proxy must not forward (RFC 9110, 7.6.1).
_HOP_FIELDS = frozenset(
    (b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"upgrade", b"te")
)


class _RefusedError(Exception):
    """The proxy answers the request with this status and does not forward it."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class GuardedProxy:
    """A forward proxy for HTTP and CONNECT (RFC 9110, 9.3.6), used by one downloader.

    Belongs to one event loop. It listens on a Unix socket, and on loopback with a password, because
    other accounts of this machine can connect to loopback.

    Args:
        policy: Allowed hosts beyond the public Internet.
        max_bytes: Maximum number of bytes received in total; the proxy stops there.
        idle_s: Close a connection without traffic after this time. Default: 60.
        upstream_proxy: The operator's proxy, through which validated addresses are reached.
            Default: connect directly.

    Attributes:
        refusals: The first 20 reasons for rejected connections, for people, without URLs.
        received_bytes: Number of bytes received so far.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        max_bytes: int,
        *,
        idle_s: float = 60.0,
        upstream_proxy: UpstreamProxy | None = None,
    ) -> None:
        self._connect = (
            asyncio.open_connection if upstream_proxy is None else upstream_proxy.connection
        )
        self._policy = policy
        self._max_bytes = max_bytes
        self._idle_s = idle_s
        self._password = secrets.token_urlsafe(18)
        self._servers: list[asyncio.Server] = []
        self._open = 0
        self._running: set[asyncio.Task[None]] = set()
        self.refusals: list[str] = []
        self.received_bytes = 0
        self.port = 0

    @property
    def url(self) -> str:
        """Proxy URL on loopback, including the password: a secret."""
        return f"http://polymux:{self._password}@127.0.0.1:{self.port}"

    async def start(self, socket_path: Path) -> None:
        """Listen on loopback and on a Unix socket in a private folder."""
        on_socket = await asyncio.start_unix_server(
            lambda reader, writer: self._serve(reader, writer, trusted=True),
            socket_path,
            limit=_MAX_HEAD_BYTES,
        )
        self._servers.append(on_socket)
        on_loopback = await asyncio.start_server(
            lambda reader, writer: self._serve(reader, writer, trusted=False),
            "127.0.0.1",
            0,
            limit=_MAX_HEAD_BYTES,
        )
        self._servers.append(on_loopback)
        self.port = on_loopback.sockets[0].getsockname()[1]

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._servers.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, trusted: bool
    ) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this is a coroutine
        self._running.add(task)
        self._open += 1
        try:
            await self._handle(reader, writer, trusted=trusted)
        except _RefusedError as refused:
            with suppress(OSError):
                writer.write(_answer(refused.status, str(refused)))
                await asyncio.wait_for(writer.drain(), _HEAD_S)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # The connection is closed, and the peer notices that.
        finally:
            self._open -= 1
            self._running.discard(task)
            writer.close()

    async def _handle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, trusted: bool
    ) -> None:
        if self._open > _MAX_CONNECTIONS:
            raise _RefusedError(503, "too many connections")
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_S)
        except asyncio.LimitOverrunError:
            raise _RefusedError(431, "the request header is too large") from None
        first, *lines = head[:-4].split(b"\r\n")
        words = first.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            raise _RefusedError(400, "invalid HTTP/1.1 request")
        if not trusted and not self._has_password(lines):
            raise _RefusedError(407, "missing or invalid proxy password")
        method, target = words[0], words[1].decode("latin-1")
        is_tunnel = method == b"CONNECT"
        there = await self._connected(f"https://{target}/" if is_tunnel else target)
        if is_tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            there[1].write(_forwarded(method, target, lines))
        try:
            await self._exchange((reader, writer), there, is_tunnel=is_tunnel)
        finally:
            there[1].close()

    def _has_password(self, lines: list[bytes]) -> bool:
        wanted = base64.b64encode(f"polymux:{self._password}".encode())
        for line in lines:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"proxy-authorization":
                return hmac.compare_digest(value.strip(), b"Basic " + wanted)
        return False

    async def _connected(self, url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Check a URL and connect to its host."""
        try:
            found = await ajudged(url, policy=self._policy, limits=LOOK_UP)
        except errors.URLRefusedError as error:
            if len(self.refusals) < 20:
                self.refusals.append(str(error))
            raise _RefusedError(_FORBIDDEN, str(error)) from None
        except errors.PolymuxError:
            raise _RefusedError(502, "cannot resolve the host name") from None
        for address in found.addresses:
            with suppress(OSError, TimeoutError):
                return await asyncio.wait_for(self._connect(address, found.port), _CONNECT_S)
        raise _RefusedError(502, "cannot connect to the host")

    async def _exchange(
        self,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        *,
        is_tunnel: bool,
    ) -> None:
        """Forward bytes in both directions until one side closes or `idle_s` passes.

        Raises:
            _RefusedError: The server's response is not HTTP.
        """
        moved = asyncio.Event()
        back = self._pump if is_tunnel else self._answer_and_pump
        ways = [
            asyncio.ensure_future(self._pump(here[0], there[1], moved, counted=False)),
            asyncio.ensure_future(back(there[0], here[1], moved, counted=True)),
        ]
        try:
            while not ways[1].done():
                moved.clear()
                waiting = asyncio.ensure_future(moved.wait())
                done, _ = await asyncio.wait(
                    [waiting, ways[1]],
                    timeout=self._idle_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waiting.cancel()
                if not done:
                    return
            ways[1].result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _answer_and_pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        moved: asyncio.Event,
        *,
        counted: bool,
    ) -> None:
        """Forward a response with ``Connection: close``, whatever the server sent.

        The client might send its next request, for another host, on the same connection.
        """
        async for head in _heads(source):
            if self._is_too_much(head):
                return
            sink.write(head)
        await self._pump(source, sink, moved, counted=counted)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        moved: asyncio.Event,
        *,
        counted: bool,
    ) -> None:
        while piece := await source.read(_PIECE_BYTES):
            if counted and self._is_too_much(piece):
                return
            moved.set()
            sink.write(piece)
            await sink.drain()
        with suppress(OSError, RuntimeError):
            sink.write_eof()

    def _is_too_much(self, received: bytes) -> bool:
        """Count received bytes, including headers: redirects may consist of nothing else."""
        self.received_bytes += len(received)
        return self.received_bytes > self._max_bytes


def _forwarded(method: bytes, target: str, lines: list[bytes]) -> bytes:
    """Build the request for the origin server: origin-form target, one request per connection."""
    split = urlsplit(target)
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    first = b" ".join((method, path.encode("latin-1"), b"HTTP/1.1"))
    return b"\r\n".join([first, *_kept(lines), b"Connection: close", b"", b""])


async def _heads(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the headers of a response, including 1xx responses, with ``Connection: close``."""
    left_bytes = _MAX_HEAD_BYTES
    while True:
        lines = []
        try:
            while left_bytes >= 0 and (line := (await source.readuntil(b"\n")).rstrip(b"\r\n")):
                lines.append(line)
                left_bytes -= len(line) + 2
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            lines = []
        words = lines[0].split(b" ") if lines and left_bytes >= 0 else []
        if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
            raise _RefusedError(502, "the host's response is not HTTP")
        yield b"\r\n".join([lines[0], *_kept(lines[1:]), b"Connection: close", b"", b""])
        if not words[1].startswith(b"1") or words[1] == b"101":
            return


def _kept(lines: list[bytes]) -> list[bytes]:
    """Remove hop-by-hop fields."""
    return [one for one in lines if one.partition(b":")[0].strip().lower() not in _HOP_FIELDS]


def _answer(status: int, words: str) -> bytes:
    body = f"{words}\n".encode("utf-8", "replace")
    # Clients see the reason phrase of a status, so it must not contain text from a URL.
    reason = "Refused" if status == _FORBIDDEN else words
    return (
        # Proxy-Status (RFC 9209) distinguishes this from a response of the host.
        f"HTTP/1.1 {status} {reason}\r\nProxy-Status: polymux\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    ).encode() + body
