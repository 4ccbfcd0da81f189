"""The catalogues of songs that can be asked."""

from __future__ import annotations

import re
from typing import Any

from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song, not_the_interface, song, songs_of
from polymux.upstreams.song_search.source import USER_AGENT, SongSource, member, with_query

#: The last part of a cover's address at iTunes says its size: ``100x100bb.jpg``.
_SIZE = re.compile(r"/\d{1,4}x\d{1,4}(?=[a-z-]{0,10}\.[a-z]{3,4}$)", re.ASCII)
#: MusicBrainz' pages and covers are for people, who have them from there whatever server was asked.
_RECORDING_URL = "https://musicbrainz.org/recording/"
_COVER_URL = "https://coverartarchive.org/release/{}/front-500"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
#: Most that Shazam's catalogue gives at once.
_MAX_SONGS = 25
_COVER_SIZE = "400"


class ITunes(SongSource):
    """Apple's iTunes Search API: documented, without a key, about twenty requests a minute.

    Its parameters and results: "iTunes Search API", Apple's developer documentation.
    """

    name = "itunes"
    #: In no minute more than twenty.
    rate = Rate(burst=5, per_s=0.25)
    #: It answers 403 to whoever asks too often.
    limited = frozenset({403})

    def path(self, text: str, limit: int) -> str:
        query = {"term": text, "media": "music", "entity": "song", "limit": limit}
        return with_query("/search", query | {"country": self._country})

    def songs(self, answer: Any, limit: int) -> list[Song]:
        return songs_of(member(answer, "results"), _itunes_song, limit)


def _itunes_song(entry: dict[str, Any]) -> Song | None:
    artwork = entry.get("artworkUrl100")
    image = _SIZE.sub("/400x400", artwork) if isinstance(artwork, str) else None
    return song(entry.get("trackName"), entry.get("artistName"), entry.get("trackViewUrl"), image)


class MusicBrainz(SongSource):
    """MusicBrainz' search for recordings, with covers of the Cover Art Archive: open data.

    One request a second for each address, and a contact in User-Agent: its pages "MusicBrainz
    API/Rate Limiting" and "MusicBrainz API/Search" say so. No cover is asked for: an archive's
    address is made of the release's id, and answers 404 where nobody has sent one in.
    """

    name = "musicbrainz"
    rate = Rate(burst=1, per_s=1.0)
    #: Its answer to whoever asks too often, and when it is busy with others.
    limited = frozenset({503})

    def __init__(self, base_url: str, timeout_s: float, contact: str) -> None:
        # In the form that its documentation asks for.
        super().__init__(base_url, timeout_s, agent=f"{USER_AGENT} ( {contact} )")

    def path(self, text: str, limit: int) -> str:
        # With dismax the text is words to look for, and no language of queries.
        query = {"query": text, "limit": limit, "dismax": "true", "fmt": "json"}
        return with_query("/ws/2/recording", query)

    def songs(self, answer: Any, limit: int) -> list[Song]:
        return songs_of(member(answer, "recordings"), _recording, limit)


def _recording(entry: dict[str, Any]) -> Song | None:
    page = _with_id(_RECORDING_URL + "{}", entry.get("id"))
    return song(entry.get("title"), _artist(entry.get("artist-credit")), page, _cover(entry))


def _artist(credits_: object) -> str:
    """As it stands on the release: ``"Queen & David Bowie"`` of two credits and what joins them."""
    pieces: list[object] = []
    for one in credits_ if isinstance(credits_, list) else ():
        pieces += (member(one, "name"), member(one, "joinphrase"))
    return "".join(one for one in pieces if isinstance(one, str))


def _cover(entry: dict[str, Any]) -> str | None:
    """Of the first official release, else of the first."""
    releases = entry.get("releases")
    found = None
    for one in releases if isinstance(releases, list) else ():
        cover = _with_id(_COVER_URL, member(one, "id"))
        if cover is not None and member(one, "status") == "Official":
            return cover
        found = found or cover
    return found


def _with_id(pattern: str, found: object) -> str | None:
    if not isinstance(found, str) or not _ID.fullmatch(found):
        return None
    return pattern.format(found)


class Shazam(SongSource):
    """The search of Shazam's web page: nobody has promised it, and it may end any day.

    Its shape is that of Apple Music's catalogue (`contracts.md` 3), whose documentation describes
    ``results.songs.data[].attributes``.
    """

    name = "shazam"
    #: Five in a minute: people were told off at more.
    rate = Rate(burst=2, per_s=0.05)

    def path(self, text: str, limit: int) -> str:
        query = {"term": text, "types": "songs", "limit": min(limit, _MAX_SONGS)}
        return with_query(f"/services/amapi/v1/catalog/{self._country}/search", query)

    def songs(self, answer: Any, limit: int) -> list[Song]:
        results = member(answer, "results")
        if not isinstance(results, dict):
            raise not_the_interface()
        if "songs" not in results:
            return []  # Nothing was found: the kind that was looked for is left out.
        return songs_of(member(results, "songs", "data"), _shazam_song, limit)


def _shazam_song(entry: dict[str, Any]) -> Song | None:
    attributes = member(entry, "attributes")
    artwork = member(attributes, "artwork", "url")
    if isinstance(artwork, str):
        artwork = artwork.replace("{w}", _COVER_SIZE).replace("{h}", _COVER_SIZE)
    name, artist = member(attributes, "name"), member(attributes, "artistName")
    return song(name, artist, member(attributes, "url"), artwork)
