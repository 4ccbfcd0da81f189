"""The song search services."""

from __future__ import annotations

import re
from typing import Any

from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song, not_the_interface, song, songs_of
from polymux.upstreams.song_search.source import USER_AGENT, SongSource, member, with_query

#: The last part of a cover URL at iTunes contains its size: ``100x100bb.jpg``.
_SIZE = re.compile(r"/\d{1,4}x\d{1,4}(?=[a-z-]{0,10}\.[a-z]{3,4}$)", re.ASCII)
#: Links for people; they point to MusicBrainz even if another server is configured.
_RECORDING_URL = "https://musicbrainz.org/recording/"
_COVER_URL = "https://coverartarchive.org/release/{}/front-500"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
#: Maximum number of songs per request to Shazam.
_MAX_SONGS = 25
_COVER_SIZE = "400"


class ITunes(SongSource):
    """Apple's iTunes Search API: public, without API key, about twenty requests a minute.

    Documentation: "iTunes Search API", Apple's developer documentation.
    """

    name = "itunes"
    #: At most twenty in any minute.
    rate = Rate(burst=5, per_s=0.25)
    #: iTunes returns 403 when rate limited.
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
    """MusicBrainz recording search, with covers from the Cover Art Archive: open data.

    Allows one request per second and address, and requires a contact in User-Agent; see its pages
    "MusicBrainz API/Rate Limiting" and "MusicBrainz API/Search". Cover URLs are built from the
    release id without a request; they return 404 if no cover exists.
    """

    name = "musicbrainz"
    rate = Rate(burst=1, per_s=1.0)
    #: MusicBrainz returns 503 when rate limited or overloaded.
    limited = frozenset({503})

    def __init__(self, base_url: str, timeout_s: float, contact: str) -> None:
        # The format that MusicBrainz documents.
        super().__init__(base_url, timeout_s, agent=f"{USER_AGENT} ( {contact} )")

    def path(self, text: str, limit: int) -> str:
        # With dismax the text is plain words and not Lucene query syntax.
        query = {"query": text, "limit": limit, "dismax": "true", "fmt": "json"}
        return with_query("/ws/2/recording", query)

    def songs(self, answer: Any, limit: int) -> list[Song]:
        return songs_of(member(answer, "recordings"), _recording, limit)


def _recording(entry: dict[str, Any]) -> Song | None:
    page = _with_id(_RECORDING_URL + "{}", entry.get("id"))
    return song(entry.get("title"), _artist(entry.get("artist-credit")), page, _cover(entry))


def _artist(credits_: object) -> str:
    """Join credits as on the release, such as ``"Queen & David Bowie"``."""
    pieces: list[object] = []
    for one in credits_ if isinstance(credits_, list) else ():
        pieces += (member(one, "name"), member(one, "joinphrase"))
    return "".join(one for one in pieces if isinstance(one, str))


def _cover(entry: dict[str, Any]) -> str | None:
    """Return the cover of the first official release, else of the first release."""
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
    """The search of Shazam's web page, which is not a public API and may change.

    The response has the format of Apple Music's catalog (`contracts.md` 3), whose documentation
    describes ``results.songs.data[].attributes``.
    """

    name = "shazam"
    #: Five per minute: users reported rate limits above that.
    rate = Rate(burst=2, per_s=0.05)

    def path(self, text: str, limit: int) -> str:
        query = {"term": text, "types": "songs", "limit": min(limit, _MAX_SONGS)}
        return with_query(f"/services/amapi/v1/catalog/{self._country}/search", query)

    def songs(self, answer: Any, limit: int) -> list[Song]:
        results = member(answer, "results")
        if not isinstance(results, dict):
            raise not_the_interface()
        if "songs" not in results:
            return []  # Shazam omits the member if nothing was found.
        return songs_of(member(results, "songs", "data"), _shazam_song, limit)


def _shazam_song(entry: dict[str, Any]) -> Song | None:
    attributes = member(entry, "attributes")
    artwork = member(attributes, "artwork", "url")
    if isinstance(artwork, str):
        artwork = artwork.replace("{w}", _COVER_SIZE).replace("{h}", _COVER_SIZE)
    name, artist = member(attributes, "name"), member(attributes, "artistName")
    return song(name, artist, member(attributes, "url"), artwork)
