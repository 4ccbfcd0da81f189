"""Format selection: the largest video, then the most compatible one, and the best audio."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.media_url_server import MediaUrlServer
from support.programs import find, run
from support.video_site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Exchange, Server

_PICTURE = "testsrc2=size={size}:rate=10:duration=2"
_TONE = ("-f", "lavfi", "-i", "sine=frequency=440:duration=2")
_HLS = ("-f", "hls", "-hls_time", "1", "-hls_playlist_type", "vod")
_MASTER = """#EXTM3U
#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=192x144,CODECS="avc1.42e00a,mp4a.40.2"
avc/list.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=320x240,CODECS="vp09.00.10.08,mp4a.40.2"
vp9/list.m3u8
"""
#: If the sizes are equal, the more compatible format wins, even if it claims a lower quality.
_TIED = (
    _MASTER.replace("avc/", "absent/")
    .replace("192x144", "320x240")
    .replace("avc1.42e00a", "av01.0.00M.08")
    .replace("vp09.00.10.08", "avc1.42e00a")
    .replace("300000", "900000", 1)
)
#: Separate video and audio, each in byte ranges of one file.
_APART = """#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="sound/list.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=192x144,CODECS="avc1.42e00a,mp4a.40.2",AUDIO="a"
picture/list.m3u8
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choices")
    for name in ("avc", "vp9", "picture", "sound", "sounds"):
        (folder / name).mkdir()
    small = ("-f", "lavfi", "-i", _PICTURE.format(size="192x144"))
    large = ("-f", "lavfi", "-i", _PICTURE.format(size="320x240"))
    codecs = ("-c:v", "mpeg2video", "-c:a", "aac")
    # Selection uses the codecs that the master list declares. The files use codecs that every
    # ffmpeg build can encode.
    _ffmpeg(*small, *_TONE, *codecs, *_HLS, str(folder / "avc" / "list.m3u8"))
    _ffmpeg(*large, *_TONE, *codecs, *_HLS, str(folder / "vp9" / "list.m3u8"))
    ranges = ("-hls_flags", "single_file")
    _ffmpeg(*small, "-c:v", "mpeg2video", *_HLS, *ranges, str(folder / "picture" / "list.m3u8"))
    _ffmpeg(*_TONE, "-c:a", "aac", *_HLS, *ranges, str(folder / "sound" / "list.m3u8"))
    (folder / "master.m3u8").write_text(_MASTER)
    (folder / "tied.m3u8").write_text(_TIED)
    (folder / "apart.m3u8").write_text(_APART)
    _ffmpeg(*_TONE, "-map", "0:a", "-map", "0:a", "-c:a:0", "aac", "-b:a:0", "32k",
            "-c:a:1", "libopus", "-b:a:1", "160k", "-f", "dash",
            "-adaptation_sets", "id=0,streams=0 id=1,streams=1", "-seg_duration", "1",
            str(folder / "sounds" / "list.mpd"))  # fmt: skip
    return folder


def _ffmpeg(*words: str) -> None:
    subprocess.run([find("ffmpeg"), "-nostdin", "-v", "error", "-y", *words], check=True)


class Ranged(Site):
    """Serves byte ranges and records them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ranges: list[str] = []

    async def answer(self, exchange: Exchange) -> None:
        asked = {name.lower(): value for name, value in exchange.headers}.get("range")
        if asked is None:
            await super().answer(exchange)
            return
        self.ranges.append(asked)
        data = (self.folder / exchange.target.lstrip("/")).read_bytes()
        first, last = map(int, asked.removeprefix("bytes=").split("-"))
        field = f"Content-Range: bytes {first}-{last}/{len(data)}"
        await exchange.answer(206, data[first : last + 1], field, "Content-Type: video/mp2t")


@pytest.fixture
def ranged(made: Path) -> Iterator[tuple[Ranged, Server]]:
    site = Ranged(made)
    with site.server() as running:
        yield site, running


def streams(data: bytes, path: Path) -> list[dict[str, Any]]:
    path.write_bytes(data)
    words = ("-v", "error", "-show_entries", "stream=codec_type,height", "-of", "json")
    found: list[dict[str, Any]] = json.loads(run("ffprobe", *words, path).stdout)["streams"]
    return found


@pytest.mark.parametrize(
    ("name", "resolution", "height"),
    [("master", "", 240), ("tied", "best", 240)],
)
def test_the_highest_before_what_plays_everywhere(
    ranged: tuple[Ranged, Server], tmp_path: Path, name: str, resolution: str, height: int
) -> None:
    """Resolution is more important than codec compatibility."""
    _, web = ranged
    with MediaUrlServer(tmp_path, web) as server:
        body = {"url": web.url(f"/{name}.m3u8"), "resolution": resolution}
        answer = server.json("/api/v1/downloadvideo", body)
        found = streams(server.file(answer), tmp_path / "kept")
    assert [one["height"] for one in found if one["codec_type"] == "video"] == [height]


def test_the_best_sound(ranged: tuple[Ranged, Server], tmp_path: Path) -> None:
    """160 kbit/s Opus wins over 32 kbit/s AAC, because the audio is converted in any case."""
    _, web = ranged
    with MediaUrlServer(tmp_path, web) as server:
        server.made("convert_to_mp3", web.url("/sounds/list.mpd"))
    asked = [one.target for one in web.requests if "stream" in one.target]
    assert asked
    assert {one.partition("stream")[2][0] for one in asked} == {"1"}


def test_picture_and_sound_of_lists_apart_and_of_ranges(
    ranged: tuple[Ranged, Server], tmp_path: Path
) -> None:
    site, web = ranged
    with MediaUrlServer(tmp_path, web) as server:
        data = server.made("download_video", web.url("/apart.m3u8"))
    found = streams(data, tmp_path / "kept")
    assert {one["codec_type"] for one in found} == {"video", "audio"}
    assert polymux.probe(tmp_path / "kept").duration_s == pytest.approx(2, abs=0.3)
    assert len(site.ranges) >= 4
    assert len({one.target for one in web.requests if "list" in one.target}) == 4
