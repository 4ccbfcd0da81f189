from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError
from polymux.upstreams.song_search.providers import ITunes, MusicBrainz, Shazam
from polymux.upstreams.song_search.songs import Song
from servers.song_providers import RECORDING, RELEASE, itunes_song, recording, shazam_song

if TYPE_CHECKING:
    from polymux.upstreams.song_search.source import SongSource

HOSTILE = 'a&b=c#d?e/f%2F+"\u00e4\U0001f3b5'


def itunes() -> ITunes:
    return ITunes("http://127.0.0.1:9", 1, "at")


def musicbrainz() -> MusicBrainz:
    return MusicBrainz("http://127.0.0.1:9", 1, "music@site.example")


def shazam() -> Shazam:
    return Shazam("http://127.0.0.1:9", 1, "de")


ALL = [itunes(), musicbrainz(), shazam()]


def framed(source: SongSource, entries: Any) -> Any:
    if source.name == "itunes":
        return {"resultCount": 1, "results": entries}
    if source.name == "musicbrainz":
        return {"count": 1, "offset": 0, "recordings": entries}
    return {"results": {"songs": {"data": entries}}}


def entry(source: SongSource) -> dict[str, Any]:
    made = {"itunes": itunes_song, "musicbrainz": recording, "shazam": shazam_song}
    return made[source.name](7)


@pytest.mark.parametrize(
    ("source", "path", "query"),
    [
        (ALL[0], "/search", {"term": HOSTILE, "media": "music", "entity": "song", "limit": "50",
                             "country": "AT"}),
        (ALL[1], "/ws/2/recording", {"query": HOSTILE, "limit": "50", "fmt": "json",
                                     "dismax": "true"}),
        (ALL[2], "/services/amapi/v1/catalog/DE/search", {"term": HOSTILE, "types": "songs",
                                                          "limit": "25"}),
    ],
)  # fmt: skip
def test_what_is_asked(source: SongSource, path: str, query: dict[str, str]) -> None:
    target = source.path(HOSTILE, 50)
    assert target.isascii()
    parts = urlsplit(target)
    assert parts.path == path
    found = parse_qs(parts.query, strict_parsing=True)
    assert found == {name: [value] for name, value in query.items()}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            ALL[0],
            Song(
                "The Blue Danube 7 - Johann Strauss II",
                "https://music.example/us/album/waltzes/1?i=7&uo=4",
                "https://images.example/7/400x400bb.jpg",
            ),
        ),
        (
            ALL[1],
            Song(
                "An der schönen blauen Donau 7 - Johann Strauss & Vienna Philharmonic",
                f"https://musicbrainz.org/recording/{RECORDING.format(7)}",
                f"https://coverartarchive.org/release/{RELEASE.format(7)}/front-500",
            ),
        ),
        (
            ALL[2],
            Song(
                "Blue Danube 7 - André Rieu",
                "https://www.shazam.example/song/7/blue-danube",
                "https://images.example/7/400x400bb.jpg",
            ),
        ),
    ],
)
def test_songs(source: SongSource, expected: Song) -> None:
    many = [entry(source)] * 10
    assert source.songs(framed(source, many), 3) == [expected] * 3
    assert source.songs(framed(source, []), 5) == []


def test_odd_covers() -> None:
    """A cover URL without a size is kept, and an unknown URL template is dropped."""
    url = "https://images.example/cover.jpg"
    odd = entry(ALL[0]) | {"artworkUrl100": url}
    assert ALL[0].songs(framed(ALL[0], [odd]), 5)[0].image_url == url
    odd = entry(ALL[2])
    odd["attributes"]["artwork"] = {"url": "https://images.example/{w}x{h}{c}.{f}"}
    assert ALL[2].songs(framed(ALL[2], [odd]), 5)[0].image_url == ""
    assert ALL[2].songs({"results": {}}, 5) == []


def of_musicbrainz(**changed: Any) -> Song:
    source = musicbrainz()
    [found] = source.songs(framed(source, [entry(source) | changed]), 5)
    return found


@pytest.mark.parametrize(
    ("releases", "image"),
    [
        ([], ""),
        (None, ""),
        ([5, {"id": "../../evil"}, {"id": RELEASE.format(1)}], RELEASE.format(1)),
        ([{"id": RELEASE.format(1)}, {"id": RELEASE.format(2)}], RELEASE.format(1)),
        ([{"id": RELEASE.format(1) + "/x", "status": "Official"}], ""),
    ],
)
def test_covers_of_musicbrainz(releases: Any, image: str) -> None:
    found = of_musicbrainz(releases=releases).image_url
    assert found == (image and f"https://coverartarchive.org/release/{image}/front-500")


def test_pages_and_artists_of_musicbrainz_that_are_none() -> None:
    for identifier in (None, "x", "../artist/1", RECORDING.format(1) + "?"):
        assert of_musicbrainz(id=identifier).url == ""
    for credit in (None, [], "x", [5], [{}], [{"name": None, "joinphrase": 5}]):
        found = of_musicbrainz(**{"artist-credit": credit})
        assert found.name == "An der schönen blauen Donau 7"


@pytest.mark.parametrize("source", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize(
    "answer",
    [
        None, "x", [], {}, {"results": None}, {"results": "x"}, {"results": {"songs": None}},
        {"results": {"songs": {"data": {"a": 1}}}}, {"recordings": {}}, {"error": "down"},
    ],
    ids=repr,
)  # fmt: skip
def test_answers_that_are_none(source: SongSource, answer: Any) -> None:
    with pytest.raises(ProviderError) as caught:
        source.songs(answer, 5)
    assert caught.value.kind is ErrorKind.FAILED


@pytest.mark.parametrize("source", ALL, ids=lambda one: one.name)
def test_entries_that_are_none_are_left_out(source: SongSource) -> None:
    good = entry(source)
    odd = [None, 5, "x", [], {}, {"attributes": 5}, {"attributes": {"name": []}}, {"title": 5}]
    assert len(source.songs(framed(source, [*odd, good, *odd]), 50)) == 1
    with pytest.raises(ProviderError):
        source.songs(framed(source, odd), 50)


@pytest.mark.parametrize("source", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("value", [None, 5, {"url": 5}, "javascript:alert(1)"])
def test_any_member_may_be_of_any_kind(source: SongSource, value: Any) -> None:
    good = entry(source)
    inner = good["attributes"] if source.name == "shazam" else good
    for name in list(inner):
        answer = dict(good)
        changed = inner | {name: value}
        answer = {**good, "attributes": changed} if source.name == "shazam" else changed
        with suppress(ProviderError):
            (found,) = source.songs(framed(source, [answer]), 5)
            assert "javascript" not in found.url + found.image_url
