"""What connections write through: headers with bodies, closes that wait, answers without chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from polymux.server.http.protocol import BoundedProtocol

_OF_EVENTS = b"content-type: text/event-stream"
#: Longer ones are not copied.
_JOINED_BYTES = 64 << 10


class JoiningTransport:
    """A transport whose `close` waits for the peer, where the peer is still sending."""

    def __init__(self, transport: asyncio.Transport, protocol: BoundedProtocol) -> None:
        """Nothing waits."""
        self._transport = transport
        self._protocol = protocol
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        """All else is the transport's own."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Writes; a header waits for the body that mostly follows it, to be sent in one piece."""
        head, self._head = self._head, b""
        if self._transport.is_closing():
            return  # Where the connection is lost, asyncio would warn each time.
        if head:
            if len(data) <= _JOINED_BYTES:
                self._transport.write(head + data)
                return
            self._transport.write(head)
        if data.startswith(b"HTTP/1.1 "):
            self._head = data
            self._protocol.sends_events = _OF_EVENTS in data
            self._protocol.loop.call_soon(self.flush)
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Writes a header that nothing has followed."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def is_closing(self) -> bool:
        """Whether nothing more can be said."""
        return self._protocol.is_lingering or self._transport.is_closing()

    def close(self) -> None:
        """Closes when what was written can have been read."""
        self.flush()
        if self._protocol.is_receiving and not self._transport.is_closing():
            self._protocol.linger()
        else:
            self._protocol.close_soon()


class Unframed:
    """Sends without chunks, which HTTP/1.0 does not know: the end is that of the connection."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        """Of one request."""
        self._cycle = cycle
        self._send = cycle.send
        self._unmeasured = False

    async def __call__(self, message: Any) -> None:
        """As ASGI's send."""
        if message["type"] == "http.response.start":
            named = {name.lower() for name, _ in message.get("headers", ())}
            self._unmeasured = b"content-length" not in named
            if self._unmeasured:
                self._cycle.chunked_encoding = False
        elif self._unmeasured:
            self._cycle.expected_content_length = len(message.get("body", b""))
        await self._send(message)
