"""Looks for songs in one catalogue after the other, at the pace that each of them allows."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from polymux.upstreams.song_search.failing import Trouble, TroubleKind, told
from polymux.upstreams.song_search.pacing import BackOff, TokenBucket
from polymux.upstreams.song_search.songs import folded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from polymux.upstreams.song_search.cache import SongCache
    from polymux.upstreams.song_search.songs import Song
    from polymux.upstreams.song_search.source import SongSource

#: A turn is waited for only where so much is left for the answer.
_LEAST_FOR_ANSWER_S = 1.0
_NO_TIME = "there was no time left for its answer"


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


class _Lane:
    """A catalogue with its pace."""

    def __init__(self, source: SongSource, bucket: TokenBucket, pause: BackOff) -> None:
        self.source = source
        self.bucket = bucket
        self.pause = pause

    def check(self) -> None:
        """Raises while it is left alone.

        Raises:
            Trouble: What it had failed with.
        """
        left_s, trouble = self.pause.left_s, self.pause.trouble
        if left_s > 0 and trouble is not None:
            reason = f"left alone for {left_s:.0f} s, as {trouble.reason}"
            raise Trouble(trouble.kind, reason, left_s, counts=False)


class SongSearch:
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
        """Nothing is asked."""
        self._lanes = [
            _Lane(one, TokenBucket(one.rate, clock, sleep), BackOff(clock, chance))
            for one in sources
        ]
        self._cache = cache
        self._asking: WeakValueDictionary[tuple[str, str, int], asyncio.Lock] = (
            WeakValueDictionary()
        )
        self._deadline_s = deadline_s
        self._clock = clock

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
        troubles: dict[str, Trouble] = {}
        others: list[str] = []
        for lane in self._lanes:
            name = lane.source.name
            try:
                songs = await self._ask(lane, text, limit, proxy, until)
            except Trouble as trouble:
                troubles[name] = trouble.with_traceback(None)
                others.append(f"{name}: {trouble.reason}")
                continue
            if songs:
                return Found(songs, name, tuple(others))
            others.append(f"{name}: nothing found")
        if len(troubles) == len(self._lanes):
            raise told(troubles)
        return Found((), "", tuple(others))

    async def _ask(
        self, lane: _Lane, text: str, limit: int, proxy: str, until: float
    ) -> Sequence[Song]:
        """What a catalogue says, or has said; who asks the same meanwhile waits for that."""
        if proxy:
            return await self._in_turn(lane, text, limit, proxy, until)
        key = (lane.source.name, folded(text), limit)
        one = self._asking.setdefault(key, asyncio.Lock())
        try:
            async with asyncio.timeout(until - self._clock()):
                await one.acquire()
        except TimeoutError:
            raise Trouble(TroubleKind.LATE, _NO_TIME) from None
        try:
            return await self._in_turn(lane, text, limit, proxy, until)
        finally:
            one.release()

    async def _in_turn(
        self, lane: _Lane, text: str, limit: int, proxy: str, until: float
    ) -> Sequence[Song]:
        name = lane.source.name
        kept = self._cache.find(name, text, limit)
        if kept is not None:
            return kept
        lane.check()
        left_s = until - self._clock() - _LEAST_FOR_ANSWER_S
        later_s = await lane.bucket.take(max(left_s, 0.0))
        if later_s is not None:
            raise Trouble(TroubleKind.LIMITED, "the limit of requests to it is reached", later_s)
        if lane.pause.left_s > 0:
            lane.bucket.give_back()
            lane.check()  # Others have failed while this waited for its turn.
        return await self._answer(lane, text, limit, proxy, until)

    async def _answer(
        self, lane: _Lane, text: str, limit: int, proxy: str, until: float
    ) -> Sequence[Song]:
        asked_at = self._clock()
        try:
            async with asyncio.timeout(until - asked_at):
                songs = await lane.source.search(text, limit, proxy)
        except TimeoutError:
            raise Trouble(TroubleKind.LATE, _NO_TIME) from None
        except Trouble as trouble:
            # A failure of the caller's own proxy says nothing of the catalogue.
            if trouble.counts and not proxy:
                lane.pause.failed(trouble, asked_at)
            raise
        if not proxy:
            lane.pause.succeeded(asked_at)
            self._cache.keep(lane.source.name, text, limit, songs)
        return songs

    def resting(self) -> str:
        """The catalogues that are left alone now, and why; empty where there is none."""
        return "; ".join(
            f"{lane.source.name} is left alone for {lane.pause.left_s:.0f} s: {trouble.reason}"
            for lane in self._lanes
            if lane.pause.left_s > 0 and (trouble := lane.pause.trouble) is not None
        )

    def close(self) -> None:
        """Closes all connections. Idempotent."""
        for lane in self._lanes:
            lane.source.close()
