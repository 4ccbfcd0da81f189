"""A clock that jumps to the next wake-up time when all coroutines sleep."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

#: A time of day, in seconds since 1970.
BEGIN = 1_800_000_000.0


class FakeClock:
    """Seconds from 0; `now` may be set. `run` runs coroutines that wait with `sleep`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = itertools.count()
        self._sleeping: list[tuple[float, int, asyncio.Future[None]]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleeping, (self.now + seconds, next(self._numbers), future))
        await future

    async def run(self, *work: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run all coroutines to their end; return results and exceptions."""
        together = asyncio.gather(*work, return_exceptions=True)
        while not together.done():
            for _ in range(20):
                await asyncio.sleep(0)
            if not together.done() and self._sleeping:
                self.now, _, future = heapq.heappop(self._sleeping)
                if not future.done():
                    future.set_result(None)
        return list(together.result())
