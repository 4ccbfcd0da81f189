"""Memory for models: what one will take, and whose is given back to make room for it."""

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
    """The memory that an engine takes once it is loaded, about; None if nobody knows."""
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
        limit_bytes: Most that they may take together; None for what the machine has.
        free: Tells what the machine has left, in bytes. Default: as Linux tells it.
    """

    def __init__(
        self, limit_bytes: int | None = None, free: Callable[[], int | None] | None = None
    ) -> None:
        self._limit_bytes = limit_bytes
        self._free = free or machine_free_bytes
        self._engines: list[EngineBackend] = []
        #: That were told that there is room, and may be loading still.
        self._promised: set[EngineBackend] = set()

    def add(self, engine: EngineBackend) -> None:
        """One that may be asked to give its memory back."""
        self._engines.append(engine)

    async def make_room(self, engine: EngineBackend) -> None:
        """Ends idle engines, the longest unused first, until this one can be loaded.

        The room is its own from then on: what others load at the same time has to fit beside it.

        Raises:
            OverloadedError: The others are at work (code ``overloaded``).
            NoBackendError: It would not fit alone.
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
            f"{engine.name} needs about {needed // _MIB} MiB of memory, and {left // _MIB} MiB "
            "are free for it"
        )
        others = (one for one in self._engines if one is not engine)
        if any(one.process is not None or one in self._promised for one in others):
            raise status_error(
                errors.OverloadedError,
                f"{words} while others work: ask again later",
                retry_after_s=_RETRY_AFTER_S,
            )
        raise status_error(
            errors.NoBackendError,
            f"{words}: choose a smaller model, a shorter context, or raise "
            "limits.engines_memory_bytes",
        )

    def _left(self) -> int:
        """What nobody has, and nobody was promised."""
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
