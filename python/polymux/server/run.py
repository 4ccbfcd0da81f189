"""``polymux serve``: the application on uvicorn, in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

from polymux._util.text import display_name
from polymux.errors import InvalidRequestError, PolymuxError
from polymux.server import signals
from polymux.server.app import front_of
from polymux.server.http.protocol import protocol_with
from polymux.server.http.tls_handshake import Handshake
from polymux.server.observability.logs import JsonFormatter, NonBlockingHandler, PlainFormatter
from polymux.server.state import ServerState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from ssl import SSLContext
    from types import FrameType

    from polymux.server.settings.settings import ServerSettings
    from polymux.service.backend import Backend

#: How long a second signal leaves for an end in order, and the closing behind the grace takes.
_AT_ONCE_S = 0.7
_CLOSING_S = 0.9


class ShutdownWatchdog:
    """Ends the process where a thread, a disk or an engine keeps it from ending by itself.

    What is lost by that is no more than by SIGKILL, after which a store is whole: engines end with
    the process, and what ran has failed with ``interrupted`` when the store is opened again.

    Args:
        shutdown_timeout_s: How long work may go on after the first signal.
    """

    def __init__(self, shutdown_timeout_s: float) -> None:
        self._shutdown_timeout_s = shutdown_timeout_s
        self._told, self._tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        threading.Thread(target=self._watch, name="polymux shutdown watchdog", daemon=True).start()

    def notify(self, status: int = 0) -> None:
        """Notes a signal: the first, which leaves the grace, or another, which leaves no time.

        Args:
            status: What the process ends with, where it has to be ended: up to 255.
        """
        with suppress(OSError):
            os.write(self._tell, bytes((status,)))

    def close(self) -> None:
        tell, self._tell = self._tell, -1
        if tell >= 0:
            os.close(tell)

    def _watch(self) -> None:
        try:
            status = self._next(None)
            if status is None:
                return
            until = time.monotonic() + self._shutdown_timeout_s + _CLOSING_S
            try:
                second = self._next(self._shutdown_timeout_s + _CLOSING_S)
                if second is None:
                    return
                status, until = second, min(until, time.monotonic() + _AT_ONCE_S)
                while self._next(max(0.0, until - time.monotonic())) is not None:
                    pass
            except TimeoutError:
                os._exit(status)
        finally:
            os.close(self._told)

    def _next(self, max_s: float | None) -> int | None:
        """The status that came with the next signal; None at the end of the server."""
        if not select.select([self._told], [], [], max_s)[0]:
            raise TimeoutError
        data = os.read(self._told, 1)
        return data[0] if data else None


_BACKLOG = 2048
#: Connections that are taken up in one turn of the loop: it must count them before it takes more.
_AT_ONCE = 8
_LOOK_EVERY_S = 0.05
#: What shells add to the number of the signal that ended a program.
_SIGNALLED = 128
_log = logging.getLogger("polymux.server")


class _Server(uvicorn.Server):
    """uvicorn's server; streams end themselves first, and to be told to stop is no failure."""

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        shutdown_timeout_s: float,
        on_ready: Callable[[_Server], object],
    ) -> None:
        super().__init__(config)
        self._state = state
        self._shutdown_timeout_s = shutdown_timeout_s
        self._on_ready = on_ready
        #: None where signals do not come here.
        self.watchdog: ShutdownWatchdog | None = None
        #: When it was told to stop, on `time.monotonic`'s clock; 0 before.
        self._told_at = 0.0
        #: What the process ends with.
        self.status = 0

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Lets work end, jobs included, with the door open: who comes is told to come back."""
        until = (self._told_at or time.monotonic()) + self._shutdown_timeout_s
        while (
            (self.server_state.tasks or self._state.has_jobs)
            and not self.force_exit
            and time.monotonic() < until
        ):
            await asyncio.sleep(_LOOK_EVERY_S)
        self._state.interrupt()
        left_s = 0.0 if self.force_exit else max(0.0, until - time.monotonic())
        self.config.timeout_graceful_shutdown = left_s  # type: ignore[assignment]
        late = asyncio.create_task(
            self._close_late(set(self.server_state.connections)), name="polymux late connections"
        )
        try:
            await super().shutdown(sockets)
        finally:
            late.cancel()

    async def _close_late(self, known: set[object]) -> None:
        """Closes who was taken up before the door was shut, and is told of only after it.

        uvicorn closes those that are known in that moment, and then waits for all.
        """
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            for connection in self.server_state.connections - known:
                known.add(connection)
                connection.shutdown()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tells that it is ready when it is, signals included."""
        with self._handshakes_bounded():
            await super().startup(sockets)
        for one in sockets or ():
            # asyncio has made the queue as short as what is taken up at once.
            one.listen(_BACKLOG)
        self._on_ready(self)

    @contextmanager
    def _handshakes_bounded(self) -> Iterator[None]:
        """Whoever begins TLS counts at once, and has as long as a header to go on.

        uvicorn has no word for either. Of asyncio's own, a minute, a stranger could hold all
        connections, and uncounted.
        """
        loop = asyncio.get_running_loop()
        own = loop.create_server
        header_s = self._state.settings.limits.header_s

        async def bounded(make: Any, *, ssl: SSLContext, **more: Any) -> asyncio.Server:
            return await own(partial(Handshake, make, ssl, header_s), **more)

        if self.config.is_ssl:
            loop.create_server = bounded  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            loop.create_server = own  # type: ignore[method-assign]

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """The first time work may end, the second time it is left."""
        if self.should_exit:
            self.force_exit = True
            self.status = _SIGNALLED + sig
        self.should_exit = True
        self._told_at = self._told_at or time.monotonic()
        if self.watchdog is not None:
            self.watchdog.notify(self.status)
        if self._state.ready:
            self._state.service.drain()
        # The handler runs between any two instructions of the loop's thread.
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self._state.stopping.set()
        if self.force_exit:
            self._state.interrupt()
            for connection in list(self.server_state.connections):
                connection.transport.abort()
            for task in list(self.server_state.tasks):
                task.cancel()

    _loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Remembers the loop, for signals; was it told to stop already, it does not begin."""
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            self._loop.add_signal_handler(signal.SIGHUP, self._reload)
            if signals.pending_reload():
                self._reload()
        if not self.should_exit:
            await super().serve(sockets)

    def _reload(self) -> None:
        try:
            self._state.reload()
        except PolymuxError as error:
            _log.error("the configuration stays as it was: %s", error)
        except Exception:
            _log.exception("the configuration stays as it was")


def serve(
    settings: ServerSettings,
    *,
    path: Path | None = None,
    backends: Sequence[Backend] | None = None,
    on_ready: Callable[[_Server, str], object],
) -> int:
    """Runs a server until SIGTERM or SIGINT.

    Args:
        settings: Everything; port 0 takes any that is free.
        path: The file that the settings are from, read again at SIGHUP; None for none.
        backends: Instead of those that the settings name. Default: none.
        on_ready: Called with the server and its address when it takes requests.

    Returns:
        0 when it was told to stop; 128 and the number of the signal, when it was told once more
        and left what it did.

    Raises:
        PolymuxError: It cannot start: the address is in use, the store is, there are no keys.
    """
    with _listener(settings) as listener:
        return _serve_on(listener, settings, path, backends, on_ready)


def _serve_on(
    listener: socket.socket,
    settings: ServerSettings,
    path: Path | None,
    backends: Sequence[Backend] | None,
    on_ready: Callable[[_Server, str], object],
) -> int:
    settings = replace(settings, port=listener.getsockname()[1])
    state = ServerState(settings, backends=backends)
    state.watch_file(path)
    config = _config(state)
    server = _Server(
        config, state, settings.shutdown_timeout_s, lambda ready: on_ready(ready, settings.base_url)
    )

    async def main() -> None:
        # To the very end: a signal while engines are ended must not leave them.
        with server.capture_signals():
            # Not by the application's lifespan: what goes wrong there would be a traceback.
            await state.start()
            _warn_of_links(settings)
            try:
                await server.serve([listener])
            finally:
                await state.stop()

    try:
        config.load()
    except OSError as error:
        raise InvalidRequestError(f"the certificate or its key: {error}") from error
    if threading.current_thread() is threading.main_thread():
        server.watchdog = ShutdownWatchdog(settings.shutdown_timeout_s)
    try:
        asyncio.run(main())
    finally:
        if server.watchdog is not None:
            server.watchdog.close()
    return server.status


def _warn_of_links(settings: ServerSettings) -> None:
    if settings.listens_everywhere and settings.public_url is None:
        _log.warning(
            "listening on all addresses: links to results begin with %s, which leads to this "
            "machine from itself alone; set `public_url` to what callers use",
            settings.base_url,
        )


def _config(state: ServerState) -> uvicorn.Config:
    settings = state.settings
    return uvicorn.Config(
        front_of(state),
        http=protocol_with(settings.limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        backlog=_AT_ONCE,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, round(settings.limits.keep_alive_s)),
        ssl_certfile=None if settings.tls_cert is None else os.fspath(settings.tls_cert),
        ssl_keyfile=None if settings.tls_key is None else os.fspath(settings.tls_key),
    )


def _listener(settings: ServerSettings) -> socket.socket:
    name = display_name(settings.host)
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise InvalidRequestError(f"host {name}: {error.strerror}") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise InvalidRequestError(
            f"cannot listen on {name}, port {settings.port}: {error.strerror}"
        ) from error
    listener.setblocking(False)  # noqa: FBT003
    return listener


def set_up_logging(level: str, form: str = "text") -> None:
    """Lines on standard error; one a record, without what a terminal would interpret.

    Args:
        level: ``"debug"``, ``"info"``, ``"warning"`` or ``"error"``.
        form: ``"text"``, or ``"json"`` for an object on each line. Default: ``"text"``.
    """
    handler: logging.Handler
    try:
        handler = NonBlockingHandler(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        handler = logging.StreamHandler(sys.stderr)  # Somebody has put an object in its place.
    plain = PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else plain)
    # No line tells them, and each costs every record ("Optimization" in the howto of `logging`).
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - as that howto says
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn.error", "mcp"):
        logging.getLogger(name).setLevel(logging.WARNING)
