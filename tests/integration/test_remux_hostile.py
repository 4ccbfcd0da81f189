"""What strangers may give the core's remux, and disks that end."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from polymux.media.remux import remux
from support import programs
from support.remuxes import PICTURE, SOUND, VIDEO_CODECS, left_over, make

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FULL_DISK = """
import resource, signal, sys
from polymux import errors
from polymux.media.remux import remux
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
try:
    remux([sys.argv[1]], sys.argv[2])
except errors.OutputFailedError as error:
    print(error.errno)
"""


@pytest.mark.parametrize("part_of_ten", [0, 5, 9])
def test_a_file_that_may_not_grow(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, part_of_ten: int
) -> None:
    source = make(tmp_path_factory.mktemp("source") / "a.mp4", *PICTURE, "-c:v", "libx264")
    room = source.stat().st_size * part_of_ten // 10
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, source, tmp_path / "a.mp4", str(room)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "27\n"  # EFBIG
    assert list(tmp_path.iterdir()) == []


PLAYLISTS = {
    "hls": b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
    "concat": b"ffconcat version 1.0\nfile '/etc/passwd'\n",
    "dash": b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period>'
    b"<AdaptationSet><Representation><BaseURL>file:///etc/passwd</BaseURL></Representation>"
    b"</AdaptationSet></Period></MPD>",
}
REFUSED = """
import sys
from polymux import errors
from polymux.media.remux import remux
print("begins", flush=True)
open("/etc/hostname")
try:
    remux([sys.argv[1]], sys.argv[2])
except errors.UnsupportedMediaError as error:
    print(error.code)
"""


@pytest.mark.parametrize("kind", PLAYLISTS)
def test_a_playlist_is_refused_and_nothing_it_names_is_opened(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "a.mp4"
    source.write_bytes(PLAYLISTS[kind])
    log = tmp_path / "log"
    done = subprocess.run(
        [programs.find("strace"), "-f", "-e", "trace=open,openat,connect", "-o", log,
         sys.executable, "-c", REFUSED, source, tmp_path / "b.mp4"],
        capture_output=True, text=True, check=True, timeout=120, env=programs.environment(),
    )  # fmt: skip
    assert done.stdout.split() == ["begins", "unsupported_media"]
    calls = log.read_text().partition("/etc/hostname")[2]
    assert str(source) in calls
    assert "passwd" not in calls
    assert "connect(" not in calls


def damaged(content: bytes) -> Iterator[bytes]:
    chance = random.Random(8)
    yield b""
    yield bytes(100_000)
    yield chance.randbytes(100_000)
    yield b"just text, and no video at all\n" * 100
    for cut in range(1, 8):
        yield content[: len(content) * cut // 8]
    for size in (188, 1000, 20_000):
        blocks = [content[at : at + size] for at in range(0, len(content), size)]
        chance.shuffle(blocks)
        yield b"".join(blocks)
    yield content + content
    yield content[len(content) // 3 :]


@pytest.mark.parametrize("suffix", [".ts", ".mkv", ".mp4", ".webm"])
def test_damaged_input_gives_a_file_or_a_clear_error(tmp_path: Path, suffix: str) -> None:
    codecs = (
        (*VIDEO_CODECS["vp8"], "-c:a", "libopus")
        if suffix == ".webm"
        else (*VIDEO_CODECS["h264"], "-c:a", "aac")
    )
    whole = make(tmp_path / f"whole{suffix}", *PICTURE, *SOUND, *codecs).read_bytes()
    source, output = tmp_path / "damaged", tmp_path / "output"
    for content in damaged(whole):
        source.write_bytes(content)
        began_s = time.monotonic()
        try:
            made = remux([source], output)
        except errors.MediaError:
            assert not output.exists()
        else:
            assert made.bytes == output.stat().st_size < 2 * len(content) + 100_000
            polymux.probe(output)
            output.unlink()
        assert time.monotonic() - began_s < 10
        assert left_over(tmp_path) == []
