"""Servers of others that are asked one after the other, each at the pace that it allows."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from polymux.upstreams.song_search.errors import ErrorKind, ProviderError, told
from polymux.upstreams.song_search.rate_limit import BackOff, TokenBucket
from polymux.upstreams.song_search.songs import folded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence

    from polymux.upstreams.song_search.cache import SongCache
    from polymux.upstreams.song_search.rate_limit import Rate
    from polymux.upstreams.song_search.songs import Song

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


class RateLimitedProvider(NamedTuple, Generic[Source]):
    """A server with its pace."""

    source: Source
    bucket: TokenBucket
    pause: BackOff


class Found(NamedTuple):
    """What came of a question.

    Attributes:
        songs: Of one server, best first; empty where none has any.
        source: That server; empty where there is none.
        others: Those that were asked before it, and why they gave nothing.
    """

    songs: Sequence[Song]
    source: str
    others: tuple[str, ...]


class ProviderScheduler(Generic[Source]):
    """Asks them. Belongs to one event loop.

    The first that has any song gives the answer; those of two are never mixed.

    Args:
        sources: The servers, in the order in which they are asked.
        deadline_s: Most that a question to all of them may take.
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
        """The songs of the first server that has any.

        Args:
            question: What its answer is kept by.
            private: Whether the caller has a way of its own, by which a failure says nothing of the
                server, and no answer is kept. Default: False.

        Raises:
            RateLimitError: None has answered, and one can be asked again later.
            InternalServerError: None has answered (502 or 504).
            BadRequestError: None takes this question.
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
            raise told(troubles, who)
        return Found((), "", tuple(others))

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
        provider.pause.check()
        left_s = until - self._clock() - _MIN_ANSWER_S
        later_s = await provider.bucket.take(max(left_s, 0.0))
        if later_s is not None:
            raise ProviderError(
                ErrorKind.LIMITED, "the limit of requests to it is reached", later_s
            )
        if provider.pause.left_s > 0:
            provider.bucket.give_back()
            provider.pause.check()  # Others have failed while this waited for its turn.

    async def _answered(
        self,
        provider: RateLimitedProvider[Source],
        asked: Awaitable[Sequence[Song]],
        until: float,
        *,
        counts: bool = True,
    ) -> Sequence[Song]:
        """The answer to a request; how it went decides when the server is asked again.

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
        for provider in self._providers:
            provider.source.close()
