"""How often an engine's process has crashed of late, and so when another one may be started."""

from __future__ import annotations

from collections import deque

from polymux import errors
from polymux.service.errors import refusal

MOST_CRASHES = 3
CRASHES_WITHIN_S = 300.0
_FIRST_PAUSE_S = 0.2


class Crashes:
    """The latest crashes of one engine; times are those of `time.monotonic`, as any thread has."""

    def __init__(self) -> None:
        """There was none."""
        self._noted: deque[float] = deque(maxlen=MOST_CRASHES)

    def note(self, now: float) -> None:
        """There was one."""
        self._noted.append(now)

    def count(self, now: float) -> int:
        """How many there were of late."""
        return sum(now - one < CRASHES_WITHIN_S for one in self._noted)

    def blocked_s(self, now: float) -> float:
        """For how long no process is started, after so many; 0 where one may be."""
        if self.count(now) < MOST_CRASHES:
            return 0.0
        return self._noted[0] + CRASHES_WITHIN_S - now

    def told(self) -> str:
        """Why the engine is left alone."""
        return f"{MOST_CRASHES} crashes in {CRASHES_WITHIN_S:.0f} s"

    def check(self, name: str, now: float) -> None:
        """Refuses work for an engine that is left alone.

        Raises:
            OverloadedError: It is.
        """
        blocked_s = self.blocked_s(now)
        if blocked_s > 0:
            raise refusal(
                errors.OverloadedError,
                f"the engine {name} has crashed {MOST_CRASHES} times in "
                f"{CRASHES_WITHIN_S / 60:.0f} minutes and is left alone for a while",
                code="engine_broken",
                retry_after_s=blocked_s,
            )

    def pause_s(self, now: float) -> float:
        """How long the next start has to wait: twice as long after each crash."""
        count = self.count(now)
        return _FIRST_PAUSE_S * 2 ** (count - 1) if count else 0.0
