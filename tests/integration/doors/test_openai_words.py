"""Words and segments at /v1 where an upstream tells them: joined they are the text, or nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
import pytest
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.openai_door import of
from support.upstreams import gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import PolymuxServer

SPEECH = "turian/insanely-fast-whisper-with-video"
TEXT = "Hi there. How are you?"
#: As OpenAI has words: without spaces and marks.
SPOKEN: dict[str, Any] = {
    "task": "transcribe", "language": "english", "duration": 6.0, "text": f" {TEXT}",
    "segments": [{"id": 0, "start": 0.0, "end": 2.5, "text": " Hi there."},
                 {"id": 1, "start": 3.0, "end": 6.0, "text": " How are you?"}],
    "words": [{"word": word, "start": number, "end": number + 0.5}
              for number, word in enumerate(("Hi", "there", "How", "are", "you"))],
}  # fmt: skip


@pytest.fixture(scope="module")
def bad() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        yield server


@pytest.fixture(scope="module")
def server(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("words")
    made = upstream(folder, bad.url, models={SPEECH: "w"}, operations=("transcribe",))
    with gateway(folder, {"groq": made}) as running:
        yield running


def heard(server: PolymuxServer, bad: MisbehavingServer, value: dict[str, Any], **more: Any) -> Any:
    bad.script(steps.answer(200, json.dumps(value).encode()))
    given = {"model": "whisper-1", "response_format": "verbose_json"} | more
    with of(server) as client:
        return client.audio.transcriptions.create(file=("a.wav", media.wav()), **given)


def test_both_of_them(server: PolymuxServer, bad: MisbehavingServer) -> None:
    both = heard(server, bad, SPOKEN, timestamp_granularities=["word", "segment"])
    assert both.text == TEXT
    assert [one.text for one in both.segments] == ["Hi there.", " How are you?"]
    assert "".join(one.text for one in both.segments) == both.text
    assert [one.word for one in both.words] == ["Hi", "there.", "How", "are", "you?"]
    assert both.segments[1].start == both.words[2].start


@pytest.mark.parametrize("lacking", [{"words": []}, {"words": None, "segments": None}])
def test_words_that_nobody_has_told(
    server: PolymuxServer, bad: MisbehavingServer, lacking: dict[str, Any]
) -> None:
    """Segments are none; it is said once, and the package does not ask again."""
    before = len(bad.requests)
    with pytest.raises(openai.APIStatusError) as refused:
        heard(server, bad, SPOKEN | lacking, timestamp_granularities=["word", "segment"])
    assert refused.value.status_code == 501
    assert refused.value.param == "timestamp_granularities"
    assert "segment" in refused.value.message
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert len(bad.requests) == before + 1


def test_no_times_at_all(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """No subtitles are made up, and no segments."""
    plain = {"text": f" {TEXT}"}
    assert heard(server, bad, plain, response_format="json").text == TEXT
    told = heard(server, bad, plain)
    assert (told.text, told.segments) == (TEXT, [])
    for kind in ("srt", "vtt"):
        with pytest.raises(openai.InternalServerError) as refused:
            heard(server, bad, plain, response_format=kind)
        assert refused.value.param == "response_format"
    assert "-->" in heard(server, bad, SPOKEN, response_format="srt")


def test_nothing_was_said(server: PolymuxServer, bad: MisbehavingServer) -> None:
    silence = {"text": "", "segments": [], "words": [], "duration": 6.0}
    told = heard(server, bad, silence, timestamp_granularities=["word", "segment"])
    assert (told.text, told.words, told.segments) == ("", [], [])
