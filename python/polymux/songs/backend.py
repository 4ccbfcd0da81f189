"""The catalogue as a backend of the service: `identify_song` and `search_music`."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from base64 import b64decode
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from polymux import errors
from polymux.engines.media.engine import SONG_QUERY
from polymux.service.backend import Backend, Health
from polymux.service.errors import bad_request, engine_failed, status_error
from polymux.service.model import OperationResult, ProgressSink
from polymux.songs.settings import REMEDY, told
from polymux.songs.text_normalization import folded
from polymux.songs.text_search import search_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.service.backend import ServiceAccess
    from polymux.service.model import OperationRequest
    from polymux.service.store import Store
    from polymux.songs.catalogue import Catalogue
    from polymux.songs.pages import FileAddresses, SignedAddresses
    from polymux.songs.reader import Library
    from polymux.songs.results import CatalogueSong, Match

_log = logging.getLogger("polymux.songs")
Result = TypeVar("Result")

#: What settings and logs call it.
NAME = "songs"
#: Most of them wait for others, who are asked after the catalogue.
_SLOTS = 64
_BUSY_S = 5


class _Abandoned(Exception):  # noqa: N818 - no error
    """Nobody waits for the answer any more."""


class CatalogueBackend(Backend):
    """Answers `identify_song` and `search_music` from one's own songs, and asks others after that.

    A recording that is like no song of the catalogue, and a search that finds too few, go on to the
    backend behind this one, where there is one.

    Args:
        library: Where the catalogue is.
        media: What opens recordings: a backend of the media engine.
        addresses: Gives, for the service's store, what answers name for a song.
        is_own: Whether it is asked by its owner alone, who may be told where it is. Default: False.
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
        """Keeps it: it has the secrets of links, and those that are asked after the catalogue."""
        self._service = service
        self._addresses = self._make_addresses(service.store)

    def refuse(self, work: OperationRequest) -> None:
        """Texts that are none, and proxies where one would be needed and is not allowed.

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
        """Asks the catalogue, then others.

        Raises:
            NoMatchError: No song is like the recording.
            NoBackendError: There are no songs, and there is nobody else.
            CatalogueError: The catalogue cannot be read; said to its owner.
            InternalServerError: The same, said to others.
            PolymuxError: The recording cannot be opened, or others have failed.
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
            message = f"there are no songs to look among: {REMEDY}"
            raise status_error(errors.NoBackendError, message)
        return product

    async def _search(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        text, limit = work.values["song"], int(work.values["limit"])

        def search(catalogue: Catalogue) -> list[dict[str, str]]:
            return [self._answer(song) for song in catalogue.search(text, limit)]

        own = await self._ask(search) or []
        sink.log(f"the catalogue gave {len(own)} songs")
        more = await self._more(work, sink, own, limit) if len(own) < limit else []
        _log.info("search_music %s: %d own songs, %d of others", work.request_id, len(own),
                  len(more))  # fmt: skip
        return OperationResult(own + more)

    async def _more(
        self, work: OperationRequest, sink: ProgressSink, own: list[dict[str, str]], limit: int
    ) -> list[dict[str, str]]:
        """What others find beside one's own songs. Their failure is none where there are such."""
        try:
            product = await self._service.do_behind(self, work, sink)
        except errors.APIStatusError as error:
            if not own:
                raise
            _log.warning("search_music %s: own songs alone, as %s", work.request_id, error)
            sink.log(f"others were asked for more, but {error}")
            return []
        if product is None:
            if work.values.get("proxy"):
                sink.log("the proxy was not used: the catalogue is on this machine")
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

        def identify(catalogue: Catalogue) -> tuple[Match, dict[str, str]] | None:
            match = catalogue.identify_query(query, go_on)
            return None if match is None else (match, self._answer(match.song))

        try:
            found = await self._ask(identify)
        except asyncio.CancelledError:
            abandoned.set()
            raise
        if found is not None:
            return self._matched(work, sink, *found)
        _log.info("identify_song %s: no song of the catalogue", work.request_id)
        sink.log("no song of the catalogue is like this recording")
        product = await self._service.do_behind(self, work, sink)
        if product is None:
            raise errors.NoMatchError("no song of the catalogue is like this recording")
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
        """What the recording sounds like, by the engine that opens strangers' files."""
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
            raise engine_failed("the media engine has not described the recording") from error

    async def _ask(self, act: Callable[[Catalogue], Result]) -> Result | None:
        """Has a thread ask the catalogue; None where there is none."""

        def ask() -> Result | None:
            catalogue = self._library.catalogue()
            return None if catalogue is None else act(catalogue)

        async with self._asking:
            try:
                return await asyncio.to_thread(ask)
            except errors.CatalogueError as error:
                if self._is_own:
                    raise
                # Its words have the folder in them, which is nobody's affair.
                _log.error("%s", error)
                raise _unreadable(error) from error

    def _answer(self, song: CatalogueSong) -> dict[str, Any]:
        return {
            "song_name": song.name,
            "songid_url": self._addresses.page(song),
            "song_image": self._addresses.cover(song),
        }

    async def song(self, number: int) -> CatalogueSong | None:
        """A song by its number, for whoever shows it; None where there is none."""
        return await self._ask(lambda catalogue: catalogue.get(number))

    def health(self) -> Health:
        """Idle until it is first asked; from then on, how many songs there were the last time."""
        if self._count is None:
            return Health("idle")
        return Health("ready", told(self._count))

    async def close(self) -> None:
        """Closes what was opened, and gives up the media engine, which may have ended already."""
        await asyncio.to_thread(self._library.close)
        await self._media.close()


def _unreadable(error: errors.CatalogueError) -> errors.APIStatusError:
    if error.code == "catalogue_busy":
        message = "the catalogue of songs is being changed: ask again"
        return status_error(errors.OverloadedError, message, retry_after_s=_BUSY_S)
    return engine_failed("the catalogue of songs cannot be read; the server's log tells more")
