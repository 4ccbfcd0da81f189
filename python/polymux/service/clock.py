"""Seconds since 1970 that make no leaps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A larger step against the time since the machine was started is a leap.
LARGEST_STEP_S = 3600.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
#: Where the time since then is counted from elsewhere (time_namespaces(7)).
_COUNTED_FROM = Path("/proc/self/timens_offsets")


class SteadyClock:
    """The system's clock, but for its leaps.

    A clock that is set back or far ahead while the server runs must not end every file and every
    key at once. So steps of over an hour against the monotonic clock are left out, and smaller
    ones, by which clocks are corrected, are followed.

    Example:
        >>> from polymux.service.clock import SteadyClock
        >>> clock = SteadyClock()
        >>> clock() <= clock()
        True
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] | None = None,
        boot: str | None = None,
    ) -> None:
        """Believes the system's clock as it is now."""
        #: Which start of the machine `since_boot_s` counts from; empty where nobody knows.
        self.boot = _boot() if boot is None else boot
        self._wall = wall
        self._monotonic = monotonic or _since_boot
        self._offset_s = wall() - self._monotonic()

    def __call__(self) -> float:
        """Seconds since 1970."""
        offset_s = self._wall() - self._monotonic()
        if abs(offset_s - self._offset_s) <= LARGEST_STEP_S:
            self._offset_s = offset_s
        return self._monotonic() + self._offset_s

    def since_boot_s(self) -> float:
        """By the clock that makes no leaps."""
        return self._monotonic()


def _boot() -> str:
    try:
        boot = _BOOT.read_text("ascii").strip()
        offsets = _COUNTED_FROM.read_text("ascii") if _COUNTED_FROM.exists() else ""
    except (OSError, ValueError):
        return ""
    return " ".join((boot, *offsets.split()))


def _since_boot() -> float:
    """Seconds that go on while the machine sleeps; `time.monotonic` stands still then."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
