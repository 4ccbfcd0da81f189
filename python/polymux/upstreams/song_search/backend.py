"""The `search_music` backend that uses online services."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from polymux import errors
from polymux.service.backend import Backend, Health
from polymux.service.errors import status_error
from polymux.service.model import OperationResult
from polymux.upstreams.song_search.cache import SongCache
from polymux.upstreams.song_search.providers import ITunes, MusicBrainz, Shazam
from polymux.upstreams.song_search.scheduler import ProviderScheduler
from polymux.upstreams.song_search.settings import proxy_place
from polymux.upstreams.song_search.songs import search_text
from polymux.upstreams.song_search.source import SongSource

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.upstreams.song_search.scheduler import Found
    from polymux.upstreams.song_search.settings import SongSearchSettings
    from polymux.upstreams.song_search.songs import Song

_log = logging.getLogger("polymux.song_search")

#: Name in settings and logs.
NAME = "song_search"
#: Most requests only wait; `ProviderScheduler` limits requests to the services.
_SLOTS = 64


class SongSearch(ProviderScheduler[SongSource]):
    """Searches several services."""

    async def search(self, text: str, limit: int, proxy: str = "") -> Found:
        """Search songs by name.

        Args:
            limit: Maximum number of songs, from 1 to 50.

        Raises:
            APIStatusError: See `ProviderScheduler.first`.
        """

        def ask(source: SongSource) -> Awaitable[list[Song]]:
            return source.search(text, limit, proxy)

        return await self.first(text, limit, ask, "song search service", private=bool(proxy))


class SongSearchBackend(Backend):
    """Runs `search_music` with online services.

    Args:
        search: Sends the requests. Default: made from the settings.
    """

    is_upstream = True

    def __init__(self, settings: SongSearchSettings, search: SongSearch | None = None) -> None:
        self.name = NAME
        self.operations = frozenset({"search_music"})
        self.max_concurrency = _SLOTS
        self._allowed_proxies = settings.allowed_proxies
        self._search = search or search_of(settings)

    def refuse(self, work: OperationRequest) -> None:
        """Reject invalid texts, and proxies that the operator has not allowed.

        Raises:
            BadRequestError: The text is blank or too long, or the proxy is not allowed.
        """
        search_text(work.values["song"])
        proxy = work.values.get("proxy")
        if proxy and proxy_place(proxy) not in self._allowed_proxies:
            raise status_error(
                errors.BadRequestError,
                "proxy: not allowed. Use a proxy that the server setting "
                "song_search.allowed_proxies contains",
                code="url_refused",
                param="proxy",
            )

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Search the services in their order.

        Raises:
            APIStatusError: No service responded.
        """
        limit = int(work.values["limit"])
        text = search_text(work.values["song"])
        try:
            found = await self._search.search(text, limit, work.values.get("proxy") or "")
        except errors.APIStatusError as error:
            _log.warning("search_music %s: %s", work.request_id, error)
            raise
        gave = (
            f"{found.source} returned {len(found.songs)} songs" if found.songs else "no songs found"
        )
        others = f" ({'; '.join(found.others)})" if found.others else ""
        _log.info("search_music %s: %s%s", work.request_id, gave, others)
        sink.log(f"{gave}{others}")
        return OperationResult([one.as_answer() for one in found.songs[:limit]])

    def health(self) -> Health:
        return Health("ready", self._search.resting())

    async def close(self) -> None:
        self._search.close()


def search_of(settings: SongSearchSettings) -> SongSearch:
    cache = SongCache(settings.cache_bytes, settings.cache_s, settings.cache_empty_s)
    limit_s, country = settings.provider_s, settings.country
    known: tuple[SongSource, ...] = (
        ITunes(settings.itunes_url, limit_s, country),
        MusicBrainz(settings.musicbrainz_url, limit_s, settings.contact),
        Shazam(settings.shazam_url, limit_s, country),
    )
    sources = {one.name: one for one in known}
    return SongSearch([sources[name] for name in settings.providers], cache, settings.deadline_s)
