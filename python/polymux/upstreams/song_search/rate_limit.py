"""How often a catalogue is asked, and how long it is left alone after a failure."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, NamedTuple

from polymux.upstreams.song_search.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Clock = Callable[[], float]

_FIRST_PAUSE_S = 2.0
_MAX_PAUSE_S = 300.0
_MAX_DOUBLINGS = 10
#: Of a token; sums of fractions are never whole.
_ALMOST = 1e-6


class Rate(NamedTuple):
    """How often something may be asked.

    Attributes:
        burst: Times at once.
        per_s: Times per second after that.
    """

    burst: int
    per_s: float


class TokenBucket:
    """Lets so many through; the others wait, first come first. Belongs to one event loop."""

    def __init__(
        self,
        rate: Rate,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._tokens = float(rate.burst)
        self._filled_at = clock()
        self._waiting = 0
        #: Held by the first of those who wait: it alone watches the clock.
        self._head = asyncio.Lock()

    async def take(self, max_s: float) -> float | None:
        """Waits for a turn, where that comes in time. Cancelled, it costs no turn.

        Args:
            max_s: Most that may be waited.

        Returns:
            None with a turn; else after how many seconds there would be one.
        """
        wait_s = self._wait_s(self._waiting)
        if wait_s > max_s:
            return wait_s
        self._waiting += 1
        try:
            async with self._head:
                while (wait_s := self._wait_s(0)) > 0:
                    await self._sleep(wait_s)
                self._tokens -= 1
        finally:
            self._waiting -= 1
        return None

    def give_back(self) -> None:
        self._tokens = min(self._tokens + 1, self._rate.burst)

    def _wait_s(self, before: int) -> float:
        now = self._clock()
        grown = self._tokens + (now - self._filled_at) * self._rate.per_s
        self._tokens, self._filled_at = min(grown, self._rate.burst), now
        lacking = before + 1 - self._tokens
        return lacking / self._rate.per_s if lacking > _ALMOST else 0.0


class BackOff:
    """Leaves a catalogue alone after a failure: longer each time, and as long as it asks for.

    Args:
        chance: A random number from 0 to 1, so that not all servers come back at once.
    """

    def __init__(
        self, clock: Clock = time.monotonic, chance: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._began_at = self._until = float("-inf")
        self.trouble: ProviderError | None = None

    @property
    def left_s(self) -> float:
        """How long it is still left alone; 0 when it can be asked."""
        return max(0.0, self._until - self._clock())

    def check(self) -> None:
        """Raises while it is left alone.

        Raises:
            ProviderError: What it had failed with.
        """
        left_s = self.left_s
        if left_s > 0 and self.trouble is not None:
            reason = f"left alone for {left_s:.0f} s, as {self.trouble.reason}"
            raise ProviderError(self.trouble.kind, reason, left_s, counts=False)

    def failed(self, trouble: ProviderError, asked_at: float) -> None:
        """It has failed at what it was asked then; what was asked before the pause counts once."""
        if asked_at < self._began_at:
            return
        doubled_s = _FIRST_PAUSE_S * 2 ** min(self._failures, _MAX_DOUBLINGS)
        pause_s = min(doubled_s, _MAX_PAUSE_S) * (1 + self._chance()) / 2
        self._failures += 1
        self._began_at = self._clock()
        self._until = self._began_at + max(pause_s, trouble.retry_after_s or 0.0)
        # Another one: that which is raised leads to all that was at work.
        self.trouble = ProviderError(trouble.kind, trouble.reason)

    def succeeded(self, asked_at: float) -> None:
        if asked_at >= self._began_at:
            self._failures = 0
            self.trouble = None
