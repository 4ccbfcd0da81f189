"""Lists of parts that are encrypted, as many sites have them: no program decrypts them."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.fetch.fetcher import FetchPolicy
from support.polymux_server import PolymuxServer
from support.programs import find
from support.video_site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.web import Server

VIDEO = "/api/v1/downloadvideo"
KEY = b"0123456789abcdef"
#: What only a site's own players decrypt.
PROTECTED = {
    "protected": 'METHOD=SAMPLE-AES,KEYFORMAT="com.apple.streamingkeydelivery",URI="skd://x"',
    "samples": 'METHOD=SAMPLE-AES,URI="key"',
    "counted": 'METHOD=SAMPLE-AES-CTR,URI="key"',
}


@pytest.fixture(scope="module")
def encrypted(site_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``good/list.m3u8``, and ``wrong/`` and ``short/``, whose keys are others."""
    folder = tmp_path_factory.mktemp("encrypted")
    (folder / "good").mkdir()
    (folder / "good" / "key").write_bytes(KEY)
    (folder / "told").write_text(f"key\n{folder / 'good' / 'key'}\n")
    subprocess.run(
        [
            find("ffmpeg"), "-nostdin", "-v", "error", "-i", str(site_folder / "low.mp4"),
            "-t", "1", "-vn", "-c:a", "copy", "-f", "hls", "-hls_playlist_type", "vod",
            "-hls_time", "0.5", "-hls_key_info_file", str(folder / "told"),
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
        told = path.read_text().splitlines()
        lines = [f"#EXT-X-KEY:{protected}" if "EXT-X-KEY" in line else line for line in told]
        path.write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def web(encrypted: Path) -> Iterator[Server]:
    with Site(encrypted).server() as running:
        yield running


@pytest.fixture(scope="module")
def server(web: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    fetch = FetchPolicy(allowed_hosts=(web.authority,))
    with PolymuxServer(tmp_path_factory.mktemp("encrypted") / "s", fetch=fetch) as running:
        yield running


def test_its_sound_is_that_of_the_video(server: PolymuxServer, web: Server, tmp_path: Path) -> None:
    """On machines with the ffmpeg program, too, to which yt-dlp would leave it."""
    assert shutil.which("ffmpeg")
    answer = server.json(VIDEO, {"url": web.url("/good/list.m3u8")})
    assert answer.status == 200, answer.body
    address = answer.json()["response"].removeprefix(server.url)
    (tmp_path / "made").write_bytes(server.ask("GET", address, key=None).body)
    found = polymux.probe(tmp_path / "made")
    assert found.duration_s == pytest.approx(1.0, abs=0.2)
    assert [one.codec for one in found.streams] == ["aac"]
    assert "/good/key" in [one.target for one in web.requests]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("wrong", {(415, "unsupported_media"), (422, "undecodable")}),
        ("short", {(502, "upstream_failed")}),
        *((name, {(422, "encrypted")}) for name in PROTECTED),
    ],
)
def test_keys_that_are_none(
    server: PolymuxServer, web: Server, name: str, told: set[tuple[int, str]]
) -> None:
    answer = server.json(VIDEO, {"url": web.url(f"/{name}/list.m3u8")})
    assert (answer.status, answer.json()["code"]) in told, answer.body
    assert "ffmpeg" not in answer.json()["error"]
    assert list((server.settings.store.folder / "drafts").iterdir()) == []
