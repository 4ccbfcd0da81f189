"""How catalogues of songs are reached: never by a detour, and never for longer than is wanted."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import threading
import time
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.errors import (
    InternalServerError,
    RequestTimeoutError,
)
from servers import song_catalogues as said
from servers.song_catalogues import SongCatalogues
from support.song_searches import ITUNES, MUSICBRAINZ, PATH, local, served, until
from support.web import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.web import Exchange


@pytest.fixture
def catalogues() -> Iterator[SongCatalogues]:
    with SongCatalogues() as running:
        yield running


def test_a_kept_connection_that_is_closed_when_it_is_used_again(
    catalogues: SongCatalogues,
) -> None:
    """After a rest it is asked once more; at once it is a failure."""
    body = json.dumps({"results": [said.itunes_song(0)]}).encode()
    heads: list[bytes] = []

    async def once(exchange: Exchange) -> None:
        await exchange.answer(200, body)
        heads.append(await exchange.reader.readuntil(b"\r\n\r\n"))

    catalogues.instead["itunes"] = once
    with local(catalogues.settings("itunes")) as here:
        here.search_music("a")
        time.sleep(1.1)
        assert len(here.search_music("b", limit=1)) == 1
        assert b"term=b" in heads[0]
        with pytest.raises(InternalServerError, match="broke off"):
            here.search_music("c")
    assert [one.query["term"] for one in catalogues.asked] == ["a", "b"]


def test_redirects_are_not_followed(tmp_path: Path, catalogues: SongCatalogues) -> None:
    async def decoy(exchange: Exchange) -> None:
        await exchange.answer(200, json.dumps({"results": [said.itunes_song(0)]}).encode())

    with Server(decoy) as elsewhere:
        for number in (301, 302, 303, 307, 308):
            say = said.status(number, f"Location: {elsewhere.url()}")
            catalogues.instead["itunes"] = say
            with served(tmp_path / str(number), catalogues.settings()) as server:
                answer = server.json(PATH, {"song": "x"})
            assert answer.status == 502
            assert f"points elsewhere (status {number})" in answer.json()["error"]
        assert elsewhere.connections == 0


def test_cookies_are_not_kept(catalogues: SongCatalogues) -> None:
    body = json.dumps({"results": [said.itunes_song(0)]}).encode()
    catalogues.instead["itunes"] = said.status(200, "Set-Cookie: id=1; Path=/", body=body)
    with local(catalogues.settings()) as here:
        here.search_music("a")
        here.search_music("b")
    assert len(catalogues.asked) == 2
    assert all("cookie" not in one.headers for one in catalogues.asked)


def test_proxies_of_the_environment_are_not_used(
    catalogues: SongCatalogues, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SongCatalogues() as decoy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, decoy.url)
        with local(catalogues.settings()) as here:
            here.search_music("x")
        assert decoy.server.connections == 0


@pytest.mark.parametrize(
    "proxy",
    ["http://127.0.0.1:{port}", "socks5://127.0.0.1:{port}", "file:///etc/passwd", "x",
     "http://allowed.example:3128@127.0.0.1:{port}"],
)  # fmt: skip
def test_no_proxy_unless_it_is_allowed(
    tmp_path: Path, catalogues: SongCatalogues, proxy: str
) -> None:
    """U53."""
    settings = catalogues.settings(allowed_proxies=("http://allowed.example:3128",))
    with SongCatalogues() as decoy, served(tmp_path, settings) as server:
        given = proxy.format(port=decoy.server.port)
        answer = server.json(PATH, {"song": "x", "proxy": given})
        assert answer.status == 400
        assert "proxy" in answer.json()["error"]
        assert decoy.server.connections == 0
    assert catalogues.asked == []


def test_a_proxy_that_is_allowed(
    tmp_path: Path, catalogues: SongCatalogues, caplog: pytest.LogCaptureFixture
) -> None:
    with SongCatalogues() as proxy:
        settings = catalogues.settings(allowed_proxies=(proxy.url,))
        with caplog.at_level(logging.DEBUG), served(tmp_path, settings) as server:
            given = proxy.url.replace("://", "://me:secret-word@")
            answer = server.json(PATH, {"song": "x", "limit": 1, "proxy": given})
            assert (answer.status, answer.json()) == (200, [ITUNES])
            (asked,) = proxy.asked
            assert asked.headers["proxy-authorization"].startswith("Basic ")
            assert catalogues.asked == []
            # Nobody else goes through it, nor is its answer theirs.
            server.json(PATH, {"song": "x", "limit": 1})
            assert len(catalogues.asked) == len(proxy.asked) == 1
            assert "proxy-authorization" not in catalogues.asked[0].headers
            proxy.instead["itunes"] = said.status(500)
            answer = server.json(PATH, {"song": "y", "proxy": given})
            assert answer.status == 502
            assert server.json(PATH, {"song": "z"}).status == 200
    assert "secret-word" not in caplog.text + answer.body.decode()


def test_musicbrainz_is_asked_once_a_second(tmp_path: Path, catalogues: SongCatalogues) -> None:
    times: list[float] = []
    body = json.dumps({"recordings": [said.recording(0)]}).encode()

    async def timed(exchange: Exchange) -> None:
        times.append(time.monotonic())
        await exchange.answer(200, body)

    catalogues.instead["musicbrainz"] = timed
    with served(tmp_path, catalogues.settings("musicbrainz")) as server:
        answers: list[int] = []
        threads = [
            threading.Thread(
                target=lambda n=n: answers.append(server.json(PATH, {"song": f"s{n}"}).status)
            )
            for n in range(3)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert answers == [200] * 3
    assert all(later - one > 0.9 for one, later in itertools.pairwise(times))


def test_who_leaves_ends_the_request(tmp_path: Path, catalogues: SongCatalogues) -> None:
    catalogues.instead["itunes"] = said.silent
    with served(tmp_path, catalogues.settings()) as server:
        body = b'{"song": "x"}'
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: {server.address[0]}:{server.address[1]}\r\n"
            f"Authorization: Bearer {server.key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with server.connect() as connection:
            connection.sendall(head.encode() + body)
            until(lambda: catalogues.asked, 5)
            assert not catalogues.server.gone.is_set()
        assert catalogues.server.gone.wait(1)
        # Its turn is used, but nothing else is: the catalogue is not thought to have failed.
        del catalogues.instead["itunes"]
        assert server.json(PATH, {"song": "x"}).status == 200


def test_a_task_that_is_cancelled_closes_the_connection(catalogues: SongCatalogues) -> None:
    catalogues.instead["itunes"] = said.silent

    async def main() -> None:
        async with polymux.AsyncLocal(engines={}, song_search=catalogues.settings()) as here:
            task = asyncio.ensure_future(here.search_music("x"))
            await asyncio.to_thread(until, lambda: catalogues.asked, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(catalogues.server.gone.wait, 1)

    asyncio.run(main())


def test_a_deadline_of_the_caller_closes_the_connection(catalogues: SongCatalogues) -> None:
    catalogues.instead["itunes"] = said.silent
    with local(catalogues.settings()) as here:
        began = time.monotonic()
        with pytest.raises(RequestTimeoutError):
            here.search_music("x", timeout=0.5)
        assert time.monotonic() - began < 2
        assert catalogues.server.gone.wait(1)


def test_a_slow_catalogue_leaves_time_for_the_next(catalogues: SongCatalogues) -> None:
    catalogues.instead["itunes"] = said.silent
    settings = catalogues.settings("itunes", "musicbrainz", provider_s=0.5)
    with local(settings) as here:
        began = time.monotonic()
        assert here.search_music("x", limit=1).json() == [MUSICBRAINZ]
        assert 0.4 < time.monotonic() - began < 3
        assert catalogues.server.gone.wait(1)
