"""List the models of an upstream with OpenAI's model list, if the settings name none."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from polymux import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.upstreams.client import UpstreamServer

_PATH = "/models"
#: Timeout of the upstream's response, because a client waits for the list.
_MAX_LISTING_S = 3.0
_KEPT_S, _KEPT_AFTER_FAILURE_S = 60.0, 10.0
_MAX_NAMES = 1000
_MAX_NAME_CHARACTERS = 200


class ModelListing:
    """Caches the model list of an upstream for a minute.

    After a failure, keeps the previous list and retries after ten seconds.

    Args:
        path: Path of the list after the base URL. Default: ``"/models"``.
    """

    def __init__(
        self,
        server: UpstreamServer,
        path: str = _PATH,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._path = path
        self._clock = clock
        self._asking = asyncio.Lock()
        self._names: tuple[str, ...] = ()
        self._until = float("-inf")

    async def names(self) -> tuple[str, ...]:
        """Return at most 1,000 model names; empty if the upstream has no list."""
        async with self._asking:
            if self._clock() >= self._until:
                kept_s = _KEPT_S
                try:
                    async with asyncio.timeout(_MAX_LISTING_S):
                        value = await self._server.ask_json("models", "GET", self._path)
                    self._names = _names_in(value)
                except (errors.PolymuxError, TimeoutError):
                    kept_s = _KEPT_AFTER_FAILURE_S
                self._until = self._clock() + kept_s
            return self._names


def _names_in(value: Any) -> tuple[str, ...]:
    entries = value.get("data") if isinstance(value, dict) else None
    found: dict[str, None] = {}
    for entry in entries if isinstance(entries, list) else ():
        name = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(name, str) and 0 < len(name) <= _MAX_NAME_CHARACTERS and name.isprintable():
            found[name] = None
            if len(found) == _MAX_NAMES:
                break
    return tuple(found)
