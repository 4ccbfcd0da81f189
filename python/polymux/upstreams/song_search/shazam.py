"""The search of Shazam's web page: nobody has promised it, and it may end any day.

Its shape is that of Apple Music's catalogue (`contracts.md` 3), whose documentation describes
``results.songs.data[].attributes``.
"""

from __future__ import annotations

from typing import Any

from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song, not_the_interface, song, songs_of
from polymux.upstreams.song_search.source import SongSource, member, with_query

#: Most that the catalogue gives at once.
_MAX_SONGS = 25
_COVER_SIZE = "400"


class Shazam(SongSource):
    """Songs that Shazam knows.

    Args:
        base_url: Its address.
        timeout_s: Most that an answer may take.
        country: Whose catalogue, by its two letters.
    """

    name = "shazam"
    #: Five in a minute: people were told off at more.
    rate = Rate(burst=2, per_s=0.05)

    def __init__(self, base_url: str, timeout_s: float, country: str) -> None:
        super().__init__(base_url, timeout_s)
        self._country = country.upper()

    def path(self, text: str, limit: int) -> str:
        """As `SongSource.path`."""
        query = {"term": text, "types": "songs", "limit": min(limit, _MAX_SONGS)}
        return with_query(f"/services/amapi/v1/catalog/{self._country}/search", query)

    def songs(self, answer: Any, limit: int) -> list[Song]:
        """As `SongSource.songs`."""
        results = member(answer, "results")
        if not isinstance(results, dict):
            raise not_the_interface()
        if "songs" not in results:
            return []  # Nothing was found: the kind that was looked for is left out.
        return songs_of(member(results, "songs", "data"), _song, limit)


def _song(entry: dict[str, Any]) -> Song | None:
    attributes = member(entry, "attributes")
    artwork = member(attributes, "artwork", "url")
    if isinstance(artwork, str):
        artwork = artwork.replace("{w}", _COVER_SIZE).replace("{h}", _COVER_SIZE)
    name, artist = member(attributes, "name"), member(attributes, "artistName")
    return song(name, artist, member(attributes, "url"), artwork)
