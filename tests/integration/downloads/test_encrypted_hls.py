"""Encrypted HLS lists, which are decrypted without external programs."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import polymux
import pytest
from support.media_url_server import MediaUrlServer
from support.programs import find
from support.video_site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Server

KEY = b"0123456789abcdef"
#: DRM formats that only a site's own player can decrypt.
PROTECTED = {
    "protected": 'METHOD=SAMPLE-AES,KEYFORMAT="com.apple.streamingkeydelivery",URI="skd://x"',
    "samples": 'METHOD=SAMPLE-AES,URI="key"',
}


@pytest.fixture(scope="module")
def encrypted(site_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``good/list.m3u8``, and ``wrong/`` and ``short/`` with invalid keys."""
    folder = tmp_path_factory.mktemp("encrypted")
    (folder / "good").mkdir()
    (folder / "good" / "key").write_bytes(KEY)
    (folder / "key_info").write_text(f"key\n{folder / 'good' / 'key'}\n")
    subprocess.run(
        [
            find("ffmpeg"), "-nostdin", "-v", "error", "-i", str(site_folder / "low.mp4"),
            "-t", "1", "-vn", "-c:a", "copy", "-f", "hls", "-hls_playlist_type", "vod",
            "-hls_time", "0.5", "-hls_key_info_file", str(folder / "key_info"),
            str(folder / "good" / "list.m3u8"),
        ],
        check=True,
    )  # fmt: skip
    for name, key in (("wrong", b"x" * 16), ("short", b"x")):
        shutil.copytree(folder / "good", folder / name)
        (folder / name / "key").write_bytes(key)
    for name, protected in PROTECTED.items():
        shutil.copytree(folder / "good", folder / name)
        path = folder / name / "list.m3u8"
        original = path.read_text().splitlines()
        lines = [f"#EXT-X-KEY:{protected}" if "EXT-X-KEY" in line else line for line in original]
        path.write_text("\n".join(lines))
    return folder


@pytest.fixture
def server(encrypted: Path, tmp_path: Path) -> Iterator[tuple[Server, MediaUrlServer]]:
    with Site(encrypted).server() as web, MediaUrlServer(tmp_path, web) as running:
        yield web, running


def test_its_sound_is_that_of_the_video(server: tuple[Server, MediaUrlServer]) -> None:
    """yt-dlp would use the ffmpeg program if it is installed."""
    assert shutil.which("ffmpeg")
    web, running = server
    found = polymux.probe(running.made("download_video", web.url("/good/list.m3u8")))
    assert found.duration_s == pytest.approx(1.0, abs=0.2)
    assert [one.codec for one in found.streams] == ["aac"]
    assert "/good/key" in [one.target for one in web.requests]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("wrong", {(415, "unsupported_media"), (422, "undecodable")}),
        ("short", {(502, "upstream_failed")}),
        *((name, {(422, "encrypted")}) for name in PROTECTED),
    ],
)
def test_keys_that_are_none(
    server: tuple[Server, MediaUrlServer], name: str, expected: set[tuple[int, str]]
) -> None:
    web, running = server
    status, code, words = running.failure("download_video", web.url(f"/{name}/list.m3u8"))
    assert (status, code) in expected, words
    assert "ffmpeg" not in words
