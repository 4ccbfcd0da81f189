"""The memory budget of engines: estimates, and unloading idle engines to free memory."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.memory import machine_free_bytes, resident_bytes
from polymux.engines.registry import ENGINES, loaded
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux.engines.process.process import EngineProcess
    from polymux.engines.process.supervisor import EngineBackend

_MIB = 1 << 20
_RETRY_AFTER_S = 30.0


def needed_bytes(family: str, options: Mapping[str, Any]) -> int | None:
    """Estimate the memory of a loaded engine; None if unknown."""
    spec = ENGINES.get(family)
    needed = None if spec is None else spec.needed_bytes
    if not isinstance(needed, str):
        return needed
    with suppress(OSError, ValueError, struct.error, KeyError, errors.PolymuxError):
        estimate: int = loaded(needed)(options)
        return estimate
    return None


class MemoryBudget:
    """The memory that all engines share.

    Args:
        limit_bytes: Maximum for all engines together; None for the memory of the machine.
        free: Returns the free memory of the machine in bytes. Default: as reported by Linux.
    """

    def __init__(
        self, limit_bytes: int | None = None, free: Callable[[], int | None] | None = None
    ) -> None:
        self._limit_bytes = limit_bytes
        self._free = free or machine_free_bytes
        self._engines: list[EngineBackend] = []
        #: Engines for which `make_room` has reserved memory; they may still be loading.
        self._promised: set[EngineBackend] = set()

    def add(self, engine: EngineBackend) -> None:
        """Add an engine that may be unloaded."""
        self._engines.append(engine)

    async def make_room(self, engine: EngineBackend) -> None:
        """Unload idle engines, least recently used first, until this one fits.

        Reserves the memory, so engines that load at the same time cannot use it.

        Raises:
            OverloadedError: Busy engines use the memory (code ``overloaded``).
            NoBackendError: The engine does not fit even alone.
        """
        needed = engine.needed_bytes
        if needed is None:
            return
        self._promised.discard(engine)
        for other in sorted(self._engines, key=lambda one: one.rested_at):
            if self._left() >= needed:
                break
            if other is not engine and other.process is not None:
                await other.unload()
        left = self._left()
        if left >= needed:
            self._promised.add(engine)
            return
        words = (
            f"out of memory: engine {engine.name} needs about {needed // _MIB} MiB, and "
            f"{left // _MIB} MiB are available"
        )
        others = (one for one in self._engines if one is not engine)
        if any(one.process is not None or one in self._promised for one in others):
            raise status_error(
                errors.OverloadedError,
                f"{words} while other engines are busy. Try again later",
                retry_after_s=_RETRY_AFTER_S,
            )
        raise status_error(
            errors.NoBackendError,
            f"{words}. Choose a smaller model or a shorter context, or raise "
            "limits.engines_memory_bytes",
        )

    def _left(self) -> int:
        """Return the memory that is neither used nor reserved."""
        self._promised = {one for one in self._promised if one.loading is not None}
        coming = sum(
            max(0, (one.needed_bytes or 0) - _resident_bytes(one.loading)) for one in self._promised
        )
        found = self._free()
        left = found if found is not None else 1 << 62
        if self._limit_bytes is not None:
            processes = [one for each in self._engines for one in (each.process, each.loading)]
            left = min(left, self._limit_bytes - sum(map(_resident_bytes, processes)))
        return max(0, left - coming)


def _resident_bytes(process: EngineProcess | None) -> int:
    return 0 if process is None or process.pid is None else resident_bytes(process.pid)
