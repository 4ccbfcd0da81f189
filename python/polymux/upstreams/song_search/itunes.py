"""Apple's iTunes Search API: documented, without a key, about twenty requests a minute.

Its parameters and results are described in "iTunes Search API", Apple's developer documentation.
"""

from __future__ import annotations

import re
from typing import Any

from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song, song, songs_of
from polymux.upstreams.song_search.source import SongSource, member, with_query

#: The last part of a cover's address says its size: ``100x100bb.jpg``.
_SIZE = re.compile(r"/\d{1,4}x\d{1,4}(?=[a-z-]{0,10}\.[a-z]{3,4}$)", re.ASCII)


class ITunes(SongSource):
    """The songs of Apple's shop in one country.

    Args:
        base_url: Its address.
        timeout_s: Most that an answer may take.
        country: Whose shop, by its two letters.
    """

    name = "itunes"
    #: In no minute more than twenty.
    rate = Rate(burst=5, per_s=0.25)
    #: It answers 403 to whoever asks too often.
    limited = frozenset({403})

    def __init__(self, base_url: str, timeout_s: float, country: str) -> None:
        super().__init__(base_url, timeout_s)
        self._country = country.upper()

    def path(self, text: str, limit: int) -> str:
        """As `SongSource.path`."""
        query = {"term": text, "media": "music", "entity": "song", "limit": limit}
        return with_query("/search", query | {"country": self._country})

    def songs(self, answer: Any, limit: int) -> list[Song]:
        """As `SongSource.songs`."""
        return songs_of(member(answer, "results"), _song, limit)


def _song(entry: dict[str, Any]) -> Song | None:
    artwork = entry.get("artworkUrl100")
    image = _SIZE.sub("/400x400", artwork) if isinstance(artwork, str) else None
    return song(entry.get("trackName"), entry.get("artistName"), entry.get("trackViewUrl"), image)
