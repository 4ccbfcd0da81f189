"""Asks for the song of a recording, at the pace that is allowed, and keeps the answers."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from polymux.upstreams.song_search.failing import Trouble, TroubleKind, told
from polymux.upstreams.song_search.pacing import BackOff, TokenBucket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from polymux.upstreams.song_recognition.shazam import ShazamRecognition, Signature
    from polymux.upstreams.song_search.cache import SongCache
    from polymux.upstreams.song_search.songs import Song

#: A turn is waited for only where so much is left for the answer.
_LEAST_FOR_ANSWER_S = 1.0
_NO_TIME = "there was no time left for its answer"
_ONE = 1


class _Lane:
    """A server with its pace."""

    def __init__(self, source: ShazamRecognition, bucket: TokenBucket, pause: BackOff) -> None:
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


class Recogniser:
    """Recognises songs by the servers of others. Belongs to one event loop.

    The first that knows a song gives the answer.

    Args:
        sources: The servers, in the order in which they are asked.
        cache: Where answers are kept, by a digest of the signature.
        deadline_s: Most that a recognition may take.
        clock: Seconds that only grow. Default: `time.monotonic`.
        sleep: Waits for so many seconds. Default: `asyncio.sleep`.
        chance: A random number from 0 to 1. Default: `random.random`.
    """

    def __init__(
        self,
        sources: Sequence[ShazamRecognition],
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
        self._asking: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._deadline_s = deadline_s
        self._clock = clock

    async def recognise(self, signature: Signature) -> Song | None:
        """The song of a recording; None where nobody knows one.

        Raises:
            RateLimitError: Nobody has answered, and one can be asked again later.
            InternalServerError: Nobody has answered (502 or 504).
        """
        until = self._clock() + self._deadline_s
        digest = hashlib.sha256(signature.uri.encode()).hexdigest()
        troubles: dict[str, Trouble] = {}
        for lane in self._lanes:
            try:
                found = await self._ask(lane, signature, digest, until)
            except Trouble as trouble:
                troubles[lane.source.name] = trouble.with_traceback(None)
                continue
            if found is not None:
                return found
        if len(troubles) == len(self._lanes):
            raise told(troubles, "recogniser of songs")
        return None

    async def _ask(
        self, lane: _Lane, signature: Signature, digest: str, until: float
    ) -> Song | None:
        """What a server says, or has said; who asks the same meanwhile waits for that."""
        one = self._asking.setdefault((lane.source.name, digest), asyncio.Lock())
        try:
            async with asyncio.timeout(until - self._clock()):
                await one.acquire()
        except TimeoutError:
            raise Trouble(TroubleKind.LATE, _NO_TIME) from None
        try:
            return await self._in_turn(lane, signature, digest, until)
        finally:
            one.release()

    async def _in_turn(
        self, lane: _Lane, signature: Signature, digest: str, until: float
    ) -> Song | None:
        kept = self._cache.find(lane.source.name, digest, _ONE)
        if kept is not None:
            return kept[0] if kept else None
        lane.check()
        left_s = until - self._clock() - _LEAST_FOR_ANSWER_S
        later_s = await lane.bucket.take(max(left_s, 0.0))
        if later_s is not None:
            raise Trouble(TroubleKind.LIMITED, "the limit of requests to it is reached", later_s)
        if lane.pause.left_s > 0:
            lane.bucket.give_back()
            lane.check()  # Others have failed while this waited for its turn.
        found = await self._answer(lane, signature, until)
        self._cache.keep(lane.source.name, digest, _ONE, () if found is None else (found,))
        return found

    async def _answer(self, lane: _Lane, signature: Signature, until: float) -> Song | None:
        asked_at = self._clock()
        try:
            async with asyncio.timeout(until - asked_at):
                found = await lane.source.recognise(signature)
        except TimeoutError:
            raise Trouble(TroubleKind.LATE, _NO_TIME) from None
        except Trouble as trouble:
            if trouble.counts:
                lane.pause.failed(trouble, asked_at)
            raise
        lane.pause.succeeded(asked_at)
        return found

    def resting(self) -> str:
        """The servers that are left alone now, and why; empty where there is none."""
        return "; ".join(
            f"{lane.source.name} is left alone for {lane.pause.left_s:.0f} s: {trouble.reason}"
            for lane in self._lanes
            if lane.pause.left_s > 0 and (trouble := lane.pause.trouble) is not None
        )

    def close(self) -> None:
        """Closes all connections. Idempotent."""
        for lane in self._lanes:
            lane.source.close()
