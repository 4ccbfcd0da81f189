"""Transcription and translation with Whisper, and recordings without speech."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from polymux.engines.speech.engine import _chunk
from support.openai_compat import real_speech

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SPOKEN_TEXT = (
    "The weather is fine today, and the children are playing in the garden. "
    "Please bring two bottles of water and a good book."
)
LATER = "Tomorrow we will travel to the sea. Bring your coat."
IN_GERMAN = (
    "Das Wetter ist heute schön, und die Kinder spielen im Garten. "
    "Morgen früh fahren wir mit dem Zug nach London."
)
GERMAN = {"das", "wetter", "ist", "heute", "und", "die", "im", "morgen", "wir", "mit", "nach"}
ENGLISH = {"the", "weather", "is", "today", "and", "tomorrow", "morning", "we", "with", "by", "to"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[polymux.Client]:
    with (
        real_speech(tmp_path_factory.mktemp("speech")) as server,
        polymux.Client(server.url, server.key) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def talk(spoken: Callable[..., Path]) -> Path:
    return spoken(SPOKEN_TEXT)


def words_of(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.lower()).split()


def float_wav(samples: Any, rate_hz: int = 16_000) -> tuple[str, bytes]:
    """A mono WAV of 32-bit floats."""
    data = numpy.asarray(samples, "<f4").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, 1, rate_hz, 4 * rate_hz, 4, 32)
    head = struct.pack("<4sI4s", b"RIFF", 12 + len(form) + len(data), b"WAVE")
    return "a.wav", head + form + struct.pack("<4sI", b"data", len(data)) + data


def test_speech_is_written_down(client: polymux.Client, talk: Path) -> None:
    made = client.transcribe(talk)
    expected, heard = words_of(SPOKEN_TEXT), words_of(made.text)
    assert len(set(expected) & set(heard)) >= 0.8 * len(set(expected)), made.text
    assert len(heard) <= 1.2 * len(expected), made.text
    ends = [one.end_s for one in made.chunks]
    assert made.chunks[0].start_s is not None
    assert ends == sorted(ends)
    assert "batch_size=64" in made.logs
    assert "language en" in made.logs
    assert made.version is not None
    assert len(made.version) == 64
    # The model is selected by the name under which results show it.
    assert made.engine_model
    assert client.transcribe(talk, model=made.engine_model).engine_model == made.engine_model
    with pytest.raises(polymux.BadRequestError, match=made.engine_model):
        client.transcribe(talk, model="other")
    assert made.metrics is not None
    assert 3 < made.metrics["audio_seconds"] < 30


def test_words_of_samples_that_are_not_all_numbers(client: polymux.Client, talk: Path) -> None:
    samples = numpy.array(polymux.decode_audio(talk).samples)
    samples[[9_000, 20_000, 31_000]] = (numpy.nan, numpy.inf, -numpy.inf)
    made = client.transcribe(
        float_wav(samples), timestamp="word", language="english", batch_size=1, task="transcribe"
    )
    # The transcript of a synthetic voice differs between processors.
    assert {"children", "garden"} <= set(words_of(made.text))
    assert "3 samples" in made.logs
    assert len(made.chunks) > 12
    assert all(len(one.text.split()) == 1 for one in made.chunks)


def test_sentences_do_not_run_over_pauses(
    client: polymux.Client, talk: Path, spoken: Callable[..., Path]
) -> None:
    """`tests/unit/engines/test_silence.py` tests longer ones."""
    pause_s = 3
    first, second = (
        numpy.array(polymux.decode_audio(one).samples).reshape(-1) for one in (talk, spoken(LATER))
    )
    samples = numpy.concatenate([first, numpy.zeros(pause_s * 16_000), second])
    made = client.transcribe(float_wav(samples), language="en")
    begins_s = len(first) / 16_000 + pause_s
    before = [one for one in made.chunks if one.timestamp[1] < begins_s - pause_s / 2]
    after = [one for one in made.chunks if one.timestamp[0] > begins_s - 0.6]
    assert [*before, *after] == list(made.chunks)
    assert before[-1].timestamp[1] <= len(first) / 16_000 + 0.5
    assert "coat" in "".join(one.text for one in after).lower()


def test_a_translation_is_in_english(client: polymux.Client, spoken: Callable[..., Path]) -> None:
    talk = spoken(IN_GERMAN, "-v", "de")
    plain = client.transcribe(talk, language="de")
    translation = client.transcribe(talk, language="de", task="translate")
    transcribed, translated = set(words_of(plain.text)), set(words_of(translation.text))
    assert len(transcribed & GERMAN) >= 6, plain.text
    assert transcribed & ENGLISH == set(), plain.text
    assert len(translated & ENGLISH) >= 3, translation.text
    assert len(translated & GERMAN) <= 1, translation.text
    assert "de" in words_of(translation.logs)


@pytest.mark.parametrize(
    ("file", "status", "code"),
    [
        (float_wav(numpy.zeros(32_000)), 422, "no_speech"),
        # At the model's sample rate, this has no sample at all.
        (float_wav([0.5], 48_000), 422, "no_audio"),
        (("a.mp3", b"#EXTM3U\nhttp://127.0.0.1/x\n" * 10), 415, "unsupported_media"),
    ],
    ids=["silence", "one sample", "playlist"],
)
def test_what_holds_no_speech(
    client: polymux.Client, file: tuple[str, bytes], status: int, code: str
) -> None:
    with pytest.raises(polymux.APIStatusError) as refused:
        client.transcribe(file)
    assert (refused.value.status, refused.value.code) == (status, code)


def test_what_is_refused(client: polymux.Client, talk: Path) -> None:
    with pytest.raises(polymux.APIStatusError) as refused:
        client.transcribe(talk, language="klingon")
    assert (refused.value.status, refused.value.param) == (400, "language")
    with pytest.raises(polymux.BadRequestError) as refused:
        client.transcribe(url="http://127.0.0.1:9/talk")
    assert refused.value.code == "url_refused"


def test_no_word_begins_before_the_recording() -> None:
    assert _chunk(" One", -0.02, -0.01)["timestamp"] == [0.0, 0.0]
    assert _chunk(" two", -0.02, 0.3004)["timestamp"] == [0.0, 0.3]
