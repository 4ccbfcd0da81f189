"""Decoders recover the input's samples from our MP3 with the same count and no shift."""

from __future__ import annotations

import wave
from typing import TYPE_CHECKING

import numpy
import polymux
import pytest
from support import programs
from support.identity import CBR_128, V2, Mode, abr, cbr
from support.sounds import Sound

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from support.corpus import Corpus

    Samples = NDArray[numpy.int16]

MODES = [CBR_128, cbr(320), V2, abr(128)]
WINDOW = 1000
REACH = 400


def by_ffmpeg(corpus: Corpus, path: Path) -> Samples:
    """Decode to interleaved s16 with the ffmpeg program. The result is cached."""
    words = ("-i", path, "-f", "s16le", "-")
    return numpy.frombuffer(
        corpus.cache.ask("s16le", path, lambda: programs.ffmpeg(*words).stdout), "<i2"
    )


def samples_of(path: Path) -> Samples:
    """The samples of a 16-bit WAV file."""
    with wave.open(str(path), "rb") as file:
        return numpy.frombuffer(file.readframes(file.getnframes()), "<i2")


def by_mpg123(corpus: Corpus, path: Path) -> Samples:
    """Decode our MP3 with mpg123, which must print no warnings."""

    def decoded() -> bytes:
        done = programs.run("mpg123", "--no-resync", "-s", path)
        text = done.stderr.decode("utf-8", "replace")
        for word in ("warning", "error", "note:", "missing", "resync", "illegal", "junk"):
            assert word not in text.lower(), text
        return done.stdout

    return numpy.frombuffer(corpus.cache.ask("mpg123", path, decoded), "<i2")


def best_shift(left: Samples, right: Samples, start: int) -> int:
    """The delay of `right` against `left` near `start`, in samples."""
    window = left[start : start + WINDOW].astype(float)

    def difference(shift: int) -> float:
        moved = right[start + shift : start + shift + WINDOW]
        return float(((window - moved) ** 2).sum())

    return min(range(-REACH, REACH + 1), key=difference)


@pytest.mark.parametrize(
    ("sound", "mode"),
    [
        *((Sound("noise", 60_001), mode) for mode in MODES),
        (Sound("speech", 44_101, 22_050, "mono"), CBR_128),
        (Sound("music", 50_003, 48_000), V2),
        (Sound("music", 40_007, 32_000, "mono"), abr(128)),
    ],
    ids=lambda one: one.stem if isinstance(one, Sound) else str(one),
)
def test_length_and_offset(corpus: Corpus, tmp_path: Path, sound: Sound, mode: Mode) -> None:
    source = corpus.wave(sound)
    result = tmp_path / "result.mp3"
    report = polymux.convert_to_mp3(source, result, **mode.ours).report
    original = samples_of(source)
    channels = len(original) // sound.samples
    for decoded in (by_ffmpeg(corpus, result), by_mpg123(corpus, result)):
        assert len(decoded) == len(original)
        before, after = original[::channels], decoded[::channels]
        for start in (3_000, sound.samples - 3_000 - WINDOW):
            assert best_shift(before, after, start) == 0
    assert report.duration_s == pytest.approx(sound.samples / sound.rate, abs=1e-6)
    if sound.rate == 44_100:
        duration = programs.run("ffprobe", "-v", "error", "-show_entries", "format=duration",
                                "-of", "csv=p=0", result).stdout  # fmt: skip
        # ffprobe's duration is either exact or counts whole frames without the delay and padding in
        # the Xing/Info frame.
        lengths_s = (report.duration_s, report.frames * 1152 / sound.rate)
        assert any(float(duration) == pytest.approx(one, abs=1e-3) for one in lengths_s)


@pytest.mark.parametrize("samples", [1, 575, 576, 1151, 1152, 1153, 2305, 13_230])
def test_short_lengths(corpus: Corpus, tmp_path: Path, samples: int) -> None:
    result = tmp_path / "result.mp3"
    polymux.convert_to_mp3(corpus.wave(Sound(samples=samples)), result, bitrate="128k")
    assert len(by_ffmpeg(corpus, result)) == len(by_mpg123(corpus, result)) == 2 * samples
