"""``polymux serve``: runs the application in one process until a stop signal."""

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
from typing import TYPE_CHECKING

from polymux._util.text import display_name
from polymux.errors import InvalidRequestError, PolymuxError
from polymux.server import signals
from polymux.server.app import front_of
from polymux.server.http.front import AsgiFront
from polymux.server.observability.logs import JsonFormatter, NonBlockingHandler, PlainFormatter
from polymux.server.state import ServerState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from polymux.server.settings.settings import ServerSettings
    from polymux.service.backend import Backend

#: Time for an orderly end after a second signal, and time to close after the shutdown timeout.
_AT_ONCE_S = 0.7
_CLOSING_S = 0.9
#: Time for canceled requests to end.
_CANCELING_S = 0.5


class ShutdownWatchdog:
    """Ends the process if a thread, disk or engine prevents a normal end.

    This is as safe as SIGKILL, which leaves the store intact: engines end with the process, and
    running jobs fail with ``interrupted`` when the store is opened again.

    Args:
        shutdown_timeout_s: Time for running work after the first signal.
    """

    def __init__(self, shutdown_timeout_s: float) -> None:
        self._shutdown_timeout_s = shutdown_timeout_s
        self._read_end, self._write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        threading.Thread(target=self._watch, name="polymux shutdown watchdog", daemon=True).start()

    def notify(self, status: int = 0) -> None:
        """Report a signal: the first starts the shutdown timeout, the second ends it.

        Args:
            status: Exit status if the watchdog must end the process, up to 255.
        """
        with suppress(OSError):
            os.write(self._write_end, bytes((status,)))

    def close(self) -> None:
        write_end, self._write_end = self._write_end, -1
        if write_end >= 0:
            os.close(write_end)

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
            os.close(self._read_end)

    def _next(self, max_s: float | None) -> int | None:
        """Wait for the next signal; returns its exit status, or None when the server ends."""
        if not select.select([self._read_end], [], [], max_s)[0]:
            raise TimeoutError
        data = os.read(self._read_end, 1)
        return data[0] if data else None


_BACKLOG = 2048
_LOOK_EVERY_S = 0.05
#: Added to a signal number for the exit status, as shells do.
_SIGNALLED = 128
_log = logging.getLogger("polymux.server")


class Server:
    """Serves an application until a stop signal: the first lets work end, the second cancels it.

    Attributes:
        status: Exit status of the process.
        watchdog: Ends the process if it does not end by itself; None if this thread does not
            receive signals.
        front: Receives requests; None before the start.
    """

    def __init__(self, state: ServerState, on_ready: Callable[[Server, str], object]) -> None:
        self._state = state
        self._on_ready = on_ready
        self.watchdog: ShutdownWatchdog | None = None
        self.status = 0
        self.front: AsgiFront | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()
        self._should_exit = False
        self._force_exit = False
        #: Time of the first stop signal on `time.monotonic`'s clock; 0 before.
        self._first_signal_at = 0.0

    @property
    def local_key(self) -> str | None:
        """API key for commands of this account; None if it has no key for this server."""
        return self._state.local_key

    @property
    def open_connections(self) -> int:
        """Number of connections."""
        return 0 if self.front is None else self.front.native.connections

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle stop signals inside, if this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        stops = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in stops}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, number: int, _: FrameType | None) -> None:
        """Handle a stop signal. Runs between any two instructions of the loop's thread."""
        if self._should_exit:
            self._force_exit = True
            self.status = _SIGNALLED + number
        self._should_exit = True
        self._first_signal_at = self._first_signal_at or time.monotonic()
        if self.watchdog is not None:
            self.watchdog.notify(self.status)
        if self._state.ready:
            self._state.service.drain()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self._state.stopping.set()
        self._stopped.set()
        if self._force_exit:
            self._state.interrupt()
            if self.front is not None:
                self.front.abort()

    async def serve(self, listener: socket.socket) -> None:
        """Serve until a stop signal, and then until running work has ended or must end."""
        settings = self._state.settings
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            self._loop.add_signal_handler(signal.SIGHUP, self._reload)
            if signals.pending_reload():
                self._reload()
        if self._should_exit:
            return
        app = front_of(self._state)
        front = self.front = AsgiFront(app, listener, settings)
        state = self._state
        state.on_gate_change(
            lambda: front.publish(state.gate.rules, state.keys.table, app.refusable)
        )
        self._on_ready(self, settings.base_url)
        await self._stopped.wait()
        await self._shut_down(self.front)

    async def close(self) -> None:
        """Close all connections. Call it after the engines have ended, so that canceled requests
        could end and get a response.
        """
        if self.front is None:
            return
        if self.front.tasks:
            await asyncio.wait(self.front.tasks, timeout=_CANCELING_S)
        self.front.close()

    async def _shut_down(self, front: AsgiFront) -> None:
        """Let work and jobs end while still accepting connections, to answer with 503."""
        until = self._first_signal_at + self._state.settings.shutdown_timeout_s

        async def wait_while(busy: Callable[[], bool]) -> None:
            while busy() and not self._force_exit and time.monotonic() < until:
                await asyncio.sleep(_LOOK_EVERY_S)

        await wait_while(lambda: bool(front.tasks) or self._state.has_jobs)
        self._state.interrupt()
        front.native.drain()
        await wait_while(lambda: bool(front.tasks) or self.open_connections > 0)
        for task in front.tasks:
            task.cancel()

    def _reload(self) -> None:
        try:
            self._state.reload()
        except PolymuxError as error:
            _log.error("cannot reload the settings, so they stay unchanged: %s", error)
        except Exception:
            _log.exception("cannot reload the settings, so they stay unchanged")


