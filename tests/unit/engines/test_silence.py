from __future__ import annotations

import numpy
import pytest
from polymux.engines.speech.silence import SilenceTrimmer

RATE_HZ = 100


def made(*speech_s: tuple[float, float], duration_s: float) -> SilenceTrimmer:
    samples = numpy.arange(int(duration_s * RATE_HZ), dtype=numpy.float32)
    speech = [(int(a * RATE_HZ), int(b * RATE_HZ)) for a, b in speech_s]
    return SilenceTrimmer(samples, RATE_HZ, speech)


def test_short_pauses_stay() -> None:
    found = made((1, 3), (5, 6), duration_s=8)
    assert len(found.samples) == 8 * RATE_HZ
    assert found.windows(30) == [(1, 6)]
    assert [found.time_of(one) for one in (0, 3.5, 8)] == [0, 3.5, 8]


def test_long_pauses_keep_two_seconds() -> None:
    found = made((1, 3), (7, 8), (12.5, 13), duration_s=15)
    # One second is kept after speech and one before it.
    kept = [(0, 4), (6, 9), (11.5, 15)]
    expected = numpy.concatenate([numpy.arange(a * RATE_HZ, b * RATE_HZ) for a, b in kept])
    assert found.samples.tolist() == expected.tolist()
    assert found.windows(30) == [(1, 8.5)]
    for short_s in numpy.arange(0, 10, 0.25):
        at = int(short_s * RATE_HZ)
        assert found.time_of(short_s) == pytest.approx(found.samples[at] / RATE_HZ)


def test_windows_are_no_longer_than_they_may_be() -> None:
    found = made((0, 9), (10, 19), (20, 29), (29.5, 31), duration_s=31)
    assert found.windows(30) == [(0, 29), (29.5, 31)]
    assert found.windows(20) == [(0, 19), (20, 31)]
    assert found.windows(9) == [(0, 9), (10, 19), (20, 29), (29.5, 31)]


def test_a_very_long_pause_begins_a_window() -> None:
    found = made((0, 2), (42, 44), duration_s=50)
    assert found.windows(30) == [(0, 2), (4, 6)]
    assert found.spoken(0, 2) == (0, 2)
    assert found.spoken(4, 6) == (42, 44)


@pytest.mark.parametrize(
    ("times", "spoken"),
    [
        ((1.0, 3.0), (1, 3)),
        ((0.2, 3.9), (1, 3)),  # reaches into the pauses around it
        ((0.2, 5.2), (1, 3)),  # includes a pause and the start of the next sentence
        ((2.8, 6.0), (7, 8)),
        ((1.5, 5.6), (1.5, 7.6)),  # speech on both sides of a pause
        ((3.2, 3.4), (3.2, 3.4)),  # only a pause: unchanged
        ((5.0, 5.0), (7, 7)),
    ],
)
def test_sentences_are_where_speech_is(
    times: tuple[float, float], spoken: tuple[float, float]
) -> None:
    found = made((1, 3), (7, 8), duration_s=10)
    assert found.spoken(*times) == pytest.approx(spoken)
