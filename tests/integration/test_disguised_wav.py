"""WAV files whose 16-bit samples are a compressed stream, which ffmpeg and polymux detect."""

from __future__ import annotations

import wave
from array import array
from typing import TYPE_CHECKING

import pytest
from support import programs
from support.identity import assert_identical

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus

#: Codec -> (encoder, raw format).
STREAMS = {
    "aac": ("aac", "adts"),
    "ac3": ("ac3", "ac3"),
    "dts": ("dca", "dts"),
    "eac3": ("eac3", "eac3"),
    "mp3": ("libmp3lame", "mp3"),
}


def disguise(path: Path, stream: bytes) -> Path:
    """Write `stream` as the samples of a 16-bit stereo WAV file."""
    with wave.open(str(path), "wb") as writer:
        writer.setparams((2, 2, 44_100, 0, "NONE", ""))
        writer.writeframes(stream[: len(stream) // 4 * 4])
    return path


def compressed(folder: Path, codec: str) -> bytes:
    encoder, container = STREAMS[codec]
    raw = folder / f"stream.{container}"
    tune = "sine=f=440:d=6:r=44100,volume=0.5,aformat=channel_layouts=stereo"
    plain = ("-id3v2_version", "0", "-write_xing", "0") if codec == "mp3" else ()
    programs.ffmpeg("-f", "lavfi", "-i", tune, "-c:a", encoder, "-strict", "-2", *plain,
                    "-f", container, raw)  # fmt: skip
    return raw.read_bytes()


@pytest.mark.parametrize("codec", STREAMS)
def test_disguised_stream(corpus: Corpus, tmp_path: Path, codec: str) -> None:
    path = disguise(tmp_path / "disguised.wav", compressed(tmp_path, codec))
    found = programs.run("ffprobe", "-v", "error", "-show_entries", "stream=codec_name",
                         "-of", "csv=p=0", path)  # fmt: skip
    assert found.stdout.decode().strip() == codec
    assert_identical(corpus, path)


@pytest.mark.parametrize("silence_bytes", [0, 3_000, 60_000])
def test_disguised_dts_in_the_byte_order_of_compact_discs(
    corpus: Corpus, tmp_path: Path, silence_bytes: int
) -> None:
    stream = compressed(tmp_path, "dts")
    words = array("h", stream[: len(stream) // 2 * 2])
    words.byteswap()
    path = disguise(tmp_path / "disguised.wav", bytes(silence_bytes) + words.tobytes())
    assert_identical(corpus, path)


@pytest.mark.parametrize("start", ["fffb", "0b77", "0110"])
def test_samples_that_only_begin_like_a_stream(corpus: Corpus, tmp_path: Path, start: str) -> None:
    noise = bytes((n * n * 31 + n * 7) % 251 for n in range(100_000))
    assert_identical(corpus, disguise(tmp_path / "plain.wav", bytes.fromhex(start) + noise))
