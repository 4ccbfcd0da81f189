"""`search_music` with local song catalogs and all their responses. Case IDs: testing.md."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.errors import (
    NoBackendError,
)
from polymux.upstreams.song_search.settings import SongSearchSettings
from servers import song_providers as answers
from servers.song_providers import UNKNOWN, SongProviders
from support.commands import run
from support.song_searches import ALL, PATH, SHAZAM, local, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Exchange
    from support.polymux_server import PolymuxServer


@pytest.fixture
def providers() -> Iterator[SongProviders]:
    with SongProviders() as running:
        yield running


@pytest.mark.parametrize("provider", list(ALL)[:1])
def test_every_way_gives_the_same(tmp_path: Path, providers: SongProviders, provider: str) -> None:
    settings = providers.settings(provider)
    expected = [ALL[provider]]

    async def asynchronously(server: PolymuxServer) -> Any:
        async with polymux.AsyncClient(server.url, server.key) as client:
            by_client = await client.search_music("Blue Danube", limit=1)
        async with polymux.AsyncLocal(engines={}, song_search=settings) as here:
            return by_client.json(), (await here.search_music("Blue Danube", limit=1)).json()

    with served(tmp_path, settings) as server:
        answer = server.json(PATH, {"song": "Blue Danube", "limit": "1"})
        assert (answer.status, answer.json()) == (200, expected)
        with polymux.Client(server.url, server.key) as client:
            found = client.search_music("Blue Danube", limit=1)
        assert found.json() == expected
        assert found[0].name == expected[0]["song_name"]
        assert asyncio.run(asynchronously(server)) == (expected, expected)
        words = ("search-music", "Blue Danube", "--limit", "1", "--server", server.url)
        shown = run(*words, cwd=tmp_path, POLYMUX_API_KEY=server.key)
        assert shown.stdout.decode() == f"{expected[0]['song_name']}\t{expected[0]['songid_url']}\n"
        done = run(*words, "--json", cwd=tmp_path, POLYMUX_API_KEY=server.key)
        assert json.loads(done.stdout) == expected
    with local(settings) as here:
        assert here.search_music("Blue Danube", limit=1).json() == expected
    # The polymux server asked once. `Local` and `AsyncLocal` have separate caches.
    assert providers.count(provider) == len(providers.asked) == 3


def test_without_settings_there_is_none(tmp_path: Path) -> None:
    with served(tmp_path, SongSearchSettings()) as server:
        answer = server.json(PATH, {"song": "x"})
    assert answer.status == 501
    assert answer.json()["code"] == "no_backend"
    assert "retry-after" not in answer.headers
    for word in ("[song_search]", "providers", "docs/guides/recognize-and-search-songs.md"):
        assert word in answer.json()["error"]
    with polymux.Local(engines={}) as here, pytest.raises(NoBackendError, match="song_search"):
        here.search_music("x")
    done = run("search-music", "x", "--local", cwd=tmp_path, code=3)
    assert "[song_search]" in done.stderr.decode()


def test_nothing_found_is_an_empty_list(tmp_path: Path, providers: SongProviders) -> None:
    settings = providers.settings("itunes", "musicbrainz", "shazam")
    with served(tmp_path, settings) as server:
        for _ in range(2):
            answer = server.json(PATH, {"song": UNKNOWN})
            assert (answer.status, answer.body) == (200, b"[]")
        words = ("search-music", UNKNOWN, "--server", server.url, "--json")
        assert run(*words, cwd=tmp_path, POLYMUX_API_KEY=server.key).stdout.split() == [b"[]"]
    assert [one.provider for one in providers.asked] == ["itunes", "musicbrainz", "shazam"]


#: O01 and O02.
LIMITS = ["-1", "0", "abc", "1e3", "1_0", "\u0665", "10000000000", 51, 0.5]
TEXTS = ["", " ", "\x00", "x" * 301, "x" * 900_000]


def test_texts_and_limits_that_are_none(tmp_path: Path, providers: SongProviders) -> None:
    wrong = [("limit", one) for one in LIMITS] + [("song", one) for one in TEXTS]
    with served(tmp_path, providers.settings()) as server:
        for field, value in wrong:
            answer = server.json(PATH, {"song": "x", field: value})
            assert (answer.status, answer.json()["code"]) == (400, "invalid_request"), value
            assert field == "song" or field in answer.json()["error"]
            assert len(answer.body) < 400
        assert providers.asked == []
        for limit, count in ((None, 5), ("", 5), ("7", 7), (50, 50), (7.0, 7)):
            assert len(server.json(PATH, {"song": "x", "limit": limit}).json()) == count


@pytest.mark.parametrize(
    "song",
    ['"; DROP TABLE x;--', "a&limit=1#?", "Ü 🎵", "a\x00b"],
)
def test_texts_that_mean_something_elsewhere(providers: SongProviders, song: str) -> None:
    """Case O02."""
    with local(providers.settings("musicbrainz")) as here:
        assert len(here.search_music(song, limit=2)) == 2
    (asked,) = providers.asked
    assert asked.query["query"] == song.replace("\x00", " ")
    assert asked.query["limit"] == "2"


def test_what_providers_learn(tmp_path: Path, providers: SongProviders) -> None:
    """Requests contain nothing about the client. Only one catalog gets the operator's contact."""
    settings = providers.settings("itunes", "shazam", "musicbrainz", country="at")
    with served(tmp_path, settings) as server:
        fields = [("Cookie", "a=b"), ("User-Agent", "caller"), ("X-Forwarded-For", "192.0.2.1")]
        server.json(PATH, {"song": UNKNOWN}, fields)
    itunes, shazam, musicbrainz = providers.asked
    for one in providers.asked:
        assert set(one.headers) <= {"host", "user-agent", "accept", "accept-encoding"}
        assert one.headers["user-agent"].startswith("polymux/")
    assert itunes.query["country"] == "AT"
    assert "/catalog/AT/" in shazam.path
    assert musicbrainz.headers["user-agent"].endswith("( music@site.example )")
    assert "music@" not in itunes.headers["user-agent"] + shazam.headers["user-agent"]


