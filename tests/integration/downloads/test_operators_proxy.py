"""The operator's proxy behind the guard: it is told what was judged, and nothing else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from polymux.downloads.downloader import PageDownloader
from polymux.downloads.proxy import GuardedProxy
from polymux.downloads.settings import DownloadSettings
from polymux.downloads.upstream_proxy import UpstreamProxy
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.model import ProgressSink
from support.addressed_server import allowing
from support.fetches import answering
from support.web import Server

if TYPE_CHECKING:
    from pathlib import Path

MANY_BYTES = 1 << 30


async def come_through(
    folder: Path, near: FetchPolicy, upstream_proxy: UpstreamProxy | None, url: str
) -> bytes:
    """What the guard answers that has this proxy behind it."""
    async with GuardedProxy(near, MANY_BYTES, upstream_proxy=upstream_proxy, idle_s=5) as guard:
        await guard.start(folder / "near")
        reader, writer = await asyncio.open_unix_connection(folder / "near")
        writer.write(f"GET {url} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        data = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return data


def asked(folder: Path, near: FetchPolicy, far: FetchPolicy, url: str) -> tuple[bytes, int]:
    """What comes through both proxies, and how much the far one received."""

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
    "said", [b"", b"HTTP/1.1 407 no\r\n\r\n", b"HTTP/1.1 200", b"x" * 40_000, b"\0\r\n\r\n"]
)
def test_one_that_speaks_otherwise(tmp_path: Path, said: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async def body() -> bytes:
        odd = await asyncio.start_server(talk, "127.0.0.1", 0)
        upstream_proxy = UpstreamProxy("127.0.0.1", odd.sockets[0].getsockname()[1])
        near = FetchPolicy(allowed_hosts=("127.0.0.1:9",))
        async with odd:
            return await come_through(tmp_path, near, upstream_proxy, "http://127.0.0.1:9/")

    assert asyncio.run(body()).startswith(b"HTTP/1.1 502 ")


def test_a_page(site: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it comes by way of the proxy, whose password is in a variable."""

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
    with pytest.raises(InvalidRequestError, match="must be as http://proxy") as caught:
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
    with pytest.raises(InvalidRequestError, match=r"^proxy_environment: must be as"):
        settings.upstream_proxy()
    with pytest.raises(InvalidRequestError, match="give one of them"):
        DownloadSettings(proxy="http://proxy.example", proxy_environment="THE_WAY_OUT")
