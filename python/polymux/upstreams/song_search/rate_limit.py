"""Rate limits of external services, and pauses after failures."""

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
#: Tolerance for floating-point errors, in tokens.
_ALMOST = 1e-6


class Rate(NamedTuple):
    """A rate limit.

    Attributes:
        burst: Number of requests allowed at once.
        per_s: Requests per second after that.
    """

    burst: int
    per_s: float


class TokenBucket:
    """A token bucket; requests without a token wait in FIFO order. Belongs to one event loop."""

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
        #: Held by the first waiting request, which alone sleeps until a token is available.
        self._head = asyncio.Lock()

    async def take(self, max_s: float) -> float | None:
        """Wait for a token, if it will be available in time. Cancellation uses no token.

        Args:
            max_s: Maximum time to wait, in seconds.

        Returns:
            None with a token; otherwise the seconds until one would be available.
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
    """Pauses a service after failures: longer each time, at least as long as it requests.

    Args:
        chance: Returns a random number from 0 to 1, so servers do not retry simultaneously.
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
        """Remaining pause in seconds; 0 without a pause."""
        return max(0.0, self._until - self._clock())

    def check(self) -> None:
        """Raise an error during a pause.

        Raises:
            ProviderError: The failure that caused the pause.
        """
        left_s = self.left_s
        if left_s > 0 and self.trouble is not None:
            reason = f"paused for {left_s:.0f} s because of a failure ({self.trouble.reason})"
            raise ProviderError(self.trouble.kind, reason, left_s, counts=False)

    def failed(self, trouble: ProviderError, asked_at: float) -> None:
        """Record a failure; failures of requests sent before the last pause do not count again."""
        if asked_at < self._began_at:
            return
        doubled_s = _FIRST_PAUSE_S * 2 ** min(self._failures, _MAX_DOUBLINGS)
        pause_s = min(doubled_s, _MAX_PAUSE_S) * (1 + self._chance()) / 2
        self._failures += 1
        self._began_at = self._clock()
        self._until = self._began_at + max(pause_s, trouble.retry_after_s or 0.0)
        # A copy, because the raised exception references its traceback and all frames.
        self.trouble = ProviderError(trouble.kind, trouble.reason)

    def succeeded(self, asked_at: float) -> None:
        if asked_at >= self._began_at:
            self._failures = 0
            self.trouble = None
