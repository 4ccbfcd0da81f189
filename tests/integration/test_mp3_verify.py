"""The comparison of a conversion with one encoder, or with the ffmpeg program."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.sounds import Sound

if TYPE_CHECKING:
    from support.corpus import Corpus

#: Files shorter than 15 s are never split.
LONG = Sound(samples=16 * 44_100)
MODES: list[dict[str, Any]] = [
    {"bitrate": "128k"}, {"bitrate": "100k", "abr": True, "exact": True},
    {"vbr_quality": 2.5, "exact": True}, {"exact": True}, {"bitrate": "64k", "preset": "fast"},
    {"bitrate": "96k", "sample_rate": 32_000, "channels": 1},
    {"bitrate": "128k", "start": 0.1234, "end": "0:01"},
]  # fmt: skip


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("reference", ["sequential", "ffmpeg"])
def test_a_file_that_is_equal(corpus: Corpus, options: dict[str, Any], reference: Any) -> None:
    source = corpus.wave(LONG) if options.get("exact") else corpus.path("mp4_video")
    report = polymux.convert_to_mp3(source, verify=reference, **options).report
    assert (report.identical, report.seams) == (True, 0)
    assert report.reference.startswith("ffmpeg " if reference == "ffmpeg" else "one LAME ")


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
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'[ "$1" = -version ] && exit; echo $$ >"{tmp_path}/pid"; exec sleep 60'
    (tmp_path / "ffmpeg").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def stop(_: polymux.Progress) -> None:
        if (tmp_path / "pid").exists():
            raise LookupError

    began = time.monotonic()
    with pytest.raises(LookupError):
        polymux.convert_to_mp3(corpus.path("wav_s16"), verify="ffmpeg", on_progress=stop)
    assert time.monotonic() - began < 30
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
