"""MusicBrainz' search for recordings, with covers of the Cover Art Archive: open data.

One request a second for each address, and a contact in User-Agent: its pages "MusicBrainz API/Rate
Limiting" and "MusicBrainz API/Search" say so. No cover is asked for: an archive's address is made
of the release's id, and answers 404 where nobody has sent one in.
"""

from __future__ import annotations

import re
from typing import Any

from polymux._native.version import __version__
from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song, song, songs_of
from polymux.upstreams.song_search.source import SongSource, member, with_query

#: Pages and covers are for people, who have them from there whatever server was asked.
_RECORDING_URL = "https://musicbrainz.org/recording/"
_COVER_URL = "https://coverartarchive.org/release/{}/front-500"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class MusicBrainz(SongSource):
    """Recordings of MusicBrainz.

    Args:
        base_url: Its address.
        timeout_s: Most that an answer may take.
        contact: Of whoever runs this server.
    """

    name = "musicbrainz"
    rate = Rate(burst=1, per_s=1.0)
    #: Its answer to whoever asks too often, and when it is busy with others.
    limited = frozenset({503})

    def user_agent(self, contact: str) -> str:
        """With the contact, in the form that its documentation asks for."""
        return f"polymux/{__version__} ( {contact} )"

    def path(self, text: str, limit: int) -> str:
        """As `SongSource.path`."""
        # With dismax the text is words to look for, and no language of queries.
        query = {"query": text, "limit": limit, "dismax": "true", "fmt": "json"}
        return with_query("/ws/2/recording", query)

    def songs(self, answer: Any, limit: int) -> list[Song]:
        """As `SongSource.songs`."""
        return songs_of(member(answer, "recordings"), _song, limit)


def _song(entry: dict[str, Any]) -> Song | None:
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
