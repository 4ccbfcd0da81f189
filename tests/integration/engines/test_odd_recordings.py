"""Recordings of speech that hold next to nothing, or samples that are no numbers."""

from __future__ import annotations

import struct
import subprocess
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from polymux.engines.speech.engine import _chunk
from support.openai_door import real_speech

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LATER = "Tomorrow we will travel to the sea. Bring your coat."
SAID = "The weather is fine today, and the children are playing in the garden."


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[polymux.Client]:
    with (
        real_speech(tmp_path_factory.mktemp("speech")) as server,
        polymux.Client(server.url, server.key) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spoken by a program."""
    path = tmp_path_factory.mktemp("talk") / "talk.wav"
    subprocess.run(["espeak-ng", "-s", "140", "-w", str(path), SAID], check=True)
    return path


@pytest.mark.parametrize(("count", "rate_hz"), [(1, 48_000), (2, 44_100)])
def test_recordings_of_next_to_nothing(client: polymux.Client, count: int, rate_hz: int) -> None:
    """At the rate of the model they have no sample at all."""
    with pytest.raises(polymux.UnprocessableEntityError, match="no sound") as refused:
        client.transcribe(("short.wav", float_wav(numpy.full(count, 0.5), rate_hz)))
    assert (refused.value.status, refused.value.code) == (422, "no_audio")


@pytest.mark.parametrize("timestamp", ["chunk", "word"])
def test_samples_that_are_no_numbers(client: polymux.Client, talk: Path, timestamp: str) -> None:
    """One of them made exclamation marks of all that was said."""
    samples = numpy.array(polymux.decode_audio(talk).samples)
    samples[[9_000, 20_000, 31_000]] = (numpy.nan, numpy.inf, -numpy.inf)
    made = client.transcribe(
        ("talk.wav", float_wav(samples, 16_000)), language="en", timestamp=timestamp
    )
    # What the model makes of a synthetic voice differs between processors, but for the last words.
    assert {"children", "garden"} <= set(made.text.lower().replace(".", "").split())
    assert "3 samples are no numbers" in made.logs


@pytest.mark.parametrize(("again", "pause_s"), [("other", 3), ("other", 40), ("same", 40)])
def test_sentences_do_not_run_over_pauses(
    client: polymux.Client, talk: Path, tmp_path: Path, again: str, pause_s: int
) -> None:
    """Neither does what is said after one begin before it."""
    first = numpy.array(polymux.decode_audio(talk).samples).reshape(-1)
    other = tmp_path / "other.wav"
    subprocess.run(["espeak-ng", "-s", "140", "-w", str(other), LATER], check=True)
    second = numpy.array(polymux.decode_audio(other).samples).reshape(-1)
    if again == "same":  # After so long: what is said again at once, Whisper writes down once.
        second = first
    samples = numpy.concatenate([first, numpy.zeros(pause_s * 16_000), second])
    made = client.transcribe(("talk.wav", float_wav(samples, 16_000)), language="en")
    begins_s = len(first) / 16_000 + pause_s
    before = [one for one in made.chunks if one.timestamp[1] < begins_s - pause_s / 2]
    after = [one for one in made.chunks if one.timestamp[0] > begins_s - 0.6]
    assert [*before, *after] == list(made.chunks)
    assert before
    assert after
    assert before[-1].timestamp[1] <= len(first) / 16_000 + 0.5
    words = "".join(one.text for one in after).lower()
    assert ("garden" if again == "same" else "coat") in words


def test_no_word_begins_before_the_recording() -> None:
    assert _chunk(" One", -0.02, -0.01)["timestamp"] == [0.0, 0.0]
    assert _chunk(" two", -0.02, 0.3004)["timestamp"] == [0.0, 0.3]


def float_wav(samples: Any, rate_hz: int) -> bytes:
    """A mono WAV of 32-bit floats, which may be none."""
    data = numpy.asarray(samples, "<f4").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, 1, rate_hz, 4 * rate_hz, 4, 32)
    head = struct.pack("<4sI4s", b"RIFF", 12 + len(form) + len(data), b"WAVE")
    return head + form + struct.pack("<4sI", b"data", len(data)) + data
