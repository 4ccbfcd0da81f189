"""Recognition and search use the local song index first, then external providers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.service.routes import Route
from servers.song_providers import SongProviders
from servers.song_recognizer import NO_MATCH, SONG, SongRecognizer
from support import generated_songs
from support.served_songs import SEARCH, UNKNOWN, ask, served
from support.song_searches import ITUNES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Exchange

OWN = "Blue Danube - Strauss"


@pytest.fixture
def recognizer() -> Iterator[SongRecognizer]:
    with SongRecognizer() as running:
        yield running


@pytest.fixture
def providers() -> Iterator[SongProviders]:
    with SongProviders() as running:
        yield running


async def refused(exchange: Exchange) -> None:
    await exchange.answer(503, b"")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated_songs.snippet(tmp_path_factory.mktemp("known"), 2)


@pytest.fixture(scope="module")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated_songs.snippet(tmp_path_factory.mktemp("unknown"), UNKNOWN)


def test_others_are_asked_for_songs_that_are_not_ones_own(
    song_index: Path, recognizer: SongRecognizer, tmp_path: Path, known: Path, unknown: Path
) -> None:
    """The provider may not find the song either. Its failure is an error and not "no match"."""
    settings = recognizer.settings()
    with served(tmp_path, song_index, song_recognition=settings) as server:
        assert ask(server, known).json()["song_name"] == OWN
        assert recognizer.asked == []
        answer = ask(server, unknown)
        assert (answer.status, answer.json()) == (200, SONG)
        assert "polymux-metrics" not in answer.headers
        assert len(recognizer.asked) == 1
    with polymux.Local(engines={}, song_index=song_index, song_recognition=settings) as here:
        assert here.identify_song(known).name == OWN
        assert here.identify_song(unknown).json() == SONG
    recognizer.answer = NO_MATCH
    songs = {"empty_when_unknown": False}
    with served(tmp_path / "2", song_index, songs=songs, song_recognition=settings) as server:
        answer = ask(server, unknown)
        assert (answer.status, answer.json()["code"]) == (404, "no_match")
    recognizer.instead = refused
    with served(tmp_path / "3", song_index, song_recognition=settings) as server:
        assert ask(server, unknown).status == 502
        assert ask(server, known).json()["song_name"] == OWN


def test_others_are_asked_at_once_without_an_index(
    song_index: Path,
    recognizer: SongRecognizer,
    providers: SongProviders,
    tmp_path: Path,
    known: Path,
) -> None:
    """Without an index, and with an index that the routes exclude."""
    settings = {
        "song_recognition": recognizer.settings(),
        "song_search": providers.settings("itunes"),
    }
    with served(tmp_path, tmp_path / "nowhere", **settings) as server:
        assert ask(server, known).json() == SONG
        found = server.json(SEARCH, {"song": "Blue Danube", "limit": "1"})
        assert (found.status, found.json()) == (200, [ITUNES])
    routes = {"identify_song": (Route("song_recognition"),)}
    with served(tmp_path / "2", song_index, routes=routes, **settings) as server:
        assert ask(server, known).json() == SONG


def test_a_search_is_filled_up_by_others(
    song_index: Path, providers: SongProviders, tmp_path: Path
) -> None:
    with served(tmp_path, song_index, song_search=providers.settings("itunes")) as server:

        def names(limit: int) -> list[str]:
            answer = server.json(SEARCH, {"song": "Blue Danube", "limit": limit})
            assert answer.status == 200
            return [one["song_name"] for one in answer.json()]

        assert names(1) == [OWN]
        assert providers.asked == []
        assert names(3) == [OWN, ITUNES["song_name"], ITUNES["song_name"].replace(" 0", " 1")]
        providers.instead["itunes"] = refused
        assert names(4) == [OWN]
        answer = server.json(SEARCH, {"song": "entirely something else"})
        assert answer.status in (429, 502)


def test_a_proxy_must_be_allowed_where_others_may_be_asked(
    song_index: Path, providers: SongProviders, tmp_path: Path
) -> None:
    wanted = {"song": "Blue Danube", "limit": "1", "proxy": "http://proxy.example:3128"}
    settings = providers.settings("itunes")
    with served(tmp_path, song_index, song_search=settings) as server:
        answer = server.json(SEARCH, wanted)
        assert (answer.status, answer.json()["code"]) == (400, "url_refused")
    settings = providers.settings("itunes", allowed_proxies=("http://proxy.example:3128",))
    with served(tmp_path / "2", song_index, song_search=settings) as server:
        answer = server.json(SEARCH, wanted)
        assert (answer.status, answer.json()[0]["song_name"]) == (200, OWN)
