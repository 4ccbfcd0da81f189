"""Results are values: immutable, equal, hashable; nobody changes an answer through them."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from typing import Any

import polymux
import pytest
from polymux.client import responses
from support.answers import COMPLETION, SONG, TOOL_CALLS, body, prediction

ALL: dict[str, Any] = {
    "completion": polymux.ChatCompletion.decode(body(COMPLETION)),
    "tool calls": polymux.ChatCompletion.decode(body(TOOL_CALLS)),
    "text": polymux.TextResponse.decode(b'{"response": "Hello!", "model": "x"}'),
    "ocr": polymux.OcrText.decode(b'{"text": "Dear Ada,\\n"}'),
    "prediction": prediction(),
    "song": polymux.Song.decode(body(SONG)),
    "songs": polymux.SongList.decode(body([SONG, SONG | {"song_name": "Other"}])),
    "choice": polymux.ChatCompletion.decode(body(COMPLETION)).choices[0],
    "usage": polymux.ChatCompletion.decode(body(COMPLETION)).usage,
    "message": polymux.ChatCompletion.decode(body(TOOL_CALLS)).message,
    "tool call": polymux.ChatCompletion.decode(body(TOOL_CALLS)).tool_calls[0],
    "function": polymux.ChatCompletion.decode(body(TOOL_CALLS)).tool_calls[0].function,
    "chunk": prediction(output={"text": "a", "chunks": [{"text": "a", "timestamp": [0, 1.5]}]})
    .chunks[0],
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_every_result_is_immutable_equal_hashable_and_pickles(name: str) -> None:
    result = ALL[name]
    copies = [pickle.loads(pickle.dumps(result, protocol)) for protocol in range(2, 6)]
    for twin in [*copies, copy.copy(result), copy.deepcopy(result)]:
        assert type(twin) is type(result)
        assert twin == result
        assert hash(twin) == hash(result)
        assert twin.json() == result.json()
        assert getattr(twin, "raw", None) == getattr(result, "raw", None)
    with pytest.raises(AttributeError):
        result.text = "x"
    with pytest.raises(AttributeError):
        result.anything = "x"
    with pytest.raises(AttributeError):
        del result._value
    assert result != 5
    assert not hasattr(result, "__dict__")
    assert len(repr(result)) < 1200
    assert repr(result).startswith(type(result).__name__)


@pytest.mark.parametrize("name", ALL)
def test_nobody_can_change_the_answer_through_a_result(name: str) -> None:
    result = ALL[name]
    before = json.dumps(result.json())

    def spoil(value: Any) -> None:
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (dict, list)):
                spoil(inner)
        value.clear()

    spoil(result.json())
    spoil(result.extra)
    for attribute in ("input", "output", "metrics", "urls", "x_groq", "completion_tokens_details"):
        value = getattr(result, attribute, None)
        if isinstance(value, (dict, list)):
            spoil(value)
    assert json.dumps(result.json()) == before


def test_results_differ_where_their_json_does() -> None:
    one = polymux.TextResponse.decode(b'{"response":"a"}')
    assert one == polymux.TextResponse.decode(b'{ "response" : "a" }')
    assert one != polymux.TextResponse.decode(b'{"response":"a","new":1}')
    assert one != polymux.OcrText.decode(b'{"response":"a"}')
    assert len({one, polymux.TextResponse.decode(b'{ "response" : "a" }')}) == 1


def test_raw_is_what_came() -> None:
    answer = bytearray(b' {"response" : "a"} ')
    result = polymux.TextResponse.decode(answer)
    answer[:] = b"x" * len(answer)
    assert result.raw == b' {"response" : "a"} '


def test_every_result_of_the_package_is_public() -> None:
    assert set(responses.__all__) - set(polymux.__all__) == {"media_url"}
    assert sorted(responses.__all__) == responses.__all__


def test_what_has_failed_to_be_made_can_be_shown() -> None:
    """Tools print the variables of a traceback's frames; one is the result that there is not."""
    try:
        polymux.ChatCompletion.decode(b'{"id": 5}')
    except polymux.DecodeError as error:
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
        assert "of an answer that is none" in "".join(told.format())
    else:
        pytest.fail("it was decoded")
