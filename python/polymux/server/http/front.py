"""The ASGI side of the native server: runs an application on requests that C++ threads receive."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
from typing import TYPE_CHECKING, Any

from polymux._native import core

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from polymux.server.routes.endpoint import Endpoint
    from polymux.server.settings.settings import ServerSettings

_log = logging.getLogger("polymux.server")

#: Kinds of events, as in cpp/include/polymux/server/exchange.hpp.
_REQUEST, _REFUSED = 0, 4

_DISCONNECT = {"type": "http.disconnect"}
#: In this time, a client must accept 256 bytes a second of what waits for it.
WRITE_S = 60.0
_MAX_DESCRIPTORS = 1 << 16
_MIN_CONNECTIONS = 8
_FAILED = b"Internal Server Error"
_FAILED_FIELDS = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(_FAILED)),
)


def _max_connections() -> int:
    """Three quarters of the limit of descriptors, which leaves some for files and engines."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_MIN_CONNECTIONS, min(soft, _MAX_DESCRIPTORS) * 3 // 4)


class AsgiFront:
    """Serves an ASGI application on a listening socket. Belongs to one event loop.

    Args:
        app: The application.
        listener: A listening, non-blocking socket. The caller closes it after `close`.
        settings: Settings of the server.

    Attributes:
        native: The threads that receive requests.
        tasks: Tasks of running requests.
    """

    def __init__(
        self,
        app: Callable[..., Any],
        listener: socket.socket,
        settings: ServerSettings,
    ) -> None:
        limits = settings.limits
        self._app = app
        self._loop = asyncio.get_running_loop()
        self._exchanges: dict[core.ServerExchange, _Exchange] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.native = core.ServerFront(
            listener.fileno(),
            io_threads=1,
            header_timeout_s=limits.header_s,
            keep_alive_timeout_s=limits.keep_alive_s,
            write_timeout_s=WRITE_S,
            max_connections=_max_connections(),
            max_connections_per_network=limits.connections_per_address,
            tls_certificate=os.fspath(settings.tls_cert or ""),
            tls_key=os.fspath(settings.tls_key or ""),
        )
        #: By path.
        self._refusable: dict[str, Endpoint] = {}
        self._loop.add_reader(self.native.fileno(), self._take)

    def publish(
        self, gate: core.GateRules, keys: core.KeyTable, endpoints: Sequence[tuple[str, Endpoint]]
    ) -> None:
        """Refuse invalid requests to these paths without calling the application.

        Args:
            gate: Requirements of the server.
            keys: The API keys.
            endpoints: Paths without parameters, and their endpoints.
        """
        # Some requests may still be refused by the old rules.
        self._refusable |= dict(endpoints)
        self.native.publish(gate, keys, [(path, one.rules) for path, one in endpoints])

    def abort(self) -> None:
        """Close all connections now, and cancel their requests."""
        self.native.close_all()
        for task in self.tasks:
            task.cancel()

    def close(self) -> None:
        """Close all connections now, and end the threads."""
        self._loop.remove_reader(self.native.fileno())
        self._note_refused()
        self.native.close()

    def _take(self) -> None:
        for kind, native in self.native.take():
            if kind == _REQUEST:
                exchange = self._exchanges[native] = _Exchange(native, self._loop)
                task = self._loop.create_task(self._run(exchange))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
            elif kind == _REFUSED:
                self._note_refused()
            elif native in self._exchanges:
                self._exchanges[native].wake()

    def _note_refused(self) -> None:
        requests, others = self.native.take_refused()
        for status, seconds, method, path, request_id in requests:
            self._refusable[path].note(status, seconds, method, path, None, request_id)
        for path, status, count in others:
            self._refusable[path].note_many(status, count)

    async def _run(self, exchange: _Exchange) -> None:
        native = exchange.native
        try:
            await self._app(native.scope(), exchange.receive, exchange.send)
        except asyncio.CancelledError:
            native.disconnect()
            raise
        except Exception:
            _log.exception("the application failed")
        finally:
            del self._exchanges[native]
            if not native.is_started:
                native.start(500, _FAILED_FIELDS)
                native.write(_FAILED, is_last=True)
            elif not native.is_ended:
                native.disconnect()


class _Exchange:
    """`receive` and `send` of one request."""

    __slots__ = ("_body_ended", "_loop", "_news", "native")

    def __init__(self, native: core.ServerExchange, loop: asyncio.AbstractEventLoop) -> None:
        self.native = native
        self._loop = loop
        self._news: asyncio.Event | None = None
        self._body_ended = False

    def wake(self) -> None:
        if self._news is not None:
            self._news.set()

    async def _wait(self) -> None:
        if self._news is None:
            self._news = asyncio.Event()
        self._news.clear()
        await self._news.wait()

    async def receive(self) -> dict[str, Any]:
        while True:
            body, is_complete, is_disconnected = self.native.take_body()
            if is_disconnected:
                return _DISCONNECT
            if body or (is_complete and not self._body_ended):
                self._body_ended = is_complete
                return {"type": "http.request", "body": body, "more_body": not is_complete}
            await self._wait()

    async def send(self, message: dict[str, Any]) -> None:
        native = self.native
        kind = message["type"]
        if kind == "http.response.start":
            native.start(message["status"], message.get("headers", ()))
            # Sends the head by itself only if no body follows at once.
            self._loop.call_soon(native.flush)
        elif kind == "http.response.body":
            more = message.get("more_body", False)
            if not native.write(message.get("body", b""), not more):
                raise RuntimeError("the response body does not have the length of its header")
            while more and not native.has_room():
                await self._wait()
                if native.is_ended:
                    return
            if not more:
                self.wake()
