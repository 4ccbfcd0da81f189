"""`polymux.decode_audio` gives the samples that the ffmpeg program gives."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import polymux
import pytest
from support import reference
from support.media import CONTAINERS, LAYOUTS, RATES

if TYPE_CHECKING:
    from support.corpus import Corpus

NAMES = [*CONTAINERS, *LAYOUTS, *RATES]


@pytest.mark.parametrize("name", NAMES)
def test_sixteen_kilohertz_mono(corpus: Corpus, name: str) -> None:
    path = corpus.path(name)
    audio = polymux.decode_audio(path)
    assert (audio.sample_rate_hz, audio.channels, audio.damaged_packets) == (16_000, 1, 0)
    expected = reference.pcm(path)
    assert len(audio) == len(expected) // 4
    assert audio.samples.tobytes() == expected


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("name", ["wav_s16", "m4a_aac", "ogg_vorbis", "layout_5.1"])
def test_any_rate_and_channels(corpus: Corpus, name: str, channels: int, rate: int) -> None:
    path = corpus.path(name)
    audio = polymux.decode_audio(path, sample_rate=rate, channels=channels)
    assert (audio.sample_rate_hz, audio.channels) == (rate, channels)
    assert audio.samples.tobytes() == reference.pcm(path, rate, channels)


def test_chosen_part_and_stream(corpus: Corpus) -> None:
    path = corpus.path("streams_default_second")
    audio = polymux.decode_audio(path, audio_stream=0, start=0.25, end=1.0)
    expected = reference.pcm(
        path, arguments=("-map", "0:0"), input_arguments=("-ss", "0.25", "-to", "1.0")
    )
    assert audio.samples.tobytes() == expected


def test_samples_are_floats_of_the_right_size(corpus: Corpus) -> None:
    audio = polymux.decode_audio(corpus.path("wav_s16"), sample_rate=44_100, channels=2)
    values = array("f", audio.samples.tobytes())
    assert audio.samples.format == "f"
    assert len(audio) == 66_150
    assert 0.1 < max(values) < 1.0
