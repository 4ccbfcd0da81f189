"""Download progress in a job's events and in local callbacks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import polymux
import pytest
from support.media_url_server import MediaUrlServer
from support.polymux_server import form
from support.video_site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Exchange, Server

_MAX_S = 60.0


class HeldSite(Site):
    """Sends three quarters of each file at first and the rest on request.

    Progress reported before the request therefore belongs to the download.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.released = False
        self._rest = asyncio.Event()

    def release(self, server: Server) -> None:
        self.released = True
        server.call(self._rest.set)

    async def _file(self, exchange: Exchange, name: str) -> None:
        data = (self.folder / name).read_bytes()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        most = len(data) * 3 // 4
        await exchange.send(head.encode() + data[:most])
        await self._rest.wait()
        await exchange.send(data[most:])


@pytest.fixture
def held(site_folder: Path) -> Iterator[tuple[HeldSite, Server]]:
    site = HeldSite(site_folder)
    with site.server() as running:
        yield site, running
        site.release(running)


class Seen:
    """The job's progress during the download. The first progress releases the rest of the file."""

    def __init__(self, held: tuple[HeldSite, Server]) -> None:
        self._site, self._server = held
        self.before: list[float] = []

    def take(self, job: polymux.Prediction) -> None:
        progress = progress_of(job)
        if progress and not self._site.released:
            self.before.append(progress)
            self._site.release(self._server)


def progress_of(job: polymux.Prediction) -> float:
    return float(job.extra.get("progress") or 0.0)


ASKED: dict[str, tuple[str, str]] = {
    "download_video": ("/api/v1/downloadvideo", "/page/low.mp4"),
    "convert_to_mp3": ("/api/v1/convert2mp3", "/tone.wav"),
}


@pytest.mark.parametrize("operation", ASKED)
def test_events_of_the_job(held: tuple[HeldSite, Server], tmp_path: Path, operation: str) -> None:
    site = held[1]
    route, path = ASKED[operation]
    seen = Seen(held)
    with MediaUrlServer(tmp_path, site) as server:
        later = ("Prefer", "respond-async")
        if operation == "download_video":
            begun = server.json(route, {"url": site.url(path)}, [later])
        else:
            body, headers = form(("url", site.url(path)))
            begun = server.ask("POST", route, body, [*headers, later])
        with polymux.Client(server.url, server.key) as client:
            jobs = []
            for job in client.predictions.events(begun.json()["id"], timeout=_MAX_S):
                jobs.append(job)
                seen.take(job)
    assert jobs[-1].status == "succeeded"
    assert seen.before
    assert 0 < seen.before[0] < 1
    shares = [progress_of(job) for job in jobs]
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
