"""Servers of others that are asked one after the other, each at the pace that it allows."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from polymux.upstreams.song_search.errors import ErrorKind, ProviderError
from polymux.upstreams.song_search.rate_limit import BackOff, TokenBucket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence

    from polymux.upstreams.song_search.rate_limit import Rate

#: A turn is waited for only where so much is left for the answer.
_MIN_ANSWER_S = 1.0
_NO_TIME = "there was no time left for its answer"


class _Source(Protocol):
    """What all of them have."""

    @property
    def name(self) -> str: ...

    @property
    def rate(self) -> Rate: ...

    def close(self) -> None: ...


Source = TypeVar("Source", bound=_Source)
Answer = TypeVar("Answer")


class RateLimitedProvider(Generic[Source]):
    """A server with its pace."""

    def __init__(self, source: Source, bucket: TokenBucket, pause: BackOff) -> None:
        self.source = source
        self.bucket = bucket
        self.pause = pause

    def check(self) -> None:
        """Raises while it is left alone.

        Raises:
            ProviderError: What it had failed with.
        """
        left_s, trouble = self.pause.left_s, self.pause.trouble
        if left_s > 0 and trouble is not None:
            reason = f"left alone for {left_s:.0f} s, as {trouble.reason}"
            raise ProviderError(trouble.kind, reason, left_s, counts=False)


class ProviderScheduler(Generic[Source]):
    """What whoever asks such servers needs. Belongs to one event loop.

    Args:
        sources: The servers, in the order in which they are asked.
        deadline_s: Most that a question to all of them may take.
        clock: Seconds that only grow. Default: `time.monotonic`.
        sleep: Waits for so many seconds. Default: `asyncio.sleep`.
        chance: A random number from 0 to 1. Default: `random.random`.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        deadline_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._providers = [
            RateLimitedProvider(one, TokenBucket(one.rate, clock, sleep), BackOff(clock, chance))
            for one in sources
        ]
        self._asking: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._deadline_s = deadline_s
        self._clock = clock

    @asynccontextmanager
    async def _alone(self, question: Hashable, until: float) -> AsyncIterator[None]:
        """While nobody else asks the same: who does so meanwhile waits for that answer.

        Raises:
            ProviderError: There is no time left.
        """
        one: Any = self._asking.setdefault(question, asyncio.Lock())
        try:
            async with asyncio.timeout(until - self._clock()):
                await one.acquire()
        except TimeoutError:
            raise ProviderError(ErrorKind.LATE, _NO_TIME) from None
        try:
            yield
        finally:
            one.release()

    async def _wait_for_turn(self, provider: RateLimitedProvider[Source], until: float) -> None:
        """Until a request is allowed.

        Raises:
            ProviderError: It is left alone, or its turn would come too late.
        """
        provider.check()
        left_s = until - self._clock() - _MIN_ANSWER_S
        later_s = await provider.bucket.take(max(left_s, 0.0))
        if later_s is not None:
            raise ProviderError(
                ErrorKind.LIMITED, "the limit of requests to it is reached", later_s
            )
        if provider.pause.left_s > 0:
            provider.bucket.give_back()
            provider.check()  # Others have failed while this waited for its turn.

    async def _answered(
        self,
        provider: RateLimitedProvider[Source],
        asked: Awaitable[Answer],
        until: float,
        *,
        counts: bool = True,
    ) -> Answer:
        """The answer to a request; how it went decides when the server is asked again.

        Args:
            provider: The server.
            asked: The request, not begun.
            until: When there is no time left.
            counts: Whether it says anything of the server. Default: True.

        Raises:
            ProviderError: There is no good answer.
        """
        asked_at = self._clock()
        try:
            async with asyncio.timeout(until - asked_at):
                answer = await asked
        except TimeoutError:
            raise ProviderError(ErrorKind.LATE, _NO_TIME) from None
        except ProviderError as trouble:
            if trouble.counts and counts:
                provider.pause.failed(trouble, asked_at)
            raise
        if counts:
            provider.pause.succeeded(asked_at)
        return answer

    def resting(self) -> str:
        """The servers that are left alone now, and why; empty where there is none."""
        return "; ".join(
            f"{one.source.name} is left alone for {one.pause.left_s:.0f} s: {trouble.reason}"
            for one in self._providers
            if one.pause.left_s > 0 and (trouble := one.pause.trouble) is not None
        )

    def close(self) -> None:
        """Closes all connections. Idempotent."""
        for provider in self._providers:
            provider.source.close()
