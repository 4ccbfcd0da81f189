"""Private videos, and videos over the duration limit. Case IDs: docs/development/testing.md."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from polymux.runtime.settings import EngineSettings, Limits
from support.http_server import Server
from support.media_url_server import MediaUrlServer, allowing, fetched
from support.polymux_server import PolymuxServer
from support.video_site import Site
from support.weights import whisper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Exchange, Script


PAGE = "Content-Type: text/html; charset=utf-8"


def described(duration: str) -> Script:
    """A page that declares the duration of its video. Only the start of the video is requested."""

    async def script(exchange: Exchange) -> None:
        if exchange.target == "/page":
            about = {
                "@context": "https://schema.org",
                "@type": "VideoObject",
                "name": "A talk",
                "duration": duration,
                "contentUrl": f"http://{dict(exchange.headers)['Host']}/talk.mp4",
            }
            text = f'<html><script type="application/ld+json">{json.dumps(about)}</script></html>'
            await exchange.answer(200, text.encode(), PAGE)
        else:
            await exchange.answer(200, bytes(1000), "Content-Type: video/mp4")

    return script


def listed(duration_s: int) -> Script:
    """A list of ten-second segments, none of which is requested."""

    async def script(exchange: Exchange) -> None:
        if exchange.target == "/page":
            parts = "#EXTINF:10,\n/part.ts\n" * (duration_s // 10)
            text = f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n{parts}#EXT-X-ENDLIST\n"
            await exchange.answer(200, text.encode(), "Content-Type: application/vnd.apple.mpegurl")
        else:
            await exchange.answer(500)

    return script


@pytest.mark.parametrize(
    ("operation", "script"),
    [("download_video", described("PT10H")), ("convert_to_mp3", listed(36_000))],
)  # fmt: skip
def test_ten_hours(tmp_path: Path, operation: str, script: Script) -> None:
    """A video over the limit is not downloaded at all (U52)."""
    with Server(script) as site, MediaUrlServer(tmp_path, site) as server:
        status, code, words = server.failure(operation, site.url("/page"))
        assert (status, code) == (413, "too_large"), words
        assert "36000" in words
        assert len([one for one in site.requests if one.target != "/page"]) <= 1


@pytest.mark.parametrize(
    ("operation", "answer", "status", "code"),
    [("download_video", 401, 502, "upstream_failed"), ("summarize_video", 404, 404, "gone")],
)  # fmt: skip
def test_videos_that_are_not_for_everybody(
    tmp_path: Path, operation: str, answer: int, status: int, code: str
) -> None:
    """The page exists, but its video is private (U52)."""

    async def script(exchange: Exchange) -> None:
        if exchange.target == "/page":
            await exchange.answer(200, b'<html><video src="/a.mp4"></video></html>', PAGE)
        else:
            await exchange.answer(answer, b"<html>members only</html>", PAGE)

    with Server(script) as site, MediaUrlServer(tmp_path, site) as server:
        failure = server.failure(operation, site.url("/page"))
        assert failure[:2] == (status, code), failure
        assert str(answer) in failure[2]


#: In seconds. The videos last three seconds.
MAX_S = 2.0


class LyingSite(Site):
    """The list of segments and the video on the page claim to last one second."""

    async def answer(self, exchange: Exchange) -> None:
        if exchange.target == "/short.m3u8":
            text = (self.folder / "hls" / "list.m3u8").read_text()
            text = re.sub(r"#EXTINF:[0-9.]+", "#EXTINF:0.4", text)
            text = re.sub(r"^(?=[^#])", "/hls/", text, flags=re.MULTILINE)
            await exchange.answer(200, text.encode(), "Content-Type: application/vnd.apple.mpegurl")
        elif exchange.target == "/claims":
            about = (
                '{"@context": "https://schema.org", "@type": "VideoObject", "name": "A talk", '
                f'"duration": "PT1S", "contentUrl": "http://{dict(exchange.headers)["Host"]}'
                '/low.mp4"}'
            )
            page = f'<html><script type="application/ld+json">{about}</script></html>'
            await exchange.answer(200, page.encode(), "Content-Type: text/html")
        else:
            await super().answer(exchange)


@pytest.fixture(scope="module")
def lying(site_folder: Path) -> Iterator[Server]:
    with Server(LyingSite(site_folder).answer) as running:
        yield running


@pytest.fixture(scope="module")
def server(lying: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    """A server with default settings except the limit. Rejected input loads no model."""
    folder = tmp_path_factory.mktemp("limited")
    limits = Limits(duration_s=MAX_S)
    engines = {
        "media": EngineSettings("media"),
        "speech": EngineSettings("speech", {"model": str(whisper(folder))}),
    }
    with PolymuxServer(
        folder / "s", fetch=allowing(lying), limits=limits, engines=engines
    ) as running:
        running.answer_within_s = 60.0
        yield running


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("download_video", "/low.mp4"),
        ("download_video", "/claims"),
        ("download_video", "/hls/list.m3u8"),
        ("convert_to_mp3", "/short.m3u8"),
        ("transcribe", "/low.mp4"),
    ],
)
def test_what_lasts_too_long(
    server: PolymuxServer, lying: Server, operation: str, path: str
) -> None:
    """Detected from the list before any download, otherwise while the file is written."""
    answer = fetched(server, operation, lying.url(path))
    assert (answer.status, answer.json()["code"]) == (413, "too_large"), answer.body
    assert re.search(r"\b2\b", answer.json()["error"]), answer.body
    assert list((server.settings.store.folder / "drafts").iterdir()) == []
    assert server.state.service.store.media.used_bytes == 0
