"""Service backend for `identify_song` and `search_music` that uses the music library."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from base64 import b64decode
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from polymux import errors
from polymux._util.text import sentences
from polymux.engines.media.engine import SONG_QUERY
from polymux.service.backend import Backend, Health
from polymux.service.errors import bad_request, engine_failed, status_error
from polymux.service.model import OperationResult, ProgressSink
from polymux.songs.settings import REMEDY, count_text
from polymux.songs.text_normalization import folded
from polymux.songs.text_search import search_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.service.backend import ServiceAccess
    from polymux.service.model import OperationRequest
    from polymux.service.store import Store
    from polymux.songs.pages import FileAddresses, SignedAddresses
    from polymux.songs.reader import Library
    from polymux.songs.results import IndexedSong, Match
    from polymux.songs.song_index import SongIndex

_log = logging.getLogger("polymux.songs")
Result = TypeVar("Result")

#: Name in settings and logs.
NAME = "songs"
#: Most of these requests wait for the next backend, after the music library had no result.
_SLOTS = 64
_BUSY_S = 5


class _Abandoned(Exception):  # noqa: N818 - not an error
    """The client no longer waits for the result."""


class SongIndexBackend(Backend):
    """Answers `identify_song` and `search_music` from the music library first.

    If no song matches the recording, or the search finds fewer songs than requested, the request
    goes to the next backend for this operation, if there is one.

    Args:
        library: The music library.
        media: Backend of the media engine, which opens recordings.
        addresses: Function that creates the URLs in results for the service's store.
        is_own: Whether only the owner sends requests. Error messages then include the library's
            path. Default: False.
    """

    def __init__(
        self,
        library: Library,
        media: Backend,
        addresses: Callable[[Store], SignedAddresses | FileAddresses],
        *,
        is_own: bool = False,
    ) -> None:
        self.name = NAME
        self.operations = frozenset({"identify_song", "search_music"})
        self.max_concurrency = _SLOTS
        self._library = library
        self._media = media
        self._make_addresses = addresses
        self._is_own = is_own
        self._asking = asyncio.Semaphore(os.cpu_count() or 1)
        self._count: int | None = None

    def bind(self, service: ServiceAccess) -> None:
        """Keep the service, which provides URL secrets and the next backends."""
        self._service = service
        self._addresses = self._make_addresses(service.store)

    def refuse(self, work: OperationRequest) -> None:
        """Reject invalid search texts, and proxies that the next backend does not allow.

        Raises:
            BadRequestError: The text is blank or too long, or the proxy is not allowed.
        """
        if work.operation != "search_music":
            return
        try:
            search_text(work.values["song"])
        except errors.InvalidRequestError as error:
            raise bad_request(f"song: {error}", "song") from None
        if work.values.get("proxy"):
            for other in self._service.routes.behind(self, work):
                try:
                    other.refuse(work)
                except errors.NoBackendError:
                    continue

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Search the music library, then the next backend.

        Raises:
            NoMatchError: No song matches the recording.
            NoBackendError: The music library is empty, and there is no other backend.
            SongIndexError: The music library cannot be read, and the client is its owner.
            InternalServerError: The music library cannot be read, and the client is not its owner.
            PolymuxError: The recording cannot be opened, or the next backend failed.
        """
        self._count = await self._ask(lambda _: self._library.count()) or 0
        if self._count == 0:
            return await self._without_songs(work, sink)
        if work.operation == "search_music":
            return await self._search(work, sink)
        return await self._identify(work, sink)

    async def _without_songs(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        product = await self._service.do_behind(self, work, sink)
        if product is None:
            message = sentences("the song index is empty", REMEDY)
            raise status_error(errors.NoBackendError, message)
        return product

    async def _search(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        text, limit = work.values["song"], int(work.values["limit"])

        def search(index: SongIndex) -> list[dict[str, str]]:
            return [self._answer(song) for song in index.search(text, limit)]

        own = await self._ask(search) or []
        sink.log(f"found {count_text(len(own))} in the music library")
        more = await self._more(work, sink, own, limit) if len(own) < limit else []
        _log.info("search_music %s: %d from the music library, %d others",
                  work.request_id, len(own), len(more))  # fmt: skip
        return OperationResult(own + more)

    async def _more(
        self, work: OperationRequest, sink: ProgressSink, own: list[dict[str, str]], limit: int
    ) -> list[dict[str, str]]:
        """Search other backends. If the library has found songs, errors are only logged."""
        try:
            product = await self._service.do_behind(self, work, sink)
        except errors.APIStatusError as error:
            if not own:
                raise
            _log.warning(
                "search_music %s: only songs from the music library, because other backends "
                "failed: %s",
                work.request_id,
                error,
            )
            sink.warn(f"searching other backends failed: {error}")
            return []
        if product is None:
            if work.values.get("proxy"):
                sink.warn("the proxy was not used: the music library is on this machine")
                _log.info("search_music %s: the proxy was not used", work.request_id)
            return []
        known = {folded(one["song_name"]) for one in own}
        others = [one for one in product.output if folded(one["song_name"]) not in known]
        return others[: limit - len(own)]

    async def _identify(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        query = await self._query(work)

        abandoned = threading.Event()

        def go_on() -> None:
            if abandoned.is_set():
                raise _Abandoned

        def identify(index: SongIndex) -> tuple[Match, dict[str, str]] | None:
            match = index.identify_query(query, go_on)
            return None if match is None else (match, self._answer(match.song))

        try:
            found = await self._ask(identify)
        except asyncio.CancelledError:
            abandoned.set()
            raise
        if found is not None:
            return self._matched(work, sink, *found)
        _log.info("identify_song %s: no match in the music library", work.request_id)
        sink.log("no song in the song index matches this recording")
        product = await self._service.do_behind(self, work, sink)
        if product is None:
            raise errors.NoMatchError("no song in the song index matches this recording")
        return product

    def _matched(
        self, work: OperationRequest, sink: ProgressSink, match: Match, answer: dict[str, str]
    ) -> OperationResult:
        names = ("offset_s", "speed", "tempo", "pitch", "confidence")
        metrics = {name: round(float(getattr(match, name)), 3) for name in names}
        words = ", ".join(f"{name} {value:g}" for name, value in metrics.items())
        _log.info("identify_song %s: song %d, %s", work.request_id, match.song.id, words)
        sink.log(f"song {match.song.id}: {words}")
        return OperationResult(answer, metrics=metrics)

    async def _query(self, work: OperationRequest) -> bytes:
        """Fingerprint the recording in the media engine, which opens untrusted files."""
        step = replace(
            work,
            operation=SONG_QUERY,
            values={"file": work.values["file"]},
            given=frozenset(),
        )
        made = await self._media.run(
            step, ProgressSink(lambda: None, self._service.store.media.draft)
        )
        try:
            return b64decode(made.output["query"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise engine_failed("the media engine returned no fingerprint") from error

    async def _ask(self, act: Callable[[SongIndex], Result]) -> Result | None:
        """Call a function with the music library on a thread; None if there is no library."""

        def ask() -> Result | None:
            index = self._library.index()
            return None if index is None else act(index)

        async with self._asking:
            try:
                return await asyncio.to_thread(ask)
            except errors.SongIndexError as error:
                if self._is_own:
                    raise
                # The message names the library's path, which clients must not see.
                _log.error("%s", error)
                raise _unreadable(error) from error

    def _answer(self, song: IndexedSong) -> dict[str, Any]:
        return {
            "song_name": song.name,
            "songid_url": self._addresses.page(song),
            "song_image": self._addresses.cover(song),
        }

    async def song(self, number: int) -> IndexedSong | None:
        """Return a song by its ID, or None if it does not exist."""
        return await self._ask(lambda index: index.get(number))

    async def songs_after(self, number: int, limit: int) -> tuple[list[IndexedSong], int]:
        """Return the songs with the next higher IDs, and the number of all songs."""

        def read(index: SongIndex) -> tuple[list[IndexedSong], int]:
            return list(islice(index.songs(after=number), limit)), index.count()

        return await self._ask(read) or ([], 0)

    def health(self) -> Health:
        """Return "idle" before the first request, then the number of songs at the last request."""
        if self._count is None:
            return Health("idle")
        return Health("ready", count_text(self._count))

    async def close(self) -> None:
        """Close the library and the media engine."""
        await asyncio.to_thread(self._library.close)
        await self._media.close()


def _unreadable(error: errors.SongIndexError) -> errors.APIStatusError:
    if error.code == "song_index_busy":
        message = "the music library is being changed. Try again later"
        return status_error(errors.OverloadedError, message, retry_after_s=_BUSY_S)
    return engine_failed("the music library cannot be read. See the server log")
