"""One TCP connection of a test server, plain or TLS, with control over reading and closing."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import struct
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from servers.records import Connection, Log

BUFFERED_BYTES = 1 << 18
_WATCH_S = 0.01


class DisconnectedError(Exception):
    """The peer closed the connection, or sent invalid HTTP."""


class TcpConnection(asyncio.Protocol):
    """Bytes to and from the peer; `closed` is set when it has closed or reset.

    Reading stops while more data is buffered than requested: a server that does not read then fills
    the peer's window. In this state, polling detects the peer's end.
    """

    def __init__(self, log: Log, record: Connection, over_tls: bool) -> None:
        self.log = log
        self.record = record
        self.closed = asyncio.Event()
        self._over_tls = over_tls
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = asyncio.Event()
        self._transport: asyncio.Transport
        self._paused = False
        self._watch: asyncio.Task[None] | None = None

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # With 0, asyncio's TLS would treat an empty buffer as full.
        self._transport.set_write_buffer_limits(high=int(self._over_tls), low=0)
        self._socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.record.received_bytes += len(data)
        self._buffer += data
        if len(self._buffer) >= BUFFERED_BYTES:
            self.stop_reading()
        self._arrived.set()

    def eof_received(self) -> bool:
        self._end()
        return not self._over_tls

    def connection_lost(self, error: Exception | None) -> None:
        self._end()
        self._lost.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # Called by servers.

    def stop_reading(self) -> None:
        if not self._paused and not self._lost.is_set():
            self._paused = True
            self._transport.pause_reading()
            self._watch = asyncio.create_task(self._watch_for_end())

    def go_on_reading(self) -> None:
        if self._paused and not self._lost.is_set():
            self._paused = False
            if self._watch is not None:
                self._watch.cancel()
            self._transport.resume_reading()

    async def more(self) -> None:
        """Wait for more bytes than are buffered."""
        self._arrived.clear()
        if self.closed.is_set():
            raise DisconnectedError("the peer sends no more")
        self.go_on_reading()
        await self._arrived.wait()

    async def read_until(self, mark: bytes, max_bytes: int) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            if len(self._buffer) > max_bytes:
                raise DisconnectedError(f"no {mark!r} within {max_bytes} bytes")
            await self.more()
        return self.take(end + len(mark))

    async def read_some(self, max_bytes: int) -> bytes:
        while not self._buffer:
            await self.more()
        return self.take(max_bytes)

    def take(self, max_bytes: int) -> bytes:
        data = bytes(self._buffer[:max_bytes])
        del self._buffer[:max_bytes]
        return data

    async def write(self, data: bytes) -> None:
        """Pass all bytes to the kernel."""
        if self._lost.is_set() or self._transport.is_closing():
            raise DisconnectedError("the connection is closed")
        self._transport.write(data)
        await self._writable.wait()
        if self._lost.is_set():
            raise DisconnectedError("the connection is closed")
        self.record.sent_bytes += len(data)

    async def sleep(self, seconds: float | None) -> None:
        """Wait; None means forever."""
        try:
            await asyncio.wait_for(self.closed.wait(), seconds)
        except TimeoutError:
            return
        raise DisconnectedError("the peer has closed")

    async def close(self) -> None:
        """Close normally after everything is sent, in TLS with close_notify."""
        if not self._over_tls:
            self.half_close()  # This also works if a forked process has the socket, too.
        self._transport.close()
        await self._lost.wait()

    async def reset(self) -> None:
        """Close with RST; unsent data is lost."""
        with contextlib.suppress(OSError):  # the peer was faster
            self._socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()
        await self._lost.wait()

    def half_close(self) -> None:
        """Send FIN and keep reading. TLS gets no close_notify, so its stream is truncated."""
        with contextlib.suppress(OSError):
            self._socket().shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        self._transport.abort()
        if self._watch is not None:
            self._watch.cancel()

    @property
    def open(self) -> bool:
        return not (self.closed.is_set() or self._lost.is_set() or self._transport.is_closing())

    def _socket(self) -> socket.socket:
        return cast("socket.socket", self._transport.get_extra_info("socket"))

    def _end(self) -> None:
        self.log.closed(self.record)
        self.closed.set()
        self._arrived.set()

    async def _watch_for_end(self) -> None:
        poll = select.poll()
        poll.register(self._socket().fileno(), select.POLLRDHUP)
        while not self.closed.is_set():
            if poll.poll(0):
                self._end()
            await asyncio.sleep(_WATCH_S)