def test_the_next_provider_answers(
    tmp_path: Path, providers: SongProviders, caplog: pytest.LogCaptureFixture
) -> None:
    providers.instead["itunes"] = answers.status(500)
    settings = providers.settings("itunes", "shazam", "musicbrainz")
    with caplog.at_level(logging.INFO, "polymux"), served(tmp_path, settings) as server:
        answer = server.json(PATH, {"song": "Secret Wish", "limit": 1})
        assert answer.json() == [SHAZAM]
        # The failing catalog is now skipped.
        assert server.json(PATH, {"song": "another", "limit": 1}).json() == [SHAZAM]
        ready = server.ask("GET", "/readyz").json()["backends"]["song_search"]
    assert providers.count("itunes") == 1
    assert providers.count("musicbrainz") == 0
    named = ("shazam", "itunes", "500")
    assert any(all(one in message for one in named) for message in caplog.messages)
    assert "Secret Wish" not in caplog.text
    assert ready["state"] == "ready"
    assert "itunes" in ready["detail"]


BOMB = gzip.compress(b'{"results": [' + bytes(50 << 20), 1)


async def broken(exchange: Exchange) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    await exchange.send(head + b'{"results": []}')
    exchange.reset()


async def nonsense(exchange: Exchange) -> None:
    await exchange.send(b"\x00\x01nonsense\r\n\r\n")


FAILED = (502, "upstream_failed")
FAILURES: dict[str, tuple[Any, tuple[int, str]]] = {
    "status 500": (answers.status(500), FAILED),
    "status 204": (answers.status(204), FAILED),
    "redirect": (answers.status(302, "Location: http://192.0.2.1/"), FAILED),
    "status 400": (answers.status(400), (400, "invalid_request")),
    "status 429": (answers.status(429), (429, "rate_limited")),
    "status 403": (answers.status(403), (429, "rate_limited")),
    "HTML": (answers.status(200, body=b"<html>Are you a robot?</html>"), FAILED),
    "deep": (answers.status(200, body=b"[" * 100_000), FAILED),
    "bytes": (answers.status(200, body=b'{"results": "\xff\xfe"}'), FAILED),
    "no list": (answers.value({"results": {"a": 1}}), FAILED),
    "no songs": (answers.value({"results": [{"trackName": 5}]}), FAILED),
    "breaks off": (broken, FAILED),
    "no HTTP": (nonsense, FAILED),
    "200 MB": (answers.endless, FAILED),
    "50 MB in little": (answers.status(200, "Content-Encoding: gzip", body=BOMB), FAILED),
    "silence": (answers.silent, (504, "upstream_timeout")),
}


@pytest.mark.parametrize("failure", list(FAILURES))
def test_which_error_a_caller_gets(tmp_path: Path, providers: SongProviders, failure: str) -> None:
    say, (status, code) = FAILURES[failure]
    providers.instead["itunes"] = say
    with served(tmp_path, providers.settings(provider_s=1)) as server:
        answer = server.json(PATH, {"song": "x"})
        text = answer.body.decode()
        assert (answer.status, answer.json()["code"]) == (status, code), text
        assert "itunes" in text
        for word in ("127.0.0.1", str(providers.server.port), "site.example", "Traceback"):
            assert word not in text
        assert len(text) < 500
        assert server.json(PATH, {"song": "y"}).status == status
    # An error about the text alone is not a reason to skip the catalog.
    assert providers.count("itunes") == (2 if status == 400 else 1)


def test_a_song_of_an_untrusted_answer(tmp_path: Path, providers: SongProviders) -> None:
    """HTML is plain data. Control characters and URLs of other schemes are removed (O03)."""
    hostile = {
        "trackName": "<script>alert(1)</script>\x1b]0;x\x07 " + "x" * 5000,
        "artistName": "\u202egnortS\r\nSet-Cookie: a=b",
        "trackViewUrl": "javascript:alert(1)",
        "artworkUrl100": "data:text/html,<script>",
    }
    providers.instead["itunes"] = answers.value({"results": [None, hostile] * 100})
    with served(tmp_path, providers.settings()) as server:
        answer = server.json(PATH, {"song": "x", "limit": 3})
        assert (answer.status, len(answer.json())) == (200, 3)
        (song, *_) = answer.json()
        shown = run("search-music", "x", "--limit", "3", "--server", server.url, cwd=tmp_path,
                    POLYMUX_API_KEY=server.key)  # fmt: skip
    assert song["song_name"].startswith("<script>alert(1)</script> ]0;x xx")
    assert len(song["song_name"]) < 600
    assert (song["songid_url"], song["song_image"]) == ("", "")
    assert song["song_name"].isprintable()
    assert b"\x1b" not in shown.stdout
    assert answer.headers["content-type"].startswith("application/json")
