"""Connections to song catalogs: proxies, reuse and cancellation."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING

import pytest
from polymux.errors import (
    InternalServerError,
    RequestTimeoutError,
)
from servers import song_providers as answers
from servers.song_providers import SongProviders
from support.server_process import until
from support.song_searches import ITUNES, PATH, local, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Exchange


@pytest.fixture
def providers() -> Iterator[SongProviders]:
    with SongProviders() as running:
        yield running


def test_a_kept_connection_that_is_closed_when_it_is_used_again(
    providers: SongProviders,
) -> None:
    """After an idle time the request is repeated once. Otherwise it is a failure."""
    body = json.dumps({"results": [answers.itunes_song(0)]}).encode()
    heads: list[bytes] = []

    async def once(exchange: Exchange) -> None:
        await exchange.answer(200, body)
        heads.append(await exchange.reader.readuntil(b"\r\n\r\n"))

    providers.instead["itunes"] = once
    with local(providers.settings("itunes")) as here:
        here.search_music("a")
        time.sleep(1.1)
        assert len(here.search_music("b", limit=1)) == 1
        assert b"term=b" in heads[0]
        with pytest.raises(InternalServerError, match="itunes"):
            here.search_music("c")
    assert [one.query["term"] for one in providers.asked] == ["a", "b"]


@pytest.mark.parametrize(
    "proxy",
    [
        "http://127.0.0.1:{port}",
        "file:///etc/passwd",
        "http://allowed.example:3128@127.0.0.1:{port}",
    ],
)
def test_no_proxy_unless_it_is_allowed(
    tmp_path: Path, providers: SongProviders, proxy: str
) -> None:
    """U53 in docs/development/testing.md."""
    settings = providers.settings(allowed_proxies=("http://allowed.example:3128",))
    with SongProviders() as decoy, served(tmp_path, settings) as server:
        given = proxy.format(port=decoy.server.port)
        answer = server.json(PATH, {"song": "x", "proxy": given})
        assert answer.status == 400
        assert "proxy" in answer.json()["error"]
        assert decoy.server.connections == 0
    assert providers.asked == []


def test_a_proxy_that_is_allowed(
    tmp_path: Path, providers: SongProviders, caplog: pytest.LogCaptureFixture
) -> None:
    with SongProviders() as proxy:
        settings = providers.settings(allowed_proxies=(proxy.url,))
        with caplog.at_level(logging.DEBUG), served(tmp_path, settings) as server:
            given = proxy.url.replace("://", "://me:secret-word@")
            answer = server.json(PATH, {"song": "x", "limit": 1, "proxy": given})
            assert (answer.status, answer.json()) == (200, [ITUNES])
            (asked,) = proxy.asked
            assert asked.headers["proxy-authorization"].startswith("Basic ")
            assert providers.asked == []
            # Other clients use neither the proxy nor its cached results.
            server.json(PATH, {"song": "x", "limit": 1})
            assert len(providers.asked) == len(proxy.asked) == 1
            assert "proxy-authorization" not in providers.asked[0].headers
            proxy.instead["itunes"] = answers.status(500)
            answer = server.json(PATH, {"song": "y", "proxy": given})
            assert answer.status == 502
            assert server.json(PATH, {"song": "z"}).status == 200
    assert "secret-word" not in caplog.text + answer.body.decode()


def test_who_leaves_ends_the_request(tmp_path: Path, providers: SongProviders) -> None:
    providers.instead["itunes"] = answers.silent
    with served(tmp_path, providers.settings()) as server:
        body = b'{"song": "x"}'
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: {server.address[0]}:{server.address[1]}\r\n"
            f"Authorization: Bearer {server.key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with server.connect() as connection:
            connection.sendall(head.encode() + body)
            until(lambda: providers.asked, 5)
            assert not providers.server.gone.is_set()
        assert providers.server.gone.wait(15)
        # The cancellation uses up a rate limit slot, but does not count as a failure of the
        # catalog.
        del providers.instead["itunes"]
        assert server.json(PATH, {"song": "x"}).status == 200


def test_a_deadline_of_the_caller_closes_the_connection(providers: SongProviders) -> None:
    providers.instead["itunes"] = answers.silent
    with local(providers.settings()) as here:
        began = time.monotonic()
        with pytest.raises(RequestTimeoutError):
            here.search_music("x", timeout=0.5)
        assert time.monotonic() - began < 15
        assert providers.server.gone.wait(15)
