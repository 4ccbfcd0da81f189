"""Query external services one after another, within their rate limits."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from polymux.upstreams.song_search.errors import ErrorKind, ProviderError, combined_error
from polymux.upstreams.song_search.rate_limit import BackOff, TokenBucket
from polymux.upstreams.song_search.songs import folded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence

    from polymux.upstreams.song_search.cache import SongCache
    from polymux.upstreams.song_search.rate_limit import Rate
    from polymux.upstreams.song_search.songs import Song

#: Wait for a token only if this much time remains for the answer.
_MIN_ANSWER_S = 1.0
_NO_TIME = "timed out"


class _Source(Protocol):
    """Interface of all services."""

    @property
    def name(self) -> str: ...

    @property
    def rate(self) -> Rate: ...

    def close(self) -> None: ...


Source = TypeVar("Source", bound=_Source)


class RateLimitedProvider(NamedTuple, Generic[Source]):
    """A service with its rate limit and pause."""

    source: Source
    bucket: TokenBucket
    pause: BackOff


class Found(NamedTuple):
    """The answer to a query.

    Attributes:
        songs: From one service, best first; empty if no service found any.
        source: Name of that service, or empty.
        others: Services queried before it, and why they returned nothing.
    """

    songs: Sequence[Song]
    source: str
    others: tuple[str, ...]


class ProviderScheduler(Generic[Source]):
    """Queries services in order. Belongs to one event loop.

    The first service with any song provides the answer; answers are never mixed.

    Args:
        sources: Services in the order of use.
        deadline_s: Maximum time of a query to all services, in seconds.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cache: SongCache,
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
        self._cache = cache
        self._asking: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._deadline_s = deadline_s
        self._clock = clock

    async def first(
        self,
        question: str,
        limit: int,
        ask: Callable[[Source], Awaitable[Sequence[Song]]],
        who: str,
        *,
        private: bool = False,
    ) -> Found:
        """Return the songs of the first service that has any.

        Args:
            question: Cache key of the answer.
            private: The client uses its own proxy: failures do not pause the service, and answers
                are not cached. Default: False.

        Raises:
            RateLimitError: No service responded, but one allows a retry later.
            InternalServerError: No service responded (502 or 504).
            BadRequestError: Every service rejected the query.
        """
        until = self._clock() + self._deadline_s
        troubles: dict[str, ProviderError] = {}
        others: list[str] = []
        for provider in self._providers:
            name = provider.source.name
            key = name, folded(question), limit
            try:
                async with nullcontext() if private else self._alone(key, until):
                    songs: Sequence[Song] | None = self._cache.find(*key)
                    if songs is None:
                        await self._wait_for_turn(provider, until)
                        asked = ask(provider.source)
                        songs = await self._answered(provider, asked, until, counts=not private)
                        if not private:
                            self._cache.keep(*key, songs)
            except ProviderError as trouble:
                troubles[name] = trouble.with_traceback(None)
                others.append(f"{name}: {trouble.reason}")
                continue
            if songs:
                return Found(songs, name, tuple(others))
            others.append(f"{name}: nothing found")
        if len(troubles) == len(self._providers):
            raise combined_error(troubles, who)
        return Found((), "", tuple(others))

    @asynccontextmanager
    async def _alone(self, question: Hashable, until: float) -> AsyncIterator[None]:
        """Serialize equal queries: later ones find the answer in the cache.

        Raises:
            ProviderError: The deadline has passed.
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
        """Wait until the rate limit allows a request.

        Raises:
            ProviderError: The service is paused, or the wait would be too long.
        """
        provider.pause.check()
        left_s = until - self._clock() - _MIN_ANSWER_S
        later_s = await provider.bucket.take(max(left_s, 0.0))
        if later_s is not None:
            raise ProviderError(ErrorKind.LIMITED, "rate limited by this server", later_s)
        if provider.pause.left_s > 0:
            provider.bucket.give_back()
            provider.pause.check()  # Another request failed during the wait.

    async def _answered(
        self,
        provider: RateLimitedProvider[Source],
        asked: Awaitable[Sequence[Song]],
        until: float,
        *,
        counts: bool = True,
    ) -> Sequence[Song]:
        """Await the answer; its outcome decides when the service is queried again.

        Raises:
            ProviderError: The request failed.
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
        """Describe paused services and reasons; empty without any."""
        return "; ".join(
            f"{one.source.name} is paused for {one.pause.left_s:.0f} s: {trouble.reason}"
            for one in self._providers
            if one.pause.left_s > 0 and (trouble := one.pause.trouble) is not None
        )

    def close(self) -> None:
        for provider in self._providers:
            provider.source.close()
