"""A server on 127.0.0.1 with a thread and an event loop, the base of both kinds of test servers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import threading
import traceback
from typing import TYPE_CHECKING, Self

from servers import http1
from servers.records import Log
from servers.tcp_connection import DisconnectedError, TcpConnection

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from types import TracebackType

    from servers.records import Connection, Request

JOIN_TIMEOUT_S = 10


class Exchange:
    """One request, and the wire for its answer."""

    def __init__(self, server: LoopbackServer, wire: TcpConnection, request: Request) -> None:
        self.server = server
        self.wire = wire
        self.request = request
        self._reading: asyncio.Task[None] | None = None

    async def read_body(self, bytes_per_s: float | None = None) -> None:
        """Read the rest of the body into the record; send 100 Continue if the client expects it."""
        if self._reading is not None:
            await self._reading
            return
        if http1.expects_continue(self.request) and not self.request.body_bytes:
            await self.wire.write(http1.head(100, reason="Continue"))
        await self._read(bytes_per_s)

    def read_body_meanwhile(self) -> None:
        """Start to read the body, and continue with the answer."""
        self._reading = asyncio.create_task(self._read(None))

    async def finish(self) -> None:
        if self._reading is not None:
            await self._reading

    def abandon(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self, bytes_per_s: float | None) -> None:
        if self.request.body_complete:
            return
        log, keep = self.server.log, self.server.kept_body_bytes
        most = http1.PIECE_BYTES if bytes_per_s is None else max(1, int(bytes_per_s / 50))
        async for piece in http1.body_pieces(self.wire, self.request, most):
            log.body(self.request, piece, keep)
            if bytes_per_s is not None:
                self.wire.stop_reading()
                await asyncio.sleep(len(piece) / bytes_per_s)
        log.body_end(self.request)


def _close_if_cancelled(peer: socket.socket, task: asyncio.Task[None]) -> None:
    """A task that is canceled before its first step has no transport to close its socket."""
    if task.cancelled():
        peer.close()


class LoopbackServer:
    """Accepts connections until its `with` block ends; subclasses override `answer`.

    Args:
        tls: A certificate; the server then uses TLS.
        host_name: The name in `url`; it must resolve to 127.0.0.1.
        receive_buffer_bytes: The kernel's buffer. With a small one, a peer soon notices a
            server that does not read.
        port: The port, for a server that is restarted. Default: a free port.
    """

    #: The bytes of a request's body that its record keeps. Its length is always complete.
    kept_body_bytes = 1 << 20

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        host_name: str = "127.0.0.1",
        receive_buffer_bytes: int | None = None,
        port: int = 0,
    ) -> None:
        self.log = Log()
        self.port = port
        self._tls = tls
        self._host_name = host_name
        self._receive_buffer_bytes = receive_buffer_bytes
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._wires: dict[Connection, TcpConnection] = {}
        self._failures: list[str] = []

    @property
    def url(self) -> str:
        """A URL such as ``http://127.0.0.1:40001``."""
        return f"{'https' if self._tls else 'http'}://{self._host_name}:{self.port}"

    @property
    def connections(self) -> list[Connection]:
        return self.log.connections

    @property
    def requests(self) -> list[Request]:
        """All requests, in the order in which their heads were complete."""
        return self.log.requests

    @property
    def open_connections(self) -> list[Connection]:
        return [one for one in self.connections if one.closed_at is None]

    def wait_requests(self, count: int, timeout_s: float = 5) -> list[Request]:
        self.log.wait_for(lambda: len(self.requests) >= count, timeout_s, f"{count} requests")
        return self.requests[:count]

    def wait_connections(self, count: int, timeout_s: float = 5) -> list[Connection]:
        self.log.wait_for(lambda: len(self.connections) >= count, timeout_s, f"{count} connections")
        return self.connections[:count]

    def wait_complete(self, request: Request, timeout_s: float = 5) -> Request:
        self.log.wait_for(lambda: request.body_complete, timeout_s, "the whole body")
        return request

    def wait_closed(self, connection: Connection, timeout_s: float = 5) -> Connection:
        what = f"the end of connection {connection.number}"
        self.log.wait_for(lambda: connection.closed_at is not None, timeout_s, what)
        return connection

    async def connected(self, wire: TcpConnection) -> None:
        """Runs before the first request of a connection is read."""

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request. The connection continues if it is open and the body was read."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        if size := self._receive_buffer_bytes:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(listener, ready.set), name=type(self).__name__, daemon=True
        )
        self._thread.start()
        ready.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(JOIN_TIMEOUT_S)
        assert not self._thread.is_alive(), "the test server did not stop"
        if self._failures and error is None:
            raise AssertionError("the test server failed:\n" + "\n".join(self._failures))

    def call(self, function: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(function)

    def _run(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        with listener, asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            runner.run(self._serve(listener, ready))

    async def _serve(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        self._stop = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()
        self._loop.add_reader(listener, self._accept, listener, tasks)
        ready()
        await self._stop.wait()
        self._loop.remove_reader(listener)
        for wire in self._wires.values():
            wire.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Aborted transports close their sockets in the next turn of the loop.
        await asyncio.sleep(0)

    def _accept(self, listener: socket.socket, tasks: set[asyncio.Task[None]]) -> None:
        """Accept without awaiting: a canceled `sock_accept` may lose a connection."""
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):
            peer, address = listener.accept()
            peer.setblocking(False)
            record = self.log.accepted(address[1])
            task = asyncio.create_task(self._connection(peer, record))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            task.add_done_callback(functools.partial(_close_if_cancelled, peer))

    async def _connection(self, peer: socket.socket, record: Connection) -> None:
        wire = TcpConnection(self.log, record, self._tls is not None)
        try:
            await self._loop.connect_accepted_socket(
                lambda: wire,
                peer,
                ssl=self._tls,
                ssl_shutdown_timeout=1 if self._tls else None,
            )
        except (OSError, asyncio.CancelledError):  # ssl.SSLError is an OSError
            self.log.closed(record)
            return
        self._wires[record] = wire
        try:
            await self._conversation(wire)
        except DisconnectedError:
            pass
        except Exception:
            self._failures.append(traceback.format_exc())
        finally:
            wire.abort()
            del self._wires[record]

    async def _conversation(self, wire: TcpConnection) -> None:
        await self.connected(wire)
        while True:
            request = await http1.read_head(wire)
            if not http1.has_body(request):
                request.body_complete = True
            self.log.add(request)
            exchange = Exchange(self, wire, request)
            try:
                await self.answer(exchange)
                await exchange.finish()
            finally:
                exchange.abandon()
            if not wire.open or not request.body_complete or not http1.keeps_alive(request):
                with contextlib.suppress(DisconnectedError):
                    await wire.close()
                return
