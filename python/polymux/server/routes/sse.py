"""Server-sent events; every stream ends with a final event or an error event."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from polymux._util.text import printable, shortened
from polymux.server.http.body import ClientGoneError, gone
from polymux.server.http.responses import VERSION_FIELD, to_json
from polymux.service.chunks import line_of
from polymux.service.errors import described, draining, engine_failed
from polymux.service.model import buffered_sink
from polymux.service.warnings import warnings_fields

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

    from polymux.server.http.responses import Send
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.chunks import Chunk
    from polymux.service.model import OperationRequest

_log = logging.getLogger("polymux.server")
KEEP_ALIVE = b": keep-alive\n\n"
#: Yield to other requests after this number of events.
_TURN = 32
_FIELDS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Prevents buffering by proxies such as nginx.
    (b"x-accel-buffering", b"no"),
)


def event(value: Any, name: str = "") -> bytes:
    before = f"event: {name}\n".encode() if name else b""
    return b"".join((before, b"data: ", to_json(value), b"\n\n"))


def _warning(line: str) -> bytes:
    """Encode a warning as an ASCII comment, like the header field of warnings."""
    return b": warning %b\n\n" % shortened(printable(line)).encode("ascii", "backslashreplace")


def chunk_event(chunk: Chunk) -> bytes:
    """Encode a chunk as an event; an upstream's chunk stays unchanged."""
    if isinstance(chunk, dict):
        return event(chunk)
    return b"".join((b"data: ", line_of(chunk), b"\n\n"))


async def send_stream(state: ServerState, work: OperationRequest, asked: RequestContext) -> None:
    """Stream a chat's chunks, followed by ``[DONE]``.

    An error before the first chunk becomes a normal error response.

    Raises:
        PolymuxError: It failed before the first chunk.
        ClientGoneError: The client disconnected; the engine was canceled.
    """
    sink = buffered_sink(state.service.store.media.draft)
    max_bytes = state.settings.limits.event_bytes

    def encoded(chunk: Chunk) -> bytes:
        found = chunk_event(chunk)
        if len(found) > max_bytes:
            raise engine_failed(
                "a chunk of the answer is too large for a server-sent event (got "
                f"{len(found)} bytes, allowed {max_bytes}). Repeat the request without streaming "
                "(stream=false)"
            )
        return found

    def all_warnings() -> Sequence[str]:
        return *work.warnings, *sink.warnings

    chunks = state.service.stream(work, sink)
    await send_events(
        state, chunks, asked, encode=encoded, last=b"data: [DONE]\n\n", warnings=all_warnings
    )


def _as_it_is(event: Any) -> bytes:
    return event  # type: ignore[no-any-return]


async def send_events(
    state: ServerState,
    events: AsyncGenerator[Any],
    asked: RequestContext,
    *,
    encode: Callable[[Any], bytes] = _as_it_is,
    last: bytes = b"",
    failure: str = "",
    warnings: Callable[[], Sequence[str]] | None = None,
) -> None:
    """Send events as they arrive, keep-alive comments in between, and an error event on failure.

    Args:
        state: The server's state.
        events: The events.
        asked: The request.
        encode: Encodes an event. Default: events are bytes.
        last: Final event after success. Default: none.
        failure: Name of the error event. Default: no name, as in chats.
        warnings: Returns all warnings so far. Those available at the start are sent in the header,
            later ones as comments. Default: none.

    Raises:
        PolymuxError: It failed before the first event.
        ClientGoneError: The client disconnected.
    """
    request_id = asked.access.request_id
    stream = _Stream(asked.send, request_id, failure, warnings)
    pumping = asyncio.ensure_future(stream.pump(events, encode, last))
    leaving = asyncio.ensure_future(gone(asked.receive))
    stopping = asyncio.ensure_future(state.stopping.wait())
    watched: set[asyncio.Future[Any]] = {pumping, leaving, stopping}
    try:
        await _watch(stream, watched, state.settings.limits.streams_keep_alive_s)
        if leaving.done():
            raise ClientGoneError  # noqa: TRY301 - the handlers below cover all ends
        if not pumping.done():
            pumping.cancel()
            if not stream.begun:
                raise draining()  # noqa: TRY301 - becomes a normal error response
            await stream.fail("draining", "the server is shutting down. Try again later")
            return
        pumping.result()
        await stream.end()
    except (ClientGoneError, asyncio.CancelledError):
        raise
    except Exception as error:
        if not stream.begun:
            raise
        details = described(error)
        if details["code"] == "internal":
            _log.error("the stream of request %s failed unexpectedly", request_id, exc_info=error)
        await stream.fail(details["code"], details["message"])
    finally:
        for one in watched:
            if not one.done():
                one.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await one
        await events.aclose()


async def _watch(stream: _Stream, watched: set[asyncio.Future[Any]], pause_s: float) -> None:
    """Wait until one of the tasks is done; sends a comment after each silent `pause_s`.

    Runs beside the events instead of around each event: a stream costs three tasks, an event none.
    """
    done: set[asyncio.Future[Any]] = set()
    while not done:
        left_s = stream.sent_at + pause_s - asyncio.get_running_loop().time()
        if left_s <= 0:
            await stream.keep_alive()
            left_s = pause_s
        done, _ = await asyncio.wait(watched, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)


class _Stream:
    """A response of server-sent events.

    Attributes:
        begun: Whether the response has started.
        sent_at: Time of the last send, on the event loop's clock.
    """

    def __init__(
        self,
        send: Send,
        request_id: str,
        failure: str,
        warnings: Callable[[], Sequence[str]] | None,
    ) -> None:
        self._send = send
        self._warnings = warnings
        self._warned = 0
        self._failure = failure
        self._request_id = request_id
        self._sending = False
        self._now = asyncio.get_running_loop().time
        self.begun = False
        self.sent_at = self._now()

    async def pump(
        self, events: AsyncIterator[Any], encode: Callable[[Any], bytes], last: bytes
    ) -> None:
        """Send all events as they arrive."""
        number = 0
        async for piece in events:
            await self.send(encode(piece))
            number += 1
            if number % _TURN == 0:
                await asyncio.sleep(0)  # Available events do not suspend this task.
        if last:
            await self.send(last)

    async def keep_alive(self) -> None:
        """Send a comment, unless the client has not received the previous data yet."""
        self.sent_at = self._now()
        if not self._sending:
            await self.send(KEEP_ALIVE)

    async def send(self, piece: bytes) -> None:
        self._sending = True
        lines = () if self._warnings is None else self._warnings()
        if not self.begun:
            self.begun = True
            fields = [*_FIELDS, VERSION_FIELD, (b"x-request-id", self._request_id.encode())]
            fields += warnings_fields(lines)
            self._warned = len(lines)
            await self._send({"type": "http.response.start", "status": 200, "headers": fields})
        elif len(lines) > self._warned:
            # Warnings after the header, which a silent stream sends before the engine starts.
            piece = b"".join((*map(_warning, lines[self._warned :]), piece))
            self._warned = len(lines)
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        self._sending = False
        self.sent_at = self._now()

    async def fail(self, code: str, message: str) -> None:
        """Send an error event and end the stream, without ``[DONE]``."""
        error = {
            "message": message,
            "type": "server_error",
            "code": code,
            "request_id": self._request_id,
        }
        await self.send(event({"error": error}, self._failure))
        await self.end()

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})
