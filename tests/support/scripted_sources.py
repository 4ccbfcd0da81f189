"""Scripted song sources, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from polymux.upstreams.song_search.cache import SongCache
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError
from polymux.upstreams.song_search.rate_limit import Rate

from support.fake_clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

LIMITED = ProviderError(ErrorKind.LIMITED, "it wants to be asked less often", 20.0)
FAILED = ProviderError(ErrorKind.FAILED, "it answered with status 500")
LATE = ProviderError(ErrorKind.LATE, "it did not answer in time")
REFUSED = ProviderError(ErrorKind.REFUSED, "it refuses this text (status 400)", counts=False)


class ScriptedSource:
    """Returns the scripted answer or raises the scripted error."""

    def __init__(self, name: str, found: Any, rate: Rate) -> None:
        self.name = name
        self.rate = rate
        self.found = found
        self.trouble: ProviderError | None = None
        self.before: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.asked: list[Any] = []
        self.closed = False

    async def answered(self, asked: Any) -> Any:
        self.asked.append(asked)
        if self.before is not None:
            await self.before()
        if self.trouble is not None:
            raise self.trouble
        return self.found

    def close(self) -> None:
        self.closed = True


class Scene:
    """A scheduler with scripted sources and its own clock."""

    def __init__(self, kind: Any, *sources: Any, deadline_s: float = 30) -> None:
        self.clock = FakeClock()
        self.sources = sources
        self.cache = SongCache(1 << 20, 1000, 100, self.clock)
        pace: dict[str, Any] = {"sleep": self.clock.sleep, "chance": lambda: 1.0}
        self.made = kind(sources, self.cache, deadline_s, clock=self.clock, **pace)

    async def slowly(self) -> None:
        await self.clock.sleep(1)

    def together(self, *work: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run calls together; return results and exceptions."""

        async def run() -> list[Any]:
            return await self.clock.run(*work)

        return asyncio.run(run())

    def alone(self, work: Coroutine[Any, Any, Any]) -> Any:
        [found] = self.together(work)
        if isinstance(found, BaseException):
            raise found
        return found


MANY = Rate(100, 100.0)
