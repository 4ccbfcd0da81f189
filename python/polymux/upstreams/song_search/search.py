"""Looks for songs in one catalogue after the other, at the pace that each of them allows."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, NamedTuple

from polymux.upstreams.song_search.errors import ProviderError, told
from polymux.upstreams.song_search.scheduler import ProviderScheduler, RateLimitedProvider
from polymux.upstreams.song_search.songs import folded
from polymux.upstreams.song_search.source import SongSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from polymux.upstreams.song_search.cache import SongCache
    from polymux.upstreams.song_search.songs import Song


class Found(NamedTuple):
    """What came of a search.

    Attributes:
        songs: Of one catalogue, best first; empty where no catalogue has any.
        source: That catalogue; empty where there is none.
        others: Those that were asked before it, and why they gave nothing.
    """

    songs: Sequence[Song]
    source: str
    others: tuple[str, ...]


class SongSearch(ProviderScheduler[SongSource]):
    """Searches of some catalogues. Belongs to one event loop.

    The first that has any song gives the answer; results of two are never mixed.

    Args:
        sources: The catalogues, in the order in which they are asked.
        cache: Where answers are kept.
        deadline_s: Most that a search may take.
        clock: Seconds that only grow. Default: `time.monotonic`.
        sleep: Waits for so many seconds. Default: `asyncio.sleep`.
        chance: A random number from 0 to 1. Default: `random.random`.
    """

    def __init__(
        self,
        sources: Sequence[SongSource],
        cache: SongCache,
        deadline_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(sources, deadline_s, clock=clock, sleep=sleep, chance=chance)
        self._cache = cache

    async def search(self, text: str, limit: int, proxy: str = "") -> Found:
        """Songs by name.

        Args:
            text: What to look for, cleaned.
            limit: How many at most, from 1 to 50.
            proxy: What to go through. Default: nothing.

        Raises:
            RateLimitError: No catalogue has answered, and one can be asked again later.
            InternalServerError: No catalogue has answered (502 or 504).
            BadRequestError: No catalogue takes this text.
        """
        until = self._clock() + self._deadline_s
        troubles: dict[str, ProviderError] = {}
        others: list[str] = []
        for provider in self._providers:
            name = provider.source.name
            try:
                songs = await self._ask(provider, text, limit, proxy, until)
            except ProviderError as trouble:
                troubles[name] = trouble.with_traceback(None)
                others.append(f"{name}: {trouble.reason}")
                continue
            if songs:
                return Found(songs, name, tuple(others))
            others.append(f"{name}: nothing found")
        if len(troubles) == len(self._providers):
            raise told(troubles)
        return Found((), "", tuple(others))

    async def _ask(
        self,
        provider: RateLimitedProvider[SongSource],
        text: str,
        limit: int,
        proxy: str,
        until: float,
    ) -> Sequence[Song]:
        """What a catalogue says, or has said."""
        if proxy:
            return await self._in_turn(provider, text, limit, proxy, until)
        async with self._alone((provider.source.name, folded(text), limit), until):
            return await self._in_turn(provider, text, limit, proxy, until)

    async def _in_turn(
        self,
        provider: RateLimitedProvider[SongSource],
        text: str,
        limit: int,
        proxy: str,
        until: float,
    ) -> Sequence[Song]:
        name = provider.source.name
        kept = self._cache.find(name, text, limit)
        if kept is not None:
            return kept
        await self._wait_for_turn(provider, until)
        # A failure of the caller's own proxy says nothing of the catalogue.
        asked = provider.source.search(text, limit, proxy)
        songs = await self._answered(provider, asked, until, counts=not proxy)
        if not proxy:
            self._cache.keep(name, text, limit, songs)
        return songs
