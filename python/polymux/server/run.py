"""``polymux serve``: the application on uvicorn, in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import uvicorn

from polymux._text import display_name
from polymux.errors import InvalidRequestError, PolymuxError
from polymux.server.app import create_app
from polymux.server.protocol import protocol_with

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import FrameType

    from polymux.server.settings import ServerSettings
    from polymux.server.state import ServerState
    from polymux.service.backend import Backend

_BACKLOG = 2048
_LOOK_EVERY_S = 0.05
_log = logging.getLogger("polymux.server")


class _Server(uvicorn.Server):
    """uvicorn's server; streams end themselves first, and to be told to stop is no failure."""

    def __init__(
        self, config: uvicorn.Config, state: ServerState, on_ready: Callable[[_Server], object]
    ) -> None:
        super().__init__(config)
        self._state = state
        self._on_ready = on_ready
        #: When it was told to stop, on `time.monotonic`'s clock; 0 before.
        self.told_at = 0.0

    async def finish_jobs(self, grace_s: float) -> None:
        """Lets jobs go on that nobody waits for on a connection, as long as the grace lasts."""
        until = (self.told_at or time.monotonic()) + grace_s
        while self._state.has_jobs and not self.force_exit and time.monotonic() < until:
            await asyncio.sleep(_LOOK_EVERY_S)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tells that it is ready when it is, signals included."""
        await super().startup(sockets)
        self._on_ready(self)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """The first time work may end, the second time it is left."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self.told_at = self.told_at or time.monotonic()
        if self._state.ready:
            self._state.service.drain()
        # The handler runs between any two instructions of the loop's thread.
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._state.stopping.set)

    _loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Remembers the loop, for signals."""
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            self._loop.add_signal_handler(signal.SIGHUP, self._reload)
        await super().serve(sockets)

    def _reload(self) -> None:
        try:
            self._state.reload()
        except PolymuxError as error:
            _log.error("the configuration stays as it was: %s", error)


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
        0 when it was told to stop.

    Raises:
        PolymuxError: It cannot start: the address is in use, the store is, there are no keys.
    """
    listener = _listener(settings)
    settings = replace(settings, port=listener.getsockname()[1])
    app = create_app(settings, backends=backends)
    state: ServerState = app.state.polymux
    state.watch_file(path)
    config = uvicorn.Config(
        app,
        http=protocol_with(settings.limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, round(settings.limits.keep_alive_s)),
        timeout_graceful_shutdown=max(1, round(settings.grace_s)),
        ssl_certfile=None if settings.tls_cert is None else os.fspath(settings.tls_cert),
        ssl_keyfile=None if settings.tls_key is None else os.fspath(settings.tls_key),
    )
    server = _Server(config, state, lambda ready: on_ready(ready, settings.base_url))

    async def main() -> None:
        # Not by the application's lifespan: what goes wrong there would be told by a traceback.
        await state.start()
        try:
            await server.serve([listener])
            await server.finish_jobs(settings.grace_s)
        finally:
            await state.stop()

    try:
        config.load()
    except OSError as error:
        raise InvalidRequestError(f"the certificate or its key: {error}") from error
    asyncio.run(main())
    return 0


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


def set_up_logging(level: str) -> None:
    """Lines on standard error; one a record, without what a terminal would interpret.

    Args:
        level: ``"debug"``, ``"info"``, ``"warning"`` or ``"error"``.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


class _Plain(logging.Formatter):
    """Keeps a record on its lines: control characters in it are escaped, keys are hidden."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's text."""
        from polymux._secrets import hidden
        from polymux._text import printable

        return "\n".join(printable(line) for line in hidden(super().format(record)).split("\n"))
