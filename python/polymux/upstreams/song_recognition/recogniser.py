"""Asks for the song of a recording, at the pace that is allowed, and keeps the answers."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from typing import TYPE_CHECKING

from polymux.upstreams.song_recognition.shazam import ShazamRecognition
from polymux.upstreams.song_search.errors import ProviderError, told
from polymux.upstreams.song_search.scheduler import ProviderScheduler, RateLimitedProvider

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from polymux.upstreams.song_recognition.shazam import Signature
    from polymux.upstreams.song_search.cache import SongCache
    from polymux.upstreams.song_search.songs import Song

_ONE = 1


class Recogniser(ProviderScheduler[ShazamRecognition]):
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
        super().__init__(sources, deadline_s, clock=clock, sleep=sleep, chance=chance)
        self._cache = cache

    async def recognise(self, signature: Signature) -> Song | None:
        """The song of a recording; None where nobody knows one.

        Raises:
            RateLimitError: Nobody has answered, and one can be asked again later.
            InternalServerError: Nobody has answered (502 or 504).
        """
        until = self._clock() + self._deadline_s
        digest = hashlib.sha256(signature.uri.encode()).hexdigest()
        troubles: dict[str, ProviderError] = {}
        for provider in self._providers:
            try:
                found = await self._ask(provider, signature, digest, until)
            except ProviderError as trouble:
                troubles[provider.source.name] = trouble.with_traceback(None)
                continue
            if found is not None:
                return found
        if len(troubles) == len(self._providers):
            raise told(troubles, "recogniser of songs")
        return None

    async def _ask(
        self,
        provider: RateLimitedProvider[ShazamRecognition],
        signature: Signature,
        digest: str,
        until: float,
    ) -> Song | None:
        """What a server says, or has said."""
        name = provider.source.name
        async with self._alone((name, digest), until):
            kept = self._cache.find(name, digest, _ONE)
            if kept is not None:
                return kept[0] if kept else None
            await self._wait_for_turn(provider, until)
            found = await self._answered(provider, provider.source.recognise(signature), until)
            self._cache.keep(name, digest, _ONE, () if found is None else (found,))
            return found
