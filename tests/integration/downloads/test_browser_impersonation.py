"""Sites that only serve browsers: the request imitates a browser and uses the same proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import brotli
import pytest
from polymux import errors
from polymux.downloads.ytdlp import extracted
from polymux.engines.base import Token
from support.fetches import brotli_bomb
from support.hostile_check import SANITIZED
from support.http_server import Exchange, Server
from support.media_url_server import MediaUrlServer, Watched
from support.sinks import HeardSink
from yt_dlp import YoutubeDL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Script

#: The downloader's memory limit against oversized responses.
_DATA_BYTES = 400 << 20
SHOWN = b'<!doctype html><html><title>Rivers</title><video src="%s"></video></html>'
_REFUSED = ("cf-mitigated: challenge", "Content-Type: text/html", "Connection: close")


def is_browser(exchange: Exchange) -> bool:
    """Whether it has headers that only browsers send (client hints, w3c.github.io/webappsec)."""
    return "sec-ch-ua" in {name.lower() for name, _ in exchange.headers}


def picky(video: bytes, seen: list[bool], *, lets_through: bool = True) -> Script:
    async def script(exchange: Exchange) -> None:
        seen.append(is_browser(exchange))
        if not (lets_through and seen[-1]):
            await exchange.answer(403, b"<html><title>Just a moment...</title></html>", *_REFUSED)
        elif exchange.target == "/page":
            await exchange.answer(200, SHOWN % b"/a.mp4", "Content-Type: text/html")
        else:
            await exchange.answer(200, video, "Content-Type: video/mp4")

    return script


@pytest.fixture
def site(request: pytest.FixtureRequest, certificate: Path) -> Iterator[Server]:
    """A site without content. With TLS, the downloader trusts the operator's certificates."""

    async def nothing(exchange: Exchange) -> None:
        await exchange.answer(404)

    # Plain HTTP by default.
    scheme = getattr(request, "param", "http")
    safe = certificate.with_name("both.pem") if scheme == "https" else None
    with Server(nothing, certificate=safe) as running:
        yield running


@pytest.mark.parametrize(
    ("site", "operation"), [("http", "convert_to_mp3"), ("https", "download_video")],
    indirect=["site"],
)  # fmt: skip
def test_it_is_asked_again_as_by_a_browser(
    site: Server, certificate: Path, site_folder: Path, tmp_path: Path, operation: str
) -> None:
    seen: list[bool] = []
    site.script = picky((site_folder / "low.mp4").read_bytes(), seen)
    with MediaUrlServer(tmp_path, site, bundle=certificate) as server:
        answer = server.fetches(operation, site.url("/page"))
        assert answer.status == 200, answer.body
        server.has_nothing_left()
    # The downloader imitates a browser only after the first refusal, then for all requests.
    assert seen[0] is False
    assert seen[-2:] == [True, True]
    assert seen == sorted(seen)


def test_one_that_wants_more_than_a_browser(
    site: Server, certificate: Path, tmp_path: Path
) -> None:
    seen: list[bool] = []
    site.script = picky(b"", seen, lets_through=False)
    with MediaUrlServer(tmp_path, site, bundle=certificate) as server:
        status, code, words = server.failure("download_video", site.url("/page"))
    assert (status, code) == (502, "upstream_failed")
    assert "403" in words
    assert "extractor-args" not in words
    assert seen.count(True) == 1


@pytest.mark.parametrize(
    ("site", "how"), [("https", "redirect"), ("http", "video")], indirect=["site"]
)
def test_a_browser_is_led_nowhere_else(
    site: Server, certificate: Path, tmp_path: Path, how: str
) -> None:
    async def leading(exchange: Exchange) -> None:
        if not is_browser(exchange):
            await exchange.answer(403, b"<html></html>", *_REFUSED)
        elif how == "redirect":
            await exchange.answer(302, b"", f"Location: {decoy.url('/a.mp4')}")
        else:
            page = SHOWN % decoy.url("/a.mp4").encode()
            await exchange.answer(200, page, "Content-Type: text/html")

    async def secret(exchange: Exchange) -> None:
        await exchange.answer(200, b"secret", "Content-Type: video/mp4")

    with Server(secret) as decoy, MediaUrlServer(tmp_path, site, bundle=certificate) as server:
        site.script = leading
        status, code, words = server.failure("download_video", site.url("/page"))
        assert (status, code) == (400, "url_refused"), words
        assert decoy.connections == 0


def test_a_page_packed_by_brotli(site_folder: Path, tmp_path: Path) -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.target == "/page":
            fields = ("Content-Encoding: br", "Content-Type: text/html")
            await exchange.answer(200, brotli.compress(SHOWN % b"/low.mp4"), *fields)
        else:
            data = (site_folder / "low.mp4").read_bytes()
            await exchange.answer(200, data, "Content-Type: video/mp4")

    with Server(script) as web, MediaUrlServer(tmp_path, web) as server:
        answer = server.fetches("download_video", web.url("/page"))
        assert answer.status == 200, answer.body


def test_a_bomb_for_browsers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gibibyte page compressed to under a kilobyte. Stays within the memory limit (U37)."""
    if not SANITIZED:
        monkeypatch.setattr("polymux.downloads.downloader._DATA_BYTES", _DATA_BYTES)

    bomb = brotli_bomb()

    async def script(exchange: Exchange) -> None:
        if is_browser(exchange):
            await exchange.answer(200, bomb, "Content-Encoding: br", "Content-Type: text/html")
        else:
            await exchange.answer(403, b"<html></html>", *_REFUSED)

    with (
        Server(script) as site,
        MediaUrlServer(tmp_path, site) as server,
        Watched() as watched,
    ):
        status, code, words = server.failure("download_video", site.url("/page"))
    assert (status, code) == (502, "upstream_failed"), words
    assert watched.max_bytes <= _DATA_BYTES + (64 << 20) or SANITIZED


def test_where_nothing_imitates_browsers(tmp_path: Path) -> None:
    seen: list[bool] = []
    with Server(picky(b"", seen)) as site, YoutubeDL({"quiet": True, "proxy": ""}) as library:
        library._request_director.handlers.pop("CurlCFFI")
        with pytest.raises(errors.InternalServerError, match="curl-cffi") as caught:
            extracted(library, site.url("/page"), HeardSink(tmp_path), Token())
    assert (caught.value.status, caught.value.code) == (502, "upstream_failed")
    assert seen == [False]
