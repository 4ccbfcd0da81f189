"""What one server holds: its settings, keys, gate, counters, and the service while it runs."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name
from polymux.client.local_servers import announce, own_key, retire
from polymux.config import local_key_path
from polymux.errors import InvalidRequestError
from polymux.models.selection import remedy
from polymux.runtime.build import backends_of
from polymux.server.auth.api_keys import KeyFile
from polymux.server.auth.gate import Gate
from polymux.server.observability.metrics import Metrics
from polymux.server.settings.settings import ServerSettings, read_settings
from polymux.service.admission import Bounds
from polymux.service.service import Service
from polymux.service.store import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from polymux.service.backend import Backend

_log = logging.getLogger("polymux.server")
#: Where it listens, what its links are, where it keeps things and what it works with: as it began.
_KEPT = (
    "host", "port", "public_url", "store", "compat", "tls_cert", "tls_key", "engines", "upstreams",
    "songs", "song_recognition", "song_search", "download", "summaries", "routes", "fetch",
    "shutdown_timeout_s", "ray",
)  # fmt: skip
_KEPT_LIMITS = (
    "queue", "memory_bytes", "max_generation_s", "engines_memory_bytes", "duration_s", "pixels",
    "header_s", "keep_alive_s", "connections_per_address",
)  # fmt: skip


class ServerState:
    """One server.

    Args:
        settings: What it was told.
        path: The file that this came from, which is read again when it is asked to; None for none.
        backends: Instead of those that the settings name.
    """

    def __init__(
        self,
        settings: ServerSettings,
        path: Path | None = None,
        backends: Sequence[Backend] | None = None,
    ) -> None:
        self.settings = settings
        self._path = path
        self._keeps_origins = False
        self._from_file: ServerSettings | None = None
        self._backends = backends
        self.keys = KeyFile(settings.key_file)
        self.gate = Gate(settings, self.keys)
        self.metrics = Metrics()
        self._service: Service | None = None
        #: Set when it is told to stop: streams end themselves.
        self.stopping = asyncio.Event()
        self._at_stop: list[Callable[[], Awaitable[None]]] = []
        #: By which this account's commands reach it; None where that is none of its own.
        self._local_key: str | None = None

    @property
    def service(self) -> Service:
        if self._service is None:
            raise RuntimeError(
                "the server was not started: run the application with its lifespan, or enter "
                "polymux.server.lifespan in that of the application that includes the router"
            )
        return self._service

    @property
    def ready(self) -> bool:
        return self._service is not None and not self.stopping.is_set()

    @property
    def has_jobs(self) -> bool:
        return self._service is not None and self._service.jobs.count > 0

    async def start(self) -> None:
        """Opens the store and makes the engines; none is loaded.

        Raises:
            StoreError: The store is in use, damaged, or cannot be written.
            InvalidRequestError: There are no keys, or their file is wrong.
        """
        settings = self.settings
        self.stopping = asyncio.Event()
        store = await asyncio.to_thread(
            Store,
            settings.store.folder,
            cap_bytes=settings.store.bytes,
            life_s=settings.store.retention_s,
        )
        try:
            self._check_keys()
            backends = self._backends
            if backends is None:
                backends = backends_of(settings)
            self._service = Service(
                backends,
                store,
                routes=settings.routes,
                queue=settings.limits.queue,
                bounds=Bounds(settings.limits.memory_bytes, settings.limits.max_generation_s),
                on_spent=self.metrics.spent,
                remedy=remedy,
            )
            await self._service.start()
        except BaseException:
            self._leave()
            store.close()
            raise

    def _leave(self) -> None:
        """Lets others of this account's servers be found before this one."""
        if self._local_key is not None:
            with suppress(OSError):
                retire(self._local_key, self.settings.base_url)

    def _check_keys(self) -> None:
        if self.keys.keys():
            self._tell_address()
            return
        if not self.settings.loopback_only:
            raise InvalidRequestError(
                "no keys, and the server would be open to others than this machine: make one with "
                "`polymux keys add NAME`"
            )
        place = local_key_path()

        def keep(text: str) -> None:
            try:
                announce(text, self.settings.base_url)
            except OSError as error:
                name = display_name(os.fspath(place))
                raise InvalidRequestError(
                    f"a key for this account cannot be kept in {name}: {error.strerror}"
                ) from error
            self._local_key = text

        self.keys.add("local", before=keep)
        _log.warning("a key for this account was made: %s", display_name(os.fspath(place)))

    def _tell_address(self) -> None:
        """Lets this account's commands find the server, where their key is one of its own."""
        if not self.settings.loopback_only:
            return
        self._local_key = own_key(
            lambda text: self.keys.find(text.encode(), time.time()) is not None
        )
        if self._local_key is not None:
            with suppress(OSError):
                announce(self._local_key, self.settings.base_url)

    def interrupt(self) -> None:
        """Says that nobody has given up what is cancelled from now on: the server ends it."""
        if self._service is not None:
            self._service.jobs.interrupt()

    async def stop(self) -> None:
        self.stopping.set()
        callbacks, self._at_stop = self._at_stop, []
        for callback in callbacks:
            await callback()
        self._leave()
        service, self._service = self._service, None
        if service is not None:
            await service.close()

    def at_stop(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Has this awaited when it stops, while the service is still there."""
        self._at_stop.append(callback)

    def watch_file(self, path: Path | None) -> None:
        self._path = path
        if path is not None:
            self._from_file = read_settings(path)
            # The command line's stand in the place of the file's, after a reload too.
            self._keeps_origins = self.settings.allowed_origins != self._from_file.allowed_origins

    def reload(self) -> None:
        """Reads the settings again; connections, engines and the store stay as they are."""
        waiting = ""
        if self._path is not None:
            old, found = self.settings, read_settings(self._path)
            kept: dict[str, Any] = {name: getattr(old, name) for name in _KEPT}
            limits = {name: getattr(old.limits, name) for name in _KEPT_LIMITS}
            settings = replace(found, limits=replace(found.limits, **limits), **kept)
            if self._keeps_origins:
                settings = replace(settings, allowed_origins=old.allowed_origins)
            keys = KeyFile(settings.key_file)
            if not keys.keys() and settings.key_file != old.key_file:
                # A missing file has no keys: nobody would be let in any more.
                name = display_name(os.fspath(settings.key_file))
                raise InvalidRequestError(f"keys: there are none in {name}")
            self.settings, self.keys = settings, keys
            self.gate = Gate(settings, keys, self.gate.quotas)
            waiting = ", ".join(_changed(self._from_file or found, found))
        _log.info("the configuration was read again")
        if waiting:
            _log.warning("what has changed in %s is taken when the server starts anew", waiting)


def _changed(before: ServerSettings, now: ServerSettings) -> list[str]:
    """Of what a running server keeps, what the file has otherwise than when it was started."""
    names = [name for name in _KEPT if getattr(before, name) != getattr(now, name)]
    limits = [name for name in _KEPT_LIMITS
              if getattr(before.limits, name) != getattr(now.limits, name)]  # fmt: skip
    return [*names, *(f"limits.{name}" for name in limits)]
