"""uvicorn's protocol with timeouts, header limits, connection limits and detection of disconnects.

Closes connections that send nothing, send a header too slowly, or do not read their response.
Limits size and number of header fields, and the number of connections. Errors are JSON. If a
request body is rejected, closes the connection only after the client could read the response.
"""

from __future__ import annotations

import fcntl
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from polymux.server.http.connection_limit import ConnectionLimiter, early_refusal

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from polymux.runtime.settings import Limits

_FRAMING = (b"content-length", b"transfer-encoding")


class IgnoreUpgradeProtocol(HttpToolsProtocol):
    """Ignores protocol upgrades: reads their requests to the end.

    A server may ignore an offer such as ``Upgrade: h2c``, which Java and curl send (RFC 9110, 7.8).
    But the parser stops after the header of such a request, and uvicorn drops the data after it. A
    body would be lost; if it arrived later, it would be parsed as the next request, which a proxy
    in front has not seen (request smuggling).

    Attributes:
        body_is_to_come: Whether the parser considers a request complete before its body was read.
    """

    body_is_to_come = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._given = b""
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Store the data, because the parser may leave a part of it unread."""
        self._given = data
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Check whether a body follows."""
        length = [value for name, value in self.headers if name in _FRAMING]
        self.body_is_to_come = self.parser.should_upgrade() and length not in ([], [b"0"])
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Handle the end of a request, unless its body was not read."""
        if not self.body_is_to_come:
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Continue after the header; called while the parser's exception is handled."""
        offer = sys.exc_info()[1]
        if not isinstance(offer, httptools.HttpParserUpgrade):
            return
        rest = self._given[offer.args[0] :]
        head = b""
        if self.body_is_to_come:
            self.body_is_to_come = False
            fields = (b"%s: %s\r\n" % one for one in self.headers if one[0] in _FRAMING)
            head = b"POST / HTTP/1.1\r\n" + b"".join(fields) + b"\r\n"
        self.parser = httptools.HttpRequestParser(_Behind(self) if head else self)
        try:
            self.parser.feed_data(head)
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        if rest:
            self.data_received(rest)


class _Behind:
    """Forwards parser callbacks, except for the artificial header that announces the body."""

    def __init__(self, protocol: IgnoreUpgradeProtocol) -> None:
        self._protocol = protocol
        self._header_skipped = False

    def on_message_begin(self) -> None:
        if self._header_skipped:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if self._header_skipped:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._header_skipped:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._header_skipped:
            self._protocol.on_headers_complete()
        self._header_skipped = True

    def on_body(self, body: bytes) -> None:
        self._protocol.on_body(body)

    def on_message_complete(self) -> None:
        self._protocol.on_message_complete()


_MAX_HEADER_BYTES = 64 << 10
_MAX_FIELDS = 200
_LINGER_S = 2.0
_LINGER_BYTES = 4 << 20
_HALF_CLOSED_S = 0.1
#: Delays before writes to a half-closed connection, to detect a reset; the last one repeats.
_PROBES_S = (0.05, 0.1, 0.3, 0.6, 5.0)
_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
#: The same for event streams: a chunk with a comment, which clients ignore.
_COMMENT = b"3\r\n:\n\n\r\n"
#: Maximum framing of a chunked body: a constant plus a multiple of its content.
_MAX_FRAMING_BYTES = 64 << 10
_FRAMING_TIMES = 16
#: A peer must accept this number of bytes per second of waiting data, measured over this time.
_WRITE_S = 60.0
_MIN_SEND_BYTES_PER_S = 256
_VERSIONS = ("1.0", "1.1")
#: Maximum pipelined data read before the current request is answered.
_MAX_PIPELINED_BYTES = 128 << 10
#: Read buffer sizes before the header is checked, and for an accepted body.
_FIRST_READ_BYTES, _BODY_READ_BYTES = 64 << 10, 256 << 10


