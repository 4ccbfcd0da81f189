"""Decoders find exactly the input's samples in our MP3: none added, none lost, none shifted."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import polymux
import pytest
from support import mp3_frames, programs
from support.identity import CBR_128, V2, Mode, abr, cbr
from support.sounds import Sound

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus

MODES = [CBR_128, cbr(320), V2, abr(128)]
WINDOW = 1000
REACH = 400


def by_ffmpeg(path: Path) -> array[int]:
    """Our MP3 decoded by the ffmpeg program, s16 interleaved."""
    return array("h", programs.ffmpeg("-i", path, "-f", "s16le", "-").stdout)


def by_mpg123(path: Path) -> array[int]:
    """Our MP3 decoded by mpg123, which must have nothing to complain about."""
    done = programs.run("mpg123", "--no-resync", "-s", path)
    text = done.stderr.decode("utf-8", "replace")
    for word in ("warning", "error", "note:", "missing", "resync", "illegal", "junk"):
        assert word not in text.lower(), text
    return array("h", done.stdout)


def difference(left: array[int], right: array[int], start: int, shift: int) -> int:
    """How far a window of `left` is from the same one of `right`, moved by `shift`."""
    pairs = zip(
        left[start : start + WINDOW], right[start + shift : start + shift + WINDOW], strict=True
    )
    return sum((a - b) ** 2 for a, b in pairs)


def best_shift(left: array[int], right: array[int], start: int) -> int:
    """By how many samples `right` is late against `left` near `start`."""
    return min(range(-REACH, REACH + 1), key=lambda shift: difference(left, right, start, shift))


def first_channel(samples: array[int], channels: int) -> array[int]:
    return samples[::channels]


@pytest.mark.parametrize("decode", [by_ffmpeg, by_mpg123])
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(
    "sound",
    [
        Sound("noise", 60_001),
        Sound("speech", 44_101, 22_050, "mono"),
        Sound("music", 50_003, 48_000),
        Sound("music", 40_007, 32_000, "mono"),
    ],
    ids=lambda sound: sound.stem,
)
def test_length_and_offset(
    corpus: Corpus, tmp_path: Path, sound: Sound, mode: Mode, decode: object
) -> None:
    source = corpus.wave(sound)
    result = tmp_path / "result.mp3"
    polymux.convert_to_mp3(source, result, **mode.ours)
    original, decoded = by_ffmpeg(source), (by_ffmpeg if decode is by_ffmpeg else by_mpg123)(result)
    assert len(decoded) == len(original)
    channels = len(original) // sound.samples
    before, after = first_channel(original, channels), first_channel(decoded, channels)
    for start in (3_000, sound.samples - 3_000 - WINDOW):
        assert best_shift(before, after, start) == 0


@pytest.mark.parametrize("decode", [by_ffmpeg, by_mpg123])
@pytest.mark.parametrize("samples", [1, 575, 576, 1151, 1152, 1153, 2305, 13_230])
def test_short_lengths(corpus: Corpus, tmp_path: Path, samples: int, decode: object) -> None:
    result = tmp_path / "result.mp3"
    polymux.convert_to_mp3(corpus.wave(Sound(samples=samples)), result, bitrate="128k")
    decoded = (by_ffmpeg if decode is by_ffmpeg else by_mpg123)(result)
    assert len(decoded) == 2 * samples


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_duration_as_programs_tell_it(corpus: Corpus, tmp_path: Path, mode: Mode) -> None:
    sound = Sound(samples=3 * 44_100 + 17)
    result = tmp_path / "result.mp3"
    report = polymux.convert_to_mp3(corpus.wave(sound), result, **mode.ours).report
    told = programs.run("ffprobe", "-v", "error", "-show_entries", "format=duration",
                        "-of", "csv=p=0", result).stdout  # fmt: skip
    # ffprobe counts whole frames, less the delay and padding that the Xing/Info frame states.
    assert float(told) == pytest.approx(sound.samples / sound.rate, abs=1e-3) or float(
        told
    ) == pytest.approx(report.frames * 1152 / sound.rate, abs=1e-3)
    assert report.duration_s == pytest.approx(sound.samples / sound.rate, abs=1e-6)


def test_the_shift_is_found_when_there_is_one(corpus: Corpus) -> None:
    samples = first_channel(by_ffmpeg(corpus.wave(Sound("noise", 60_001))), 2)
    late = array("h", [0] * 37) + samples
    assert best_shift(samples, late, 3_000) == 37
    assert best_shift(late, samples, 3_000) == -37


def test_an_output_that_cannot_seek_is_whole_too(corpus: Corpus) -> None:
    class Pipe:
        def __init__(self) -> None:
            self.parts: list[bytes] = []

        def write(self, data: bytes) -> int:
            self.parts.append(bytes(data))
            return len(data)

    source = corpus.path("m4a_aac")
    pipe = Pipe()
    polymux.convert_to_mp3(source, pipe, bitrate="128k")  # type: ignore[call-overload, unused-ignore]
    mp3 = mp3_frames.parse(b"".join(pipe.parts))
    mp3_frames.check_decodable(mp3)
    assert mp3.audio == mp3_frames.audio_frames(corpus.reference(source))
