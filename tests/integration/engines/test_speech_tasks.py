"""The tasks of speech: what a request asks for is what Whisper does, and not a word for the log."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import contract
from support.openai_door import real_speech

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Said in German; words of it as they are said, and as they would be in English.
SAID = (
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
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spoken by a program."""
    path = tmp_path_factory.mktemp("talk") / "talk.wav"
    subprocess.run(["espeak-ng", "-v", "de", "-s", "150", "-w", str(path), SAID], check=True)
    return path


def words_of(text: str) -> set[str]:
    return set("".join(one if one.isalpha() else " " for one in text.lower()).split())


def test_a_translation_is_in_english(client: polymux.Client, talk: Path) -> None:
    """The same speech, told to be German both times, so that nothing but the task is another."""
    plain = client.transcribe(talk, language="de", task="transcribe")
    told = client.transcribe(talk, language="de", task="translate")
    said, translated = words_of(plain.text), words_of(told.text)
    assert len(said & GERMAN) >= 6, plain.text
    assert said & ENGLISH == set(), plain.text
    assert len(translated & ENGLISH) >= 3, told.text
    assert len(translated & GERMAN) <= 1, told.text
    assert told.chunks
    assert "language de" in told.logs


def test_without_a_task_it_is_written_down_as_it_was_said(
    client: polymux.Client, talk: Path
) -> None:
    plain = client.transcribe(talk, language="de", task="transcribe")
    assert client.transcribe(talk, language="de").text == plain.text


def test_there_is_no_third_task() -> None:
    """Whoever adds one to the contract has to show what comes of it."""
    (variant,) = contract.operation("transcribe").variants
    (task,) = (one for one in variant.fields if one.name == "task")
    assert set(task.choices or ()) == {"transcribe", "translate"}
