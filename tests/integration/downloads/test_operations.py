"""What reaches out, by every way in: the route, both clients, `Local`, the commands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.downloads.backend import DownloadBackend
from polymux.downloads.downloader import PageDownloader
from polymux.downloads.settings import DownloadSettings
from polymux.engines.process.in_process import InProcessBackend
from polymux.runtime.settings import StoreSettings
from polymux.summaries.backend import SummaryBackend
from polymux.summaries.settings import SummaryOptions
from support.addressed_server import Writer, allowing
from support.commands import run
from support.polymux_server import PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.service.backend import Backend
    from support.web import Server


def backends(site: Server, folder: Path) -> list[Backend]:
    policy = allowing(site)
    settings = DownloadSettings(music_search=site.url("/find/{query}"))
    pages = PageDownloader(settings, policy, folder / "drafts", 3600)
    media = InProcessBackend("media", "media", ["convert_to_mp3"], max_concurrency=2)
    return [media, DownloadBackend(pages, media), SummaryBackend(pages, SummaryOptions()), Writer()]


@pytest.fixture
def server(site: Server, tmp_path: Path) -> Iterator[PolymuxServer]:
    store = StoreSettings(tmp_path / "s")
    with PolymuxServer(store.folder, lambda: backends(site, store.folder)) as running:
        running.answer_within_s = 60.0
        yield running


def asked(caller: Any, operation: str, site: Server) -> Any:
    if operation == "download_video":
        return caller.download_video(site.url("/page/low.mp4"), resolution="144p")
    if operation == "download_music":
        return caller.download_music("Blue Danube")
    return caller.summarize_video(site.url("/page/low.mp4"))


def seen(made: Any) -> Any:
    return made.text if hasattr(made, "text") else made.read()


ROUTES = {
    "download_video": "/api/v1/downloadvideo",
    "download_music": "/api/v1/downloadmusic",
    "summarize_video": "/api/v1/videosummarization",
}


@pytest.mark.parametrize("operation", ROUTES)
def test_every_way_in(server: PolymuxServer, site: Server, tmp_path: Path, operation: str) -> None:
    with polymux.Client(server.url, server.key) as client:
        first = seen(asked(client, operation, site))
    body: dict[str, Any] = {"url": site.url("/page/low.mp4")}
    if operation == "download_music":
        body = {"query": "Blue Danube"}
    answer = server.json(ROUTES[operation], body)
    assert answer.status == 200
    assert answer.json()["response"]

    async def by_async_client() -> Any:
        async with polymux.AsyncClient(server.url, server.key) as client:
            made = await asked(client, operation, site)
            return made.text if hasattr(made, "text") else await made.aread()

    assert asyncio.run(by_async_client()) == first
    place = tmp_path / "local"
    place.mkdir()
    with polymux.Local(place, backends=backends(site, place)) as local:
        assert seen(asked(local, operation, site)) == first
    assert asyncio.run(by_async_local(site, tmp_path / "async", operation)) == first
    assert by_command(server, site, operation, tmp_path) == first


async def by_async_local(site: Server, place: Path, operation: str) -> Any:
    place.mkdir()
    async with polymux.AsyncLocal(place, backends=backends(site, place)) as local:
        made = await asked(local, operation, site)
        return seen(made)


def by_command(server: PolymuxServer, site: Server, operation: str, folder: Path) -> Any:
    given = {"POLYMUX_BASE_URL": server.url, "POLYMUX_API_KEY": server.key}
    if operation == "summarize_video":
        done = run("summarize-video", site.url("/page/low.mp4"), cwd=folder, **given)
        return done.stdout.decode().strip()
    words = ["download-music", "Blue Danube"]
    if operation == "download_video":
        words = ["download-video", site.url("/page/low.mp4"), "--resolution", "144p"]
    run(*words, "--output-dir", "kept", cwd=folder, **given)
    (path,) = (folder / "kept").iterdir()
    return path.read_bytes()
