"""The comparison of a conversion with one encoder, or with the ffmpeg program."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support import mp3_frames

if TYPE_CHECKING:
    from support.corpus import Corpus

MODES: list[dict[str, Any]] = [
    {"bitrate": "128k"}, {"bitrate": "100k", "abr": True, "exact": True},
    {"vbr_quality": 2.5, "exact": True}, {"exact": True}, {"bitrate": "64k", "preset": "fast"},
    {"bitrate": "96k", "sample_rate": 32_000, "channels": 1},
    {"bitrate": "128k", "start": 0.1234, "end": "0:01"},
]  # fmt: skip


def program(folder: Path, script: str) -> Path:
    """A program in the place of ffmpeg."""
    path = folder / "ffmpeg"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder before all others of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("reference", ["sequential", "ffmpeg"])
def test_a_file_that_is_equal(corpus: Corpus, options: dict[str, Any], reference: Any) -> None:
    report = polymux.convert_to_mp3(corpus.path("mp4_video"), verify=reference, **options).report
    assert report.identical
    assert report.reference.startswith("ffmpeg " if reference == "ffmpeg" else "one LAME ")


def test_names_that_look_like_options_or_protocols(corpus: Corpus, tmp_path: Path) -> None:
    for name in ("-y", "concat:a|b", "a b%d.wav"):
        path = tmp_path / name
        path.write_bytes(corpus.path("wav_s16").read_bytes())
        assert polymux.convert_to_mp3(path, bitrate="128k", verify="ffmpeg").report.reference


@pytest.mark.parametrize("fault", ["bit", "missing", "more"])
def test_a_frame_that_differs(corpus: Corpus, instead: Path, tmp_path: Path, fault: str) -> None:
    source, destination = corpus.path("wav_s16"), tmp_path / "out.mp3"
    frames = mp3_frames.audio_frames(polymux.convert_to_mp3(source, bitrate="128k").read())
    if fault == "bit":
        frames[7] = frames[7][:-1] + bytes([frames[7][-1] ^ 1])
    else:
        frames = frames[:-1] if fault == "missing" else [*frames, frames[-1]]
    (tmp_path / "theirs").write_bytes(b"".join(frames))
    program(instead, f'exec cat "{tmp_path}/theirs"')
    with pytest.raises(polymux.EncoderError):
        polymux.convert_to_mp3(source, destination, bitrate="128k", verify="ffmpeg")
    assert not destination.exists()


@pytest.mark.parametrize("script", ["echo no such codec >&2; exit 3", "echo no MP3", "exit 0"])
def test_a_program_that_fails(corpus: Corpus, instead: Path, script: str) -> None:
    program(instead, script)
    with pytest.raises(polymux.EncoderError):
        polymux.convert_to_mp3(corpus.path("wav_s16"), bitrate="128k", verify="ffmpeg")


def test_a_program_that_is_not_installed(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(polymux.MissingDependencyError):
        polymux.convert_to_mp3(corpus.path("wav_s16"), verify="ffmpeg")


def test_sources_that_ffmpeg_cannot_open(corpus: Corpus) -> None:
    with pytest.raises(polymux.InvalidRequestError):
        polymux.convert_to_mp3(corpus.path("wav_s16").read_bytes(), verify="ffmpeg")


def test_a_canceled_conversion_ends_the_program(
    corpus: Corpus, instead: Path, tmp_path: Path
) -> None:
    program(instead, f'[ "$1" = -version ] && exit; echo $$ >"{tmp_path}/pid"; exec sleep 60')

    class StoppedError(Exception):
        pass

    def stop(_: polymux.Progress) -> None:
        if (tmp_path / "pid").exists():
            raise StoppedError

    began = time.monotonic()
    with pytest.raises(StoppedError):
        polymux.convert_to_mp3(
            corpus.path("wav_s16"), bitrate="128k", verify="ffmpeg", on_progress=stop
        )
    assert time.monotonic() - began < 30
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
