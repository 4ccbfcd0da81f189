"""What strangers may give the core's remux, and disks that end."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import programs
from support.remuxes import PICTURE, make

if TYPE_CHECKING:
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
