"""/v1/audio with the package openai, a real speech model and scripted results."""

from __future__ import annotations

import asyncio
import re
import subprocess
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.lazy_imports import openai
from support.openai_compat import ScriptedModels, of, of_asyncio, real_speech
from support.polymux_server import form

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import PolymuxServer

#: The package marks translations as deprecated, but supports them.
pytestmark = pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")

SENTENCES = "The weather is fine today. Tomorrow morning we will travel to London by train."
SPOKEN: dict[str, Any] = {
    "text": "Hello there. Good bye.", "language": "en",
    "chunks": [{"text": " Hello there.", "timestamp": [0.5, 2.0]},
               {"text": " Good bye.", "timestamp": [2.5, 4.0]}],
}  # fmt: skip
TIME = r"\d\d:\d\d:\d\d"
FILE = ("talk.wav", b"RIFF and samples")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with real_speech(tmp_path_factory.mktemp("speech")) as running:
        yield running


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("talk") / "talk.wav"
    subprocess.run(["espeak-ng", "-s", "140", "-w", str(path), SENTENCES], check=True)
    return path


def heard(client: openai.OpenAI, talk: Any, **more: Any) -> Any:
    given = {"model": "whisper-1", "language": "en"} | more
    return client.audio.transcriptions.create(file=talk, **given)


def test_real_speech(real: PolymuxServer, talk: Path) -> None:
    """The text is equal in all formats."""
    with of(real) as client:
        both = heard(client, talk, response_format="verbose_json",
                     timestamp_granularities=["word", "segment"])  # fmt: skip
        assert isinstance(both, openai.types.audio.TranscriptionVerbose)
        assert both.language == "english"
        assert both.duration == pytest.approx(5, abs=2)
        words = [one.word.lower().strip(".,") for one in both.words or ()]
        assert {"weather", "london"} <= set(words)
        assert len(words) == len(both.text.split())
        for before, after in zip(both.words or (), (both.words or ())[1:], strict=False):
            assert before.start <= before.end <= after.start + 0.01
        # The engine's model also has its own name.
        with polymux.Client(real.url, real.key) as own:
            name = own.transcribe(talk).engine_model
        assert heard(client, talk, model=name).text == both.text
        with pytest.raises(openai.NotFoundError, match=name):
            heard(client, talk, model="other")
        segments = both.segments or []
        assert "".join(one.text for one in segments).strip() == both.text
        assert len(segments) == both.text.count(".")
        for one in segments:
            assert 0 <= one.start < one.end <= both.duration + 1


def test_asyncio_and_translation(server: PolymuxServer, backend: ScriptedModels) -> None:
    async def main() -> Any:
        async with of_asyncio(server) as client:
            return await client.audio.translations.create(
                file=FILE, model="whisper-1", response_format="verbose_json"
            )

    backend.output = SPOKEN
    translation = asyncio.run(main())
    assert (translation.language, translation.text) == ("english", SPOKEN["text"])
    assert translation.segments
    assert backend.began[0].values["task"] == "translate"


def test_what_is_no_recording(real: PolymuxServer, talk: Path) -> None:
    with of(real) as client:
        with pytest.raises(openai.APIStatusError) as refused:
            client.audio.transcriptions.create(file=("a.wav", b"no sound" * 9), model="whisper-1")
        assert (refused.value.status_code, refused.value.code) == (415, "unsupported_media")
        with pytest.raises(openai.BadRequestError) as unknown:
            heard(client, talk, language="klingon")
        assert (unknown.value.code, unknown.value.param) == ("invalid_request", "language")


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


def test_all_five_forms(server: PolymuxServer, backend: ScriptedModels) -> None:
    """All formats of one recording. Segments and words appear if requested."""
    backend.output, backend.metrics = SPOKEN, {"audio_seconds": 4.5}
    with of(server) as client:
        plain = heard(client, FILE)
        assert (plain.text, plain.usage.seconds) == (SPOKEN["text"], 4.5)
        assert heard(client, FILE, response_format="text") == f"{plain.text}\n"
        verbose = heard(client, FILE, response_format="verbose_json")
        assert (verbose.text, verbose.duration, verbose.words) == (plain.text, 4.5, None)
        assert "".join(one.text for one in verbose.segments).strip() == verbose.text
        alone = heard(client, FILE, response_format="verbose_json",
                      timestamp_granularities=["word"])  # fmt: skip
        assert (len(alone.words), alone.segments) == (2, None)
        srt = heard(client, FILE, response_format="srt")
        assert re.match(rf"1\n{TIME},\d\d\d --> {TIME},\d\d\d\n", srt)
        vtt = heard(client, FILE, response_format="vtt")
        assert re.match(rf"WEBVTT\n\n{TIME}\.\d\d\d --> {TIME}\.\d\d\d\n", vtt)
        lines = [one.text.strip() for one in verbose.segments]
        for text in (srt, vtt):
            assert [line for line in text.splitlines() if line in lines] == lines


def test_a_request_in_the_operation_s_words(server: PolymuxServer, backend: ScriptedModels) -> None:
    with of(server) as client:
        client.audio.transcriptions.create(
            file=FILE, model="default", language="de", temperature=0, prompt="", stream=False
        )
        client.audio.transcriptions.create(
            file=FILE,
            model="turian/insanely-fast-whisper-with-video",
            response_format="verbose_json",
            timestamp_granularities=["word"],
            chunking_strategy="auto",
        )
        client.audio.translations.create(file=FILE, model="whisper-1")
    first, second, third = (one.values for one in backend.began)
    assert first["audio"].file_name == "talk.wav"
    assert (first["task"], first["timestamp"], first["language"]) == ("transcribe", "chunk", "de")
    assert (second["task"], second["timestamp"]) == ("transcribe", "word")
    assert "language" not in second
    assert (third["task"], third["timestamp"]) == ("translate", "chunk")


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"prompt": "Umm, let me think"}, "prompt"), ({"stream": True}, "stream"),
        ({"response_format": "diarized_json"}, "response_format"),
        ({"timestamp_granularities": ["word"]}, "timestamp_granularities"),
        ({"extra_body": {"url": "http://127.0.0.1/a.wav"}}, "url"),
    ],
)  # fmt: skip
def test_what_is_not_done_is_refused(
    server: PolymuxServer, backend: ScriptedModels, more: dict[str, Any], param: str
) -> None:
    with of(server) as client, pytest.raises(openai.BadRequestError) as refused:
        client.audio.transcriptions.create(**({"file": FILE, "model": "whisper-1"} | more))
    assert refused.value.param == param
    assert param in refused.value.message
    assert backend.began == []


def test_forms_by_hand(server: PolymuxServer) -> None:
    """Requests that the package does not send."""
    path = "/v1/audio/transcriptions"
    for fields, param in (
        ((("file", "text"), ("model", "whisper-1")), "file"),
        ((("file", FILE), ("file", FILE)), "file"),
        ((("file", FILE), ("model", FILE)), "model"),
        ((("file", FILE), ("timestamp_granularities[]", FILE)), "timestamp_granularities"),
        ((("file", FILE), ("mask", FILE)), "mask"),
    ):
        body, headers = form(*fields)
        answer = server.ask("POST", path, body, headers)
        assert answer.status == 400, fields
        assert answer.json()["error"]["param"] == param
    answer = server.json(path, {"model": "whisper-1"})
    assert (answer.status, answer.json()["error"]["code"]) == (415, "unsupported_media")
    body, headers = form(("file", FILE))
    assert server.ask("POST", path, body, headers).json()["text"] == "Hello there."