def serve(
    settings: ServerSettings,
    *,
    path: Path | None = None,
    backends: Sequence[Backend] | None = None,
    adds_local_key: bool = False,
    on_ready: Callable[[Server, str], object],
) -> int:
    """Run a server until SIGTERM or SIGINT.

    Args:
        settings: All settings; port 0 selects a free port.
        path: The settings file, which is read again on SIGHUP; None without a file.
        backends: Backends that replace those of the settings. Default: those of the settings.
        adds_local_key: Whether to create a key for commands of this account even if there are other
            keys. Default: only without other keys.
        on_ready: Called with the server and its URL when it accepts requests.

    Returns:
        0 after an orderly shutdown; 128 plus the signal number if a second signal canceled work.

    Raises:
        PolymuxError: The server cannot start: the address or the store is in use, or there are no
            API keys.
    """
    with _listener(settings) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        state = ServerState(settings, backends=backends, adds_local_key=adds_local_key)
        return _serve_on(listener, state, path, on_ready)


def _serve_on(
    listener: socket.socket,
    state: ServerState,
    path: Path | None,
    on_ready: Callable[[Server, str], object],
) -> int:
    state.watch_file(path)
    server = Server(state, on_ready)

    async def main() -> None:
        # Until the very end: a signal while engines end must not leave them running.
        with server.capture_signals():
            # Not in the application's lifespan, which would turn an error into a traceback.
            await state.start()
            _warn_of_links(state.settings)
            try:
                await server.serve(listener)
            finally:
                await state.stop()
                await server.close()

    if threading.current_thread() is threading.main_thread():
        server.watchdog = ShutdownWatchdog(state.settings.shutdown_timeout_s)
    try:
        asyncio.run(main())
    finally:
        if server.watchdog is not None:
            server.watchdog.close()
    return server.status


def _warn_of_links(settings: ServerSettings) -> None:
    if settings.listens_everywhere and settings.public_url is None:
        _log.warning(
            "listening on all addresses, but links to results start with %s, which works only on "
            "this machine. Set `public_url` to the URL that clients use",
            settings.base_url,
        )


def _listener(settings: ServerSettings) -> socket.socket:
    name = display_name(settings.host)
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise InvalidRequestError(f"host {name}: cannot be resolved: {error.strerror}") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise InvalidRequestError(
            f"cannot listen on {name}, port {settings.port}: {error.strerror}. Choose another host "
            "or port"
        ) from error
    listener.setblocking(False)  # noqa: FBT003
    return listener


def set_up_logging(level: str, form: str = "text") -> None:
    """Log to standard error, one line per record, without terminal control characters.

    Args:
        level: ``"debug"``, ``"info"``, ``"warning"`` or ``"error"``.
        form: ``"text"``, or ``"json"`` for one object per line. Default: ``"text"``.
    """
    handler: logging.Handler
    try:
        handler = NonBlockingHandler(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        handler = logging.StreamHandler(sys.stderr)  # sys.stderr was replaced by an object.
    plain = PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else plain)
    # No line contains these, and they slow down each record (logging HOWTO, "Optimization").
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - as documented in that HOWTO
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("mcp").setLevel(logging.WARNING)
