"""Tags and a cover from the page, if the file lacks them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from PIL import Image
from polymux.downloads.engine import tags_of
from support import programs
from support.media_url_server import MediaUrlServer
from support.video_site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Exchange, Server

PAGE = """<!doctype html><html><head><title>Blue &amp; Danube</title></head>
<body><video controls poster="{poster}"><source src="/{file}" type="video/mp4"></video>
</body></html>"""


#: yt-dlp appends a number to the page's title.
TITLE = "Blue & Danube (1)"


def picture(kind: str, side: int = 32) -> bytes:
    buffer = io.BytesIO()
    Image.effect_mandelbrot((side, side), (-2, -1.5, 1, 1.5), 50).save(buffer, kind)
    return buffer.getvalue()


class MusicSite(Site):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.poster = b""
        self.recording = "plain.mp4"

    async def answer(self, exchange: Exchange) -> None:
        if exchange.target.startswith("/find/"):
            page = PAGE.format(poster="/poster", file=self.recording)
            await exchange.answer(200, page.encode(), "Content-Type: text/html; charset=utf-8")
        elif exchange.target == "/poster":
            await exchange.answer(200, self.poster, "Content-Type: image/anything")
        else:
            await super().answer(exchange)


@pytest.fixture(scope="module")
def music(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MusicSite, Server]]:
    folder = tmp_path_factory.mktemp("music")
    tone = ("-f", "lavfi", "-i", "sine=frequency=440:duration=2")
    cover = folder / "own.jpg"
    cover.write_bytes(picture("JPEG", 48))
    programs.ffmpeg(*tone, "-c:a", "aac", folder / "plain.mp4")
    programs.ffmpeg(
        *tone, "-i", cover, "-map", "0", "-map", "1", "-c:a", "aac", "-c:v", "copy",
        "-disposition:v", "attached_pic", "-metadata", "title=Own title", "-metadata",
        "artist=Own artist", folder / "tagged.mp4",
    )  # fmt: skip
    site = MusicSite(folder)
    with site.server() as running:
        yield site, running


@pytest.fixture(scope="module")
def server(
    music: tuple[MusicSite, Server], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MediaUrlServer]:
    _, running = music
    folder, search = tmp_path_factory.mktemp("served"), running.url("/find/{query}")
    with MediaUrlServer(folder, running, max_bytes=1 << 30, music_search=search) as server:
        yield server


def downloaded(server: MediaUrlServer) -> polymux.MediaInfo:
    answer = server.json("/api/v1/downloadmusic", {"query": "blue danube"})
    return polymux.probe(server.file(answer))


@pytest.mark.parametrize(
    ("poster", "kind"),
    [
        (picture("JPEG"), "image/jpeg"),
        (picture("WEBP"), ""),
        (b"\xff\xd8\xff" + bytes(5 << 20), ""),
    ],
    ids=["JPEG", "WebP", "too large"],
)
def test_of_a_page(
    server: MediaUrlServer, music: tuple[MusicSite, Server], poster: bytes, kind: str
) -> None:
    """The music is downloaded even if the cover image is invalid."""
    site, _ = music
    site.recording, site.poster = "plain.mp4", poster
    info = downloaded(server)
    assert info.tags["title"] == TITLE
    assert "artist" not in info.tags
    cover = info.cover and (info.cover.mime_type, info.cover.data)
    assert cover == ((kind, poster) if kind else None)


def test_what_the_file_has_is_its_own(
    server: MediaUrlServer, music: tuple[MusicSite, Server]
) -> None:
    site, _ = music
    site.recording, site.poster = "tagged.mp4", picture("PNG")
    info = downloaded(server)
    assert (info.tags["title"], info.tags["artist"]) == ("Own title", "Own artist")
    assert info.cover is not None
    assert info.cover.data == picture("JPEG", 48)


@pytest.mark.parametrize(
    ("info", "tags"),
    [
        ({}, {}),
        ({"title": "A", "extractor_key": "Site", "uploader": "B"}, {"title": "A", "artist": "B"}),
        ({"title": "A", "extractor_key": "Generic", "uploader": "site.example"}, {"title": "A"}),
        ({"track": "T", "title": "A", "artists": ["B", "C"], "uploader": "D", "album": "L",
          "release_year": 1999},
         {"title": "T", "artist": "B, C", "album": "L", "date": "1999"}),
        ({"title": "x\x00\u202ey" + "z" * 1000, "artist": 7}, {"artist": "7"}),
    ],
)  # fmt: skip
def test_tags_of_pages(info: dict[str, Any], tags: dict[str, str]) -> None:
    found = tags_of(info)
    assert {name: value for name, value in found.items() if len(value) < 200} == tags
    assert all(value.isprintable() and len(value) <= 200 for value in found.values())
