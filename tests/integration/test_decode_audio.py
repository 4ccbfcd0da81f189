"""`polymux.decode_audio` returns the same samples as the ffmpeg program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from support import reference

if TYPE_CHECKING:
    from support.corpus import Corpus

#: Decoding depends on the sample format, rate and channels, not on the container.
OTHERS = ["rate_8000_mono", "rate_37800_stereo", "rate_192000_stereo", "f32_96000", "flac_96_24",
          "layout_mono", "layout_5.1", "layout_7.1", "aac_5.1", "opus_5.1"]  # fmt: skip


@pytest.mark.parametrize("name", ["wav_s16", "m4a_aac", "ogg_vorbis", *OTHERS])
def test_sixteen_kilohertz_mono(corpus: Corpus, name: str) -> None:
    path = corpus.path(name)
    audio = polymux.decode_audio(path)
    assert (audio.sample_rate_hz, audio.channels, audio.damaged_packets) == (16_000, 1, 0)
    expected = reference.pcm(corpus.cache, path)
    assert audio.samples.format == "f"
    assert len(audio) == len(expected) // 4
    assert audio.samples.tobytes() == expected


@pytest.mark.parametrize(
    ("name", "rate", "channels"),
    [("wav_s16", 44_100, 2), ("wav_s16", 8_000, 1), ("m4a_aac", 48_000, 1),
     ("ogg_vorbis", 96_000, 2), ("layout_5.1", 22_050, 2), ("layout_5.1", 44_100, 1)],
)  # fmt: skip
def test_any_rate_and_channels(corpus: Corpus, name: str, rate: int, channels: int) -> None:
    path = corpus.path(name)
    audio = polymux.decode_audio(path, sample_rate=rate, channels=channels)
    assert (audio.sample_rate_hz, audio.channels) == (rate, channels)
    assert audio.samples.tobytes() == reference.pcm(corpus.cache, path, rate, channels)


def test_chosen_part_and_stream(corpus: Corpus) -> None:
    path = corpus.path("streams_default_second")
    audio = polymux.decode_audio(path, audio_stream=0, start=0.25, end=1.0)
    expected = reference.pcm(
        corpus.cache, path, arguments=("-map", "0:0"), input_arguments=("-ss", "0.25", "-to", "1.0")
    )
    assert audio.samples.tobytes() == expected
