"""URLs that need the operator's cookies or proxy, and the proxy behind the SSRF protection."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

import polymux
import pytest
from polymux.downloads.downloader import PageDownloader
from polymux.downloads.proxy import GuardedProxy
from polymux.downloads.settings import DownloadSettings
from polymux.downloads.upstream_proxy import UpstreamProxy
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.model import ProgressSink
from support.fetches import answering
from support.http_server import Server
from support.media_url_server import MediaUrlServer, allowing

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange, Script


HTML = "Content-Type: text/html"
COOKIES = "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tmember\t1\n"


def members_only(status: int, video: bytes) -> Script:
    """``/page`` shows ``/video``. Both need the cookie."""

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
    [("convert_to_mp3", 401, "/page"), ("transcribe", 403, "/video.mp4")],
)  # fmt: skip
def test_with_the_operators_cookies(
    site_folder: Path, tmp_path: Path, operation: str, status: int, path: str
) -> None:
    (tmp_path / "cookies").write_text(COOKIES)
    video = (site_folder / "low.mp4").read_bytes()
    with (
        Server(members_only(status, video)) as web,
        MediaUrlServer(tmp_path, web, cookies=tmp_path / "cookies") as server,
    ):
        answer = server.fetches(operation, web.url(path))
        assert answer.status == 200, answer.body
        server.has_nothing_left()


@pytest.mark.parametrize("status", [403, 500])
def test_without_them_the_first_answer_is_reported(tmp_path: Path, status: int) -> None:
    with Server(members_only(status, b"")) as web, MediaUrlServer(tmp_path, web) as server:
        failure = server.failure("convert_to_mp3", web.url("/page"))
        assert failure[:2] == (502, "upstream_failed")
        assert str(status) in failure[2], failure
        # For a server error of the site, the downloader does not try again as a browser.
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
    """A site that refuses connections from this machine."""
    with Server(answering(200)) as closed:
        pass
    return closed


def test_by_the_operators_proxy(site: Server, out_of_reach: Server, tmp_path: Path) -> None:
    with (
        Server(leading(site)) as proxy,
        MediaUrlServer(tmp_path, out_of_reach, proxy=proxy.url("")) as server,
    ):
        made = server.made("convert_to_mp3", out_of_reach.url("/page/low.mp4"))
        server.has_nothing_left()
    assert polymux.probe(made).duration_s == pytest.approx(3, abs=0.3)
    assert {one.target for one in proxy.requests} == {out_of_reach.authority}


@pytest.mark.parametrize("redirected", [False, True])
def test_what_is_refused_stays_so(site: Server, tmp_path: Path, redirected: bool) -> None:
    with (
        Server(answering(200, b"secret")) as decoy,
        Server(leading(decoy)) as proxy,
        MediaUrlServer(tmp_path, site, proxy=proxy.url("")) as server,
    ):
        url = decoy.url("/a.mp4")
        url = site.url(f"/leads/{quote(url, safe='')}") if redirected else url
        failure = server.failure("convert_to_mp3", url)
        assert failure[:2] == (400, "url_refused")
        assert (decoy.connections, proxy.connections) == (0, 0)


def test_fragments_tell_yt_dlp_nothing(site: Server, tmp_path: Path) -> None:
    """A fragment with yt-dlp's internal marker could set headers such as ``Referer``."""
    words = quote(json.dumps({"referer": "http://canary.example/", "to_generic": True}))
    url = site.url(f"/low.mp4#__youtubedl_smuggle={words}")
    with MediaUrlServer(tmp_path, site) as server:
        assert server.fetches("download_video", url).status == 200
        assert server.fetches("convert_to_mp3", site.url("/page/low.mp4#/shows/1")).status == 200
    sent = [value for one in site.requests for _, value in one.headers]
    assert not any("canary" in value for value in sent)


MANY_BYTES = 1 << 30


