from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import polymux
import pytest
from polymux.client import responses
from support.sample_responses import COMPLETION, SONG, TOOL_CALLS, body, prediction

WITH_CALLS = polymux.ChatCompletion.decode(body(TOOL_CALLS))
ALL: dict[str, Any] = {
    "completion": polymux.ChatCompletion.decode(body(COMPLETION)),
    "tool calls": WITH_CALLS,
    "text": polymux.TextResponse.decode(b'{"response": "Hello!", "model": "x"}'),
    "ocr": polymux.OcrText.decode(b'{"text": "Dear Ada,\\n"}'),
    "prediction": prediction(),
    "song": polymux.Song.decode(body(SONG)),
    "songs": polymux.SongList.decode(body([SONG, SONG | {"song_name": "Other"}])),
    "choice": polymux.ChatCompletion.decode(body(COMPLETION)).choices[0],
    "usage": polymux.ChatCompletion.decode(body(COMPLETION)).usage,
    "message": WITH_CALLS.message,
    "tool call": WITH_CALLS.tool_calls[0],
    "function": WITH_CALLS.tool_calls[0].function,
    "chunk": prediction(output=[{"text": "a", "timestamp": [0, 1.5]}]).chunks[0],
}


@pytest.mark.parametrize("name", ALL)
def test_every_result_is_immutable_equal_hashable_and_pickles(name: str) -> None:
    result = ALL[name]
    copies = [pickle.loads(pickle.dumps(result, protocol)) for protocol in (2, 5)]
    for twin in [*copies, copy.copy(result), copy.deepcopy(result)]:
        assert type(twin) is type(result)
        assert twin == result
        assert hash(twin) == hash(result)
        assert twin.json() == result.json()
        assert getattr(twin, "raw", None) == getattr(result, "raw", None)
    for attribute in ("text", "anything"):
        with pytest.raises(AttributeError):
            setattr(result, attribute, "x")
    with pytest.raises(AttributeError):
        del result._value
    assert result != 5
    assert not hasattr(result, "__dict__")
    assert len(repr(result)) < 1200
    assert repr(result).startswith(type(result).__name__)


def test_reprs_begin_with_the_answer() -> None:
    files = prediction(output=["https://files.example/a.png?signature=secret"])
    text = prediction(output={"text": "Hello", "chunks": []})
    waiting = prediction(output=None)
    assert repr(files).startswith("Prediction(files=(RemoteFile('https://files.example/a.png'),)")
    assert "secret" not in repr(files)
    assert repr(text).startswith("Prediction(text='Hello', status=")
    assert repr(waiting).startswith("Prediction(status=")
    assert repr(WITH_CALLS.message).startswith("AnswerMessage(content=")
    completion = polymux.ChatCompletion.decode(body(COMPLETION))
    assert repr(completion).startswith("ChatCompletion(text=")


@pytest.mark.parametrize("name", ALL)
def test_nobody_can_change_the_answer_through_a_result(name: str) -> None:
    result = ALL[name]
    before = json.dumps(result.json())

    def spoil(value: Any) -> None:
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (dict, list)):
                spoil(inner)
        value.clear()

    attributes = "input", "output", "metrics", "urls", "x_groq", "completion_tokens_details"
    for value in [result.json(), result.extra, *(getattr(result, one, 0) for one in attributes)]:
        if isinstance(value, (dict, list)):
            spoil(value)
    assert json.dumps(result.json()) == before


def test_results_differ_where_their_json_does() -> None:
    one = polymux.TextResponse.decode(b'{"response":"a"}')
    same = polymux.TextResponse.decode(b'{ "response" : "a" }')
    assert {one, same} == {one}
    assert one != polymux.TextResponse.decode(b'{"response":"a","new":1}')
    assert one != polymux.OcrText.decode(b'{"response":"a"}')


def test_every_result_of_the_package_is_public() -> None:
    assert set(responses.__all__) - set(polymux.__all__) == {"media_url"}
