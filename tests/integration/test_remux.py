"""The core's remux writes the same packets as ``ffmpeg -c copy``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux.media.remux import remux
from support import ffprobe, programs
from support.remuxes import (
    contents,
    left_over,
    make,
    make_parts,
    one_offset,
    packets,
    part,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus


@pytest.fixture(scope="module")
def parts(corpus: Corpus) -> Path:
    return make_parts(corpus.cache)


@pytest.mark.parametrize(
    ("video", "audio", "container", "extension"),
    [
        ("h264", "aac", "mp4", ".mp4"),
        ("hevc", "eac3", "mp4", ".mp4"),
        ("vp8", "aac", "matroska", ".mkv"),
        ("vp9", "opus", "webm", ".webm"),
    ],
)
def test_video_and_audio_become_one_file(
    corpus: Corpus,
    parts: Path,
    tmp_path: Path,
    video: str,
    audio: str,
    container: str,
    extension: str,
) -> None:
    inputs = [part(parts, video), part(parts, audio)]
    output = tmp_path / f"output{extension}"
    made = remux(inputs, output)
    assert (made.container, made.extension) == (container, extension)
    assert made.content_type == f"video/{container}"
    assert made.bytes == output.stat().st_size
    assert made.warnings == ()
    assert [(stream.input, stream.codec) for stream in made.streams] == [(0, video), (1, audio)]
    for kind, source in zip("va", inputs, strict=True):
        ours, given = packets(corpus.cache, output, kind), packets(corpus.cache, source, kind)
        assert contents(ours) == contents(given)
        assert abs(one_offset(ours, given)) < 0.03
    if video == "hevc":  # Apple's players need the hvc1 tag.
        assert ffprobe.describe(output, corpus.cache)["streams"][0]["codec_tag_string"] == "hvc1"
    duration_s = polymux.probe(output).duration_s
    assert duration_s == pytest.approx(2.0, abs=0.06)
    assert made.duration_s == pytest.approx(duration_s, abs=0.06)
    assert left_over(tmp_path) == []


def test_a_fragmented_file_becomes_one_that_plays_while_it_loads(
    corpus: Corpus, parts: Path, tmp_path: Path
) -> None:
    source = make(tmp_path / "a.mp4", "-i", part(parts, "h264"), "-i", part(parts, "aac"),
                  "-c", "copy", "-movflags", "+frag_keyframe+empty_moov")  # fmt: skip
    output = tmp_path / "b.mp4"
    remux([source], output)
    content = output.read_bytes()
    assert b"moof" in source.read_bytes()
    assert b"moof" not in content
    assert content.index(b"moov") < content.index(b"mdat")
    for kind in "va":
        assert contents(packets(corpus.cache, output, kind)) == contents(
            packets(corpus.cache, source, kind)
        )


def test_only_sound_or_only_pictures(parts: Path, tmp_path: Path) -> None:
    made = remux([part(parts, "aac")], tmp_path / "a.m4a")
    assert (made.content_type, made.extension) == ("audio/mp4", ".m4a")
    made = remux([part(parts, "vp9")], tmp_path / "b.mp4")
    assert [stream.type for stream in made.streams] == ["video"]
    made = remux([part(parts, "vorbis")], tmp_path / "c.weba")
    assert (made.content_type, made.extension) == ("audio/webm", ".weba")


def test_what_a_container_cannot_hold_is_refused(parts: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.UnsupportedMediaError, match=r"webm\b.*\bh264\b"):
        remux([part(parts, "h264")], tmp_path / "a.webm", container="webm")
    with pytest.raises(errors.InvalidRequestError, match="'avi'"):
        remux([part(parts, "h264")], tmp_path / "a.avi", container="avi")  # type: ignore[arg-type]
    for inputs in ([], [part(parts, "h264")] * 3, "one.mp4"):
        with pytest.raises(errors.InvalidRequestError):
            remux(inputs, tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []


def test_inputs_and_devices_are_no_output(parts: Path, tmp_path: Path) -> None:
    video, audio = tmp_path / "video.mp4", tmp_path / "audio.mp4"
    video.write_bytes(part(parts, "h264").read_bytes())
    audio.write_bytes(part(parts, "aac").read_bytes())
    before = {path: path.read_bytes() for path in (video, audio)}
    for output in (video, audio, "/dev/full", tmp_path):
        with pytest.raises(errors.OutputRefusedError):
            remux([video, audio], output)
    (tmp_path / "c.mp4").write_bytes(b"precious")
    with pytest.raises(errors.OutputExistsError):
        remux([video, audio], tmp_path / "c.mp4", overwrite=False)
    assert {path: path.read_bytes() for path in (video, audio)} == before
    assert (tmp_path / "c.mp4").read_bytes() == b"precious"
    assert left_over(tmp_path) == []


@pytest.fixture(scope="module")
def large(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has so many packets that remuxing cannot finish before the test checks it."""
    return make(tmp_path_factory.mktemp("large") / "large.mkv", "-stream_loop", "5000",
                "-i", part(parts, "h264"), "-c", "copy")  # fmt: skip


def test_progress_rises_to_the_whole(large: Path, tmp_path: Path) -> None:
    reports: list[polymux.Progress] = []
    made = remux([large], tmp_path / "a.mp4", on_progress=reports.append)
    assert len(reports) > 1
    assert [one.position_s for one in reports] == sorted(one.position_s for one in reports)
    assert reports[-1].fraction == 1
    assert reports[-1].bytes_written == made.bytes
    assert reports[0].duration_s == pytest.approx(made.duration_s, rel=0.01)


class Cancellation:
    looks = 0

    @property
    def cancelled(self) -> bool:
        self.looks += 1
        return self.looks > 2


def stop(_: polymux.Progress) -> None:
    raise LookupError


@pytest.mark.parametrize(
    ("options", "error"),
    [({"on_progress": stop}, LookupError),
     ({"cancel": Cancellation()}, errors.OperationCancelledError)],
    ids=["progress", "cancel"],
)  # fmt: skip
def test_callers_end_it(
    large: Path, tmp_path: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        remux([large], tmp_path / "a.mp4", **options)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_it(large: Path, tmp_path: Path) -> None:
    fired_s = 0.0

    def interrupt(_: int, __: object) -> None:
        nonlocal fired_s
        fired_s = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.12)
        with pytest.raises(KeyboardInterrupt):
            remux([large], tmp_path / "a.mp4")
        ended_s = time.monotonic()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended_s - fired_s < 2
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
