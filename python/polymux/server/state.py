"""The state of one server: settings, API keys, gate, metrics and the running service."""

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
#: Settings that a reload does not change: addresses, links, storage and backends.
_KEPT = (
    "host", "port", "public_url", "store", "compat", "tls_cert", "tls_key", "engines", "upstreams",
    "songs", "song_recognition", "song_search", "download", "summaries", "routes", "fetch",
    "shutdown_timeout_s", "ray",
)  # fmt: skip
_KEPT_LIMITS = (
    "queue", "memory_bytes", "max_generation_s", "engines_memory_bytes", "duration_s", "pixels",
    "header_s", "keep_alive_s", "connections_per_address",
)  # fmt: skip

#: Name of the key for commands of this account.
_LOCAL = "local"


class ServerState:
    """The state of one server.

    Args:
        path: The settings file, which is read again on reload; None without a file.
        backends: Backends that replace those of the settings.
        adds_local_key: Whether to create a key for this account even if there are other keys.
    """

    def __init__(
        self,
        settings: ServerSettings,
        path: Path | None = None,
        backends: Sequence[Backend] | None = None,
        *,
        adds_local_key: bool = False,
    ) -> None:
        self._adds_local_key = adds_local_key
        self.settings = settings
        self._path = path
        self._keeps_origins = False
        self._from_file: ServerSettings | None = None
        self._backends = backends
        self.keys = KeyFile(settings.key_file)
        self.gate = Gate(settings, self.keys)
        self._on_gate_change: Callable[[], object] = lambda: None
        self.metrics = Metrics()
        self._service: Service | None = None
        #: Set when the server starts to shut down: streams end themselves.
        self.stopping = asyncio.Event()
        self._at_stop: list[Callable[[], Awaitable[None]]] = []
        #: API key for CLI commands of this account; None if the account has its own key.
        self._local_key: str | None = None

    @property
    def local_key(self) -> str | None:
        """API key for commands of this account; None if the server does not accept one."""
        return self._local_key

    def on_gate_change(self, call: Callable[[], object]) -> None:
        """Call a function now, and whenever the rules or keys of the gate have changed."""
        self._on_gate_change = self.keys.on_change = call
        call()

    @property
    def service(self) -> Service:
        if self._service is None:
            raise RuntimeError(
                "the server has not started. Enable lifespan events for the application. If it "
                "uses polymux.server.router, also enter polymux.server.lifespan in its lifespan"
            )
        return self._service

    @property
    def ready(self) -> bool:
        return self._service is not None and not self.stopping.is_set()

    @property
    def has_jobs(self) -> bool:
        return self._service is not None and self._service.jobs.count > 0

    async def start(self) -> None:
        """Open the store and create the engines, without loading them.

        Raises:
            StoreError: The store is in use, damaged or not writable.
            InvalidRequestError: The file of API keys is missing, empty or invalid.
        """
        settings = self.settings
        self.stopping = asyncio.Event()
        store = await asyncio.to_thread(
            Store,
            settings.store.folder,
            max_bytes=settings.store.bytes,
            max_key_bytes=settings.store.max_key_bytes,
            max_key_jobs=settings.store.jobs_per_key,
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
        """Unregister the server, so CLI commands find this account's other servers."""
        if self._local_key is not None:
            with suppress(OSError):
                retire(self._local_key, self.settings.base_url)

    def _check_keys(self) -> None:
        if self.keys.keys():
            self._tell_address()
            if self._adds_local_key and self._local_key is None:
                self._add_beside_others()
            return
        if not self.settings.loopback_only:
            raise InvalidRequestError(
                "no API keys: a server that other machines can reach requires at least one. Create "
                "it with `polymux keys add NAME`"
            )
        self._add_local_key()

    def _add_beside_others(self) -> None:
        """Create a key for this account, unless it was created before or cannot be stored."""
        names = {one.name for one in self.keys.keys()}  # noqa: SIM118 - not a dict
        if not self.settings.loopback_only or _LOCAL in names:
            return
        path = self.keys.path
        try:
            if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
                self._add_local_key()
        except InvalidRequestError as error:
            self._local_key = None
            _log.warning("commands of this account have no API key: %s", error)

    def _add_local_key(self) -> None:
        place = local_key_path()

        def keep(text: str) -> None:
            try:
                announce(text, self.settings.base_url)
            except OSError as error:
                name = display_name(os.fspath(place))
                raise InvalidRequestError(
                    f"cannot store an API key for this account in {name}: {error.strerror}"
                ) from error
            self._local_key = text

        self.keys.add(_LOCAL, before=keep)
        _log.info(
            "created an API key for this account and stored it in %s",
            display_name(os.fspath(place)),
        )

    def _tell_address(self) -> None:
        """Register the server for CLI commands of this account, if it accepts their key."""
        if not self.settings.loopback_only:
            return
        self._local_key = own_key(
            lambda text: self.keys.find(text.encode(), time.time()) is not None
        )
        if self._local_key is not None:
            with suppress(OSError):
                announce(self._local_key, self.settings.base_url)

    def interrupt(self) -> None:
        """Treat all later cancellations as interruptions by the shutdown."""
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
        """Await this callback at shutdown, while the service still exists."""
        self._at_stop.append(callback)

    def watch_file(self, path: Path | None) -> None:
        self._path = path
        if path is not None:
            self._from_file = read_settings(path)
            # Origins of the command line replace those of the file, also after a reload.
            self._keeps_origins = self.settings.allowed_origins != self._from_file.allowed_origins

    def reload(self) -> None:
        """Read the settings file again; connections, engines and the store stay unchanged."""
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
                # Do not switch to a file without keys: all clients would be locked out.
                name = display_name(os.fspath(settings.key_file))
                raise InvalidRequestError(
                    f"keys: {name} has no API keys, so all clients would be locked out. Add one "
                    "with `polymux keys add NAME`, then reload again"
                )
            self.settings, self.keys = settings, keys
            self.gate = Gate(settings, keys, self.gate.quotas)
            self.on_gate_change(self._on_gate_change)
            waiting = ", ".join(_changed(self._from_file or found, found))
        _log.info("reloaded the settings")
        if waiting:
            _log.warning("changes to these settings require a restart: %s", waiting)


def _changed(before: ServerSettings, now: ServerSettings) -> list[str]:
    """Return the settings that differ but require a restart."""
    names = [name for name in _KEPT if getattr(before, name) != getattr(now, name)]
    limits = [name for name in _KEPT_LIMITS
              if getattr(before.limits, name) != getattr(now.limits, name)]  # fmt: skip
    return [*names, *(f"limits.{name}" for name in limits)]