async def come_through(
    folder: Path, near: FetchPolicy, upstream_proxy: UpstreamProxy | None, url: str
) -> bytes:
    """The response from the SSRF proxy, which forwards to this upstream proxy."""
    async with GuardedProxy(near, MANY_BYTES, upstream_proxy=upstream_proxy, idle_s=5) as guard:
        await guard.start(folder / "near")
        reader, writer = await asyncio.open_unix_connection(folder / "near")
        writer.write(f"GET {url} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        data = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return data


def asked(folder: Path, near: FetchPolicy, far: FetchPolicy, url: str) -> tuple[bytes, int]:
    """The response through both proxies, and the number of bytes that the far one received."""

    async def body() -> tuple[bytes, int]:
        async with GuardedProxy(far, MANY_BYTES) as behind:
            await behind.start(folder / "far")
            data = await come_through(folder, near, UpstreamProxy.of(behind.url), url)
            return data, behind.received_bytes

    return asyncio.run(body())


def test_it_never_hears_of_what_the_guard_refuses(tmp_path: Path) -> None:
    with Server(answering(200, b"secret")) as decoy:
        data, received = asked(tmp_path, FetchPolicy(), allowing(decoy), decoy.url("/"))
        assert decoy.connections == 0
    assert data.startswith(b"HTTP/1.1 403 ")
    assert received == 0


def test_what_it_refuses_itself(tmp_path: Path) -> None:
    with Server(answering(200, b"here")) as web:
        data, _ = asked(tmp_path, allowing(web), FetchPolicy(), web.url("/"))
        assert web.connections == 0
    assert data.startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize(
    "reply", [b"", b"HTTP/1.1 407 no\r\n\r\n", b"HTTP/1.1 200", b"x" * 40_000, b"\0\r\n\r\n"]
)
def test_one_that_speaks_otherwise(tmp_path: Path, reply: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    async def body() -> bytes:
        odd = await asyncio.start_server(talk, "127.0.0.1", 0)
        upstream_proxy = UpstreamProxy("127.0.0.1", odd.sockets[0].getsockname()[1])
        near = FetchPolicy(allowed_hosts=("127.0.0.1:9",))
        async with odd:
            return await come_through(tmp_path, near, upstream_proxy, "http://127.0.0.1:9/")

    assert asyncio.run(body()).startswith(b"HTTP/1.1 502 ")


def test_a_page(site: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All requests use the proxy, whose password is in an environment variable."""

    async def body() -> None:
        async with GuardedProxy(allowing(site), MANY_BYTES) as far:
            await far.start(tmp_path / "far")
            monkeypatch.setenv("THE_WAY_OUT", far.url)
            settings = DownloadSettings(proxy_environment="THE_WAY_OUT")
            folder = tmp_path / "drafts"
            folder.mkdir()
            pages = PageDownloader(settings, allowing(site), folder, 3600)
            sink = ProgressSink(lambda: None, lambda _: pytest.fail("it makes no drafts"))
            async with pages.downloaded(site.url("/page/low.mp4"), "video", sink) as found:
                size_bytes = sum(one.stat().st_size for one in found.files)
            assert size_bytes > 1000
            assert far.received_bytes > size_bytes

    asyncio.run(body())


@pytest.mark.parametrize(
    "given",
    [
        "https://far.example:3128", "far.example:3128", "", "http://", "http://far.example:port",
        "http://far.example/path", "http://far away:1", "http://far.example:99999",
        "http://far.example?x", "http://far.example\r\nX: y",
    ],
)  # fmt: skip
def test_what_is_no_proxy(given: str) -> None:
    with pytest.raises(InvalidRequestError, match="http://proxy") as caught:
        DownloadSettings(proxy=given)
    assert "far" not in str(caught.value)


def test_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidRequestError, match="proxy_environment") as caught:
        DownloadSettings(proxy="http://me:canary-77@proxy.example:8080")
    assert "canary-77" not in str(caught.value)
    settings = DownloadSettings(proxy_environment="THE_WAY_OUT")
    monkeypatch.setenv("THE_WAY_OUT", "http://me:canary%2D77@proxy.example")
    upstream_proxy = settings.upstream_proxy()
    assert upstream_proxy is not None
    assert (upstream_proxy.host, upstream_proxy.port, upstream_proxy.login) == (
        "proxy.example",
        3128,
        "bWU6Y2FuYXJ5LTc3",
    )
    assert upstream_proxy.login not in repr(upstream_proxy)
    monkeypatch.delenv("THE_WAY_OUT")
    with pytest.raises(InvalidRequestError, match=r"proxy_environment.*THE_WAY_OUT"):
        settings.upstream_proxy()
    with pytest.raises(InvalidRequestError, match="proxy_environment"):
        DownloadSettings(proxy="http://proxy.example", proxy_environment="THE_WAY_OUT")
