"""Videos that nobody may see, and such that nobody can listen to in time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.addressed_server import AddressedServer
from support.web import Server

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import Exchange, Script

PAGE = "Content-Type: text/html; charset=utf-8"


def described(duration: str) -> Script:
    """A page that says how long its video is; of that, the beginning is looked at."""

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
    """A list of parts of ten seconds each, none of which is wanted."""

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
    [("download_video", described("PT10H")), ("summarize_video", listed(36_000)),
     ("convert_to_mp3", listed(36_000))],
)  # fmt: skip
def test_ten_hours(tmp_path: Path, operation: str, script: Script) -> None:
    """U52: what lasts longer than is taken is not fetched at all."""
    with Server(script) as site, AddressedServer(tmp_path, site) as server:
        status, code, words = server.failure(operation, site.url("/page"))
        assert (status, code) == (413, "too_large"), words
        assert "36000 s" in words
        assert len([one for one in site.requests if one.target != "/page"]) <= 1


@pytest.mark.parametrize(
    ("operation", "answer", "status", "code"),
    [("download_video", 401, 502, "upstream_failed"), ("summarize_video", 404, 404, "gone"),
     ("convert_to_mp3", 410, 404, "gone"), ("download_video", 451, 502, "upstream_failed")],
)  # fmt: skip
def test_videos_that_are_not_for_everybody(
    tmp_path: Path, operation: str, answer: int, status: int, code: str
) -> None:
    """U52: the page is there; what it shows is not."""

    async def script(exchange: Exchange) -> None:
        if exchange.target == "/page":
            await exchange.answer(200, b'<html><video src="/a.mp4"></video></html>', PAGE)
        else:
            await exchange.answer(answer, b"<html>members only</html>", PAGE)

    with Server(script) as site, AddressedServer(tmp_path, site) as server:
        told = server.failure(operation, site.url("/page"))
        assert told[:2] == (status, code), told
        assert str(answer) in told[2]