class BoundedProtocol(IgnoreUpgradeProtocol):
    #: Given to a subclass by `protocol_with`.
    limits: Limits
    limiter: ConnectionLimiter

    #: Name for `ConnectionLimiter.release`; None before the connection is counted.
    _address: str | None = None

    def take_place(self, address: str) -> None:
        """Take over a connection that `ConnectionLimiter.acquire` has counted under this name."""
        self._address = address

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._plain = transport
        self._header_bytes = 0
        self._fields = self._field_bytes = 0
        self._refused = 0
        self._in_header = True
        self._in_body = False
        self._framing_bytes = 0
        self._lingered_bytes = -1
        self._ignored_bytes = -1
        self._half_closed = False
        self.sends_events = False
        #: The cycle whose application runs or ran last; uvicorn's `cycle` is the newest.
        self._running: RequestResponseCycle | None = None
        self._ahead_bytes = 0
        self._keeps_alive = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        super().connection_made(CoalescingTransport(transport, self))  # type: ignore[arg-type]
        self._read_at_once(_FIRST_READ_BYTES)
        welcome = True
        if self._address is None:
            self._address, welcome = self.limiter.acquire(self.client[0] if self.client else None)
        if not welcome:
            self._plain.write(early_refusal(503))
            self.close_soon()
            return
        self._arm("header", self.limits.header_s)

    def _read_at_once(self, size_bytes: int) -> None:
        """Set the read buffer size; only asyncio's plain transport has one."""
        if hasattr(self._plain, "max_size"):
            self._plain.max_size = size_bytes

    def _arm(self, name: str, seconds: float) -> None:
        self._disarm(name)
        self._timers[name] = self.loop.call_later(seconds, self._late, name)

    def _disarm(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _late(self, name: str) -> None:
        self._timers.pop(name, None)
        if name == "header" and self.cycle is not None and not self.cycle.response_complete:
            return  # Part of the next request came early; the current one continues.
        if name == "header" and self._header_bytes and not self._plain.is_closing():
            self._refuse(408)
        elif name == "write":
            taken = self._unsent_bytes - self._count_unsent()
            if taken < _MIN_SEND_BYTES_PER_S * _WRITE_S:
                self._plain.abort()
            else:
                self._arm_write()
        else:
            self.close_soon()

    def _arm_write(self) -> None:
        self._unsent_bytes = self._count_unsent()
        self._arm("write", _WRITE_S)

    def _count_unsent(self) -> int:
        """Count unacknowledged bytes in our buffer and in the kernel (tcp(7), SIOCOUTQ)."""
        found = self._plain.get_write_buffer_size()
        with suppress(OSError, ValueError):
            queued = fcntl.ioctl(self._plain.get_extra_info("socket"), termios.TIOCOUTQ, bytes(4))
            found += int.from_bytes(queued, sys.byteorder)
        return found

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._disarm(name)
        if self._address is not None:
            self.limiter.release(self._address)
        super().connection_lost(exc)
        # uvicorn notifies only the newest request; another one may be running.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Handle a half-close: the client has disconnected, or waits for its response."""
        if self._lingered_bytes >= 0 or self._plain.get_extra_info("ssl_object") is not None:
            return False
        cycle = self._running
        if cycle is None or cycle.response_complete or cycle.more_body:
            return False
        self._half_closed = True
        self._watch_half_closed(cycle)
        return True

    def _watch_half_closed(self, cycle: RequestResponseCycle) -> None:
        """Find out whether a half-closed peer waits for the response."""
        if cycle.more_body:
            self.close_soon()  # The rest of the body can never arrive.
        elif cycle.scope["http_version"] == "1.1":
            self._probe(0)
        else:
            self.loop.call_later(_HALF_CLOSED_S, self.close_soon)

    def _probe(self, number: int) -> None:
        """Check whether a half-closed peer still reads: a closed one answers with a reset.

        Sends data without meaning: before a response an interim response (RFC 9110, 15.2), in an
        event stream a comment. Other responses are written continuously and detect it themselves.
        """
        cycle = self._running
        if self._plain.is_closing() or cycle is None or cycle.response_complete:
            return
        if number and not self._plain.get_write_buffer_size():
            if not cycle.response_started:
                self._plain.write(_INTERIM)
            elif self.sends_events:
                self.transport.write(_COMMENT)
        wait_s = _PROBES_S[min(number, len(_PROBES_S) - 1)]
        self._timers["probe"] = self.loop.call_later(wait_s, self._probe, number + 1)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Run one request after another."""
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Continue with the next request, if the connection allows it."""
        last = not self.pipeline
        self._ahead_bytes = 0
        self._disarm("probe")
        super().on_response_complete()
        if last and self._half_closed:
            self.close_soon()
        elif self._half_closed and self._running is not None:
            self._watch_half_closed(self._running)

    @property
    def is_lingering(self) -> bool:
        """Whether the response is complete and further input is dropped."""
        return self._lingered_bytes >= 0

    def close_soon(self) -> None:
        """Close after the written data was read, or after a timeout."""
        if self._plain.is_closing():
            return  # asyncio's TLS transport fails if it is closed twice or after it was lost.
        self._plain.close()
        if self._plain.get_write_buffer_size():
            self._arm_write()

    @property
    def is_receiving(self) -> bool:
        """Whether the peer is still sending its request or other data."""
        more = self._in_body or self._ignored_bytes >= 0
        return more and not self._plain.is_closing()

    def linger(self) -> None:
        """End the response but keep reading for a while: a TCP reset would discard the response."""
        if self._lingered_bytes >= 0:
            return
        self._lingered_bytes = 0
        with suppress(OSError):  # The peer may have disconnected, which the next read detects.
            if self._plain.can_write_eof():
                self._plain.write_eof()
        self._arm("linger", _LINGER_S)
        self.flow.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Count header bytes, and drop unwanted data."""
        if self._lingered_bytes >= 0:
            self._lingered_bytes += len(data)
            if self._lingered_bytes > _LINGER_BYTES:
                self.close_soon()
            return
        if self._ignored_bytes >= 0:
            self._ignored_bytes += len(data)
            if self._ignored_bytes > _LINGER_BYTES:
                self._plain.abort()
            return
        if self._in_body and self.cycle is not None and self.cycle.response_complete:
            self.linger()  # The request was answered already: drop its remaining body.
            return
        if self._in_header:
            self._header_bytes += len(data)
        if self._in_body:
            self._framing_bytes += len(data)
            self._read_at_once(_BODY_READ_BYTES)
        super().data_received(data)
        if self.pipeline:
            self._hear_behind(len(data))
        if self._plain.is_closing() or self._lingered_bytes >= 0:
            return
        if self._in_body and self._framing_bytes > _MAX_FRAMING_BYTES:
            self._refused = self._refused or 400
        # Body bytes in the same piece as the header's end are not counted as header.
        if self._in_header and self._header_bytes > _MAX_HEADER_BYTES:
            self._refused = self._refused or 431
        if self._in_header and self._header_bytes and "header" not in self._timers:
            # Most headers arrive in one piece and need no timer.
            self._arm("header", self.limits.header_s)
        if self._refused:
            self._refuse(self._refused)

    def _hear_behind(self, size_bytes: int) -> None:
        """Keep reading behind a waiting pipelined request, to detect a disconnect.

        uvicorn stops reading there. If the peer sends too much, a probe detects the disconnect.
        """
        self._ahead_bytes += size_bytes
        if self._ahead_bytes <= _MAX_PIPELINED_BYTES:
            self.flow.resume_reading()
            return
        self.flow.pause_reading()
        running = self._running
        asks = running is not None and running.scope["http_version"] == "1.1"
        if asks and "probe" not in self._timers:
            self._probe(0)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        self._field_bytes += len(name) + len(value)
        if self._fields > _MAX_FIELDS or self._field_bytes > _MAX_HEADER_BYTES:
            self._refused = 431
            return
        if self._in_header:  # Fields after a body are trailers.
            # The parser keeps blanks after a value, which are not part of it (RFC 9110, 5.5).
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """End the header timeout. Rejects targets for proxies, and invalid targets."""
        self._disarm("header")
        if not self.url.startswith(b"/") and self.url != b"*":
            self._refused = 400
        if self.parser.get_http_version() not in _VERSIONS:
            self._refused = 505
        self._in_header = False
        self._in_body = True
        if self._refused:
            return
        before = self.cycle
        super().on_headers_complete()
        made = self.cycle
        if made is None or made is before:
            return
        # A response sent before the whole body has arrived ends the connection: the remaining body
        # could be parsed as a request, or dropped together with one.
        self._keeps_alive, made.keep_alive = made.keep_alive, False
        if made.scope["http_version"] == "1.0":
            # The application has not started yet: its task runs in a later loop iteration.
            made.send = UnchunkedSender(made)  # type: ignore[method-assign]

    def on_body(self, body: bytes) -> None:
        """Forward body data unless the request was rejected."""
        self._framing_bytes -= len(body) * (1 + _FRAMING_TIMES)
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.body_is_to_come:
            return
        if self._in_body:
            self._read_at_once(_FIRST_READ_BYTES)
        self._in_body = False
        self._in_header = True
        self._header_bytes = self._fields = self._field_bytes = self._framing_bytes = 0
        if not self._refused:
            if self.cycle is not None and not self.cycle.response_started:
                self.cycle.keep_alive = self._keeps_alive
            super().on_message_complete()

    def shutdown(self) -> None:
        """Make the current response the last one, because the server shuts down."""
        self._keeps_alive = False
        super().shutdown()

    def pause_writing(self) -> None:
        """Start the write timeout, because the peer reads slowly or not at all."""
        self._arm_write()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._disarm("write")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Send the error for invalid HTTP as JSON."""
        self._refuse(400)

    def _refuse(self, status: int) -> None:
        if self._plain.is_closing() or self.is_lingering:
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            # The last request is complete: answer it and those before it. Drop what follows.
            cycle.keep_alive = False
            self._ignored_bytes = 0
            return
        if self.pipeline:
            self._plain.abort()  # The client could not assign an error to one of its requests.
            return
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                self.close_soon()
                return
            # The parser failed after the header: the running application must end.
            cycle.disconnected = True
            cycle.message_event.set()
        self._plain.write(early_refusal(status))
        if status == 408:
            self.close_soon()  # All input was read, so no reset discards the response.
            return
        self._in_body = True  # Treat all further input as body.
        self.linger()


def protocol_with(limits: Limits) -> type[BoundedProtocol]:
    """Create a protocol class with these limits, as uvicorn requires."""
    members = {
        "limits": limits,
        "limiter": ConnectionLimiter(of_one=limits.connections_per_address),
    }
    return type("BoundedProtocol", (BoundedProtocol,), members)


_OF_EVENTS = b"content-type: text/event-stream"
#: Larger pieces are written separately to avoid a copy.
_JOINED_BYTES = 64 << 10


class CoalescingTransport:
    """A transport whose `close` waits for a peer that is still sending."""

    def __init__(self, transport: asyncio.Transport, protocol: BoundedProtocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data; delays a header to send it in one piece with the body that mostly follows."""
        head, self._head = self._head, b""
        if self._transport.is_closing():
            return  # asyncio would log a warning for each write to a lost connection.
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
        """Write a delayed header without a body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._protocol.is_lingering or self._transport.is_closing()

    def close(self) -> None:
        """Close after the written data could be read."""
        self.flush()
        if self._protocol.is_receiving and not self._transport.is_closing():
            self._protocol.linger()
        else:
            self._protocol.close_soon()


class UnchunkedSender:
    """Sends without chunks, which HTTP/1.0 does not support: the connection's end ends the body."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._send = cycle.send
        self._unmeasured = False

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            named = {name.lower() for name, _ in message.get("headers", ())}
            self._unmeasured = b"content-length" not in named
            if self._unmeasured:
                self._cycle.chunked_encoding = False
        elif self._unmeasured:
            self._cycle.expected_content_length = len(message.get("body", b""))
        await self._send(message)
