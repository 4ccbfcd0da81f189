"""``polymux serve`` on the native front: signals, start and shutdown."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux.errors import PolymuxError
from polymux.server import signals
from polymux.server.http.connection_limit import max_connections
from polymux.server.http.front import AsgiFront

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from types import FrameType

    from polymux.server.run import ShutdownWatchdog
    from polymux.server.state import ServerState

_log = logging.getLogger("polymux.server")

_LOOK_EVERY_S = 0.05
#: Added to a signal number for the exit status, as shells do.
_SIGNALLED = 128


class NativeServer:
    """Serves an application until a stop signal: the first lets work end, the second cancels it.

    Attributes:
        status: Exit status of the process.
        watchdog: Ends the process if it does not end by itself; None if this thread does not
            receive signals.
    """

    def __init__(
        self,
        app: Callable[..., Any],
        state: ServerState,
        shutdown_timeout_s: float,
        on_ready: Callable[[NativeServer], object],
    ) -> None:
        self._app = app
        self._state = state
        self._shutdown_timeout_s = shutdown_timeout_s
        self._on_ready = on_ready
        self.watchdog: ShutdownWatchdog | None = None
        self.status = 0
        self.front: AsgiFront | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._should_exit = False
        self._force_exit = False
        self._stopped = asyncio.Event()
        #: Time of the first stop signal on `time.monotonic`'s clock; 0 before.
        self._first_signal_at = 0.0

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle stop signals inside, if this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
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

    @property
    def open_connections(self) -> int:
        """Number of connections."""
        return 0 if self.front is None else self.front.connections

    def _stop(self) -> None:
        self._state.stopping.set()
        self._stopped.set()
        if self._force_exit:
            self._state.interrupt()
            if self.front is not None:
                self.front.abort()

    async def serve(self, listener: socket.socket) -> None:
        """Serve until a stop signal, and then until running work has ended or must end."""
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            self._loop.add_signal_handler(signal.SIGHUP, self._reload)
            if signals.pending_reload():
                self._reload()
        if self._should_exit:
            return
        settings = self._state.settings
        self.front = AsgiFront(self._app, listener, settings, max_connections())
        try:
            self._on_ready(self)
            await self._stopped.wait()
            await self._shut_down(self.front)
        finally:
            self.front.close()

    async def _shut_down(self, front: AsgiFront) -> None:
        """Let work and jobs end while still accepting connections, to answer with 503."""
        until = self._first_signal_at + self._shutdown_timeout_s

        async def wait_while(busy: Callable[[], bool]) -> None:
            while busy() and not self._force_exit and time.monotonic() < until:
                await asyncio.sleep(_LOOK_EVERY_S)

        await wait_while(lambda: bool(front.tasks) or self._state.has_jobs)
        self._state.interrupt()
        front.drain()
        await wait_while(lambda: bool(front.tasks) or front.connections > 0)
        front.abort()
        if front.tasks:
            await asyncio.wait(front.tasks, timeout=1.0)

    def _reload(self) -> None:
        try:
            self._state.reload()
        except PolymuxError as error:
            _log.error("cannot reload the settings, so they stay unchanged: %s", error)
        except Exception:
            _log.exception("cannot reload the settings, so they stay unchanged")
