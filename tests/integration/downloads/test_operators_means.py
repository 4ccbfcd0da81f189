"""Addresses of files that only the operator's cookies or proxy can reach: as pages are."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

import polymux
import pytest
from support.addressed_server import AddressedServer
from support.fetches import answering
from support.web import Server

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import Exchange, Script

HTML = "Content-Type: text/html"
COOKIES = "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tmember\t1\n"


def members_only(status: int, video: bytes) -> Script:
    """``/page`` shows ``/video``, and both are there for who has the cookie."""

    async def script(exchange: Exchange) -> None:
        fields = {name.lower(): value for name, value in exchange.headers}
        if "member=1" not in fields.get("cookie", ""):
            await exchange.answer(status, b"<html>members only</html>", HTML)
        elif exchange.target == "/page":
            page = b'<!doctype html><html><video src="/video.mp4"></video></html>'
            await exchange.answer(200, page, HTML)
        else:
            await exchange.answer(200, video, "Content-Type: video/mp4")

    return script


@pytest.mark.parametrize(
    ("operation", "status", "path"),
    [("convert_to_mp3", 401, "/page"), ("transcribe", 403, "/video.mp4"),
     ("convert_to_mp3", 429, "/page")],
)  # fmt: skip
def test_with_the_operators_cookies(
    site_folder: Path, tmp_path: Path, operation: str, status: int, path: str
) -> None:
    (tmp_path / "cookies").write_text(COOKIES)
    video = (site_folder / "low.mp4").read_bytes()
    with (
        Server(members_only(status, video)) as web,
        AddressedServer(tmp_path, web, cookies=tmp_path / "cookies") as server,
    ):
        answer = server.fetches(operation, web.url(path))
        assert answer.status == 200, answer.body
        server.has_nothing_left()


@pytest.mark.parametrize("status", [403, 429, 500])
def test_without_them_the_first_answer_is_told(tmp_path: Path, status: int) -> None:
    with Server(members_only(status, b"")) as web, AddressedServer(tmp_path, web) as server:
        told = server.failure("convert_to_mp3", web.url("/page"))
        assert told[:2] == (502, "upstream_failed")
        assert told[2].endswith(f"the address answers with status {status}"), told
        # What is the site's own failure is no matter of who asks.
        assert (len(web.requests) == 1) == (status == 500)


def leading(*to: Server) -> Script:
    async def script(exchange: Exchange) -> None:
        reader, writer = await asyncio.open_connection(to[0].host, to[0].port)
        await exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")

        async def passes(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while data := await source.read(65_536):
                    sink.write(data)
                    await sink.drain()
            sink.close()

        await asyncio.gather(passes(exchange.reader, writer), passes(reader, exchange.writer))

    return script


@pytest.fixture
def out_of_reach() -> Server:
    """A site that takes no connections from here."""
    with Server(answering(200)) as closed:
        pass
    return closed


def test_by_the_operators_proxy(site: Server, out_of_reach: Server, tmp_path: Path) -> None:
    with (
        Server(leading(site)) as proxy,
        AddressedServer(tmp_path, out_of_reach, proxy=proxy.url("")) as server,
    ):
        made = server.made("convert_to_mp3", out_of_reach.url("/page/low.mp4"))
        server.has_nothing_left()
    assert polymux.probe(made).duration_s == pytest.approx(3, abs=0.3)
    assert {one.target for one in proxy.requests} == {out_of_reach.authority}


@pytest.mark.parametrize("redirected", [False, True])
def test_what_is_refused_stays_so(site: Server, tmp_path: Path, redirected: bool) -> None:
    """Neither the proxy nor what lies within hears of it."""
    with (
        Server(answering(200, b"secret")) as decoy,
        Server(leading(decoy)) as proxy,
        AddressedServer(tmp_path, site, proxy=proxy.url("")) as server,
    ):
        url = decoy.url("/a.mp4")
        url = site.url(f"/leads/{quote(url, safe='')}") if redirected else url
        told = server.failure("convert_to_mp3", url)
        assert told[:2] == (400, "url_refused")
        assert (decoy.connections, proxy.connections) == (0, 0)


def test_fragments_tell_yt_dlp_nothing(site: Server, tmp_path: Path) -> None:
    """By one of its own it would send what a caller wants as ``Referer``."""
    words = quote(json.dumps({"referer": "http://canary.example/", "to_generic": True}))
    url = site.url(f"/page/low.mp4#__youtubedl_smuggle={words}")
    with AddressedServer(tmp_path, site) as server:
        assert server.fetches("download_video", url).status == 200
        assert server.fetches("convert_to_mp3", site.url("/page/low.mp4#/shows/1")).status == 200
    sent = [value for one in site.requests for _, value in one.headers]
    assert not any("canary" in value for value in sent)
