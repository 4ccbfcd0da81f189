from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from polymux.engines.base import Request, Token
from polymux.engines.chat.answers import Conversation
from polymux.engines.chat.calls import CallReader, RequiredCalls
from polymux.engines.chat.json_schema import ChatSchemas
from polymux.errors import BadRequestError
from support.sinks import HeardSink

if TYPE_CHECKING:
    from pathlib import Path


def test_an_answer_has_one_id_and_one_time(tmp_path: Path) -> None:
    """The library gives each piece its own time and each turn its own id."""
    sink = HeardSink(tmp_path)
    values = {"stream": True, "stream_options": {"include_usage": True}}
    conversation = Conversation(
        Request("chat", "", "m", values, frozenset()), sink, Token(), "m", ChatSchemas({})
    )
    for turn in range(2):
        conversation.first = turn
        for at, delta, reason in ((0, {"role": "assistant", "content": None}, None),
                                  (1, {"content": "a"}, None), (2, {}, "stop")):  # fmt: skip
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            piece = {"id": f"c{turn}", "created": 1000 + 10 * turn + at, "choices": [choice]}
            assert not conversation.take(piece)
    conversation.finished()
    assert [one["choices"] == [] for one in sink.chunks] == [False] * 6 + [True]
    assert {(one["id"], one["created"]) for one in sink.chunks} == {("c0", 1000)}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the engine's clocks in seconds, as the only item. Tests change it."""
    time_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time_s[0], process_time=lambda: time_s[0])
    monkeypatch.setattr("polymux.engines.chat.answers.time", clock)
    return time_s


def test_a_schema_must_not_hold_up_the_engine(tmp_path: Path, now: list[float]) -> None:
    """Unless the model is as slow without a schema."""
    form = {"type": "json_object", "schema": {"type": "object"}}

    def taken(prompt_s: float, token_s: float, values: dict[str, object]) -> list[bool]:
        request = Request("chat", "", "m", values, frozenset())
        schemas = ChatSchemas(values)
        conversation = Conversation(request, HeardSink(tmp_path), Token(), "m", schemas)
        found = []
        for step_s, reading in ((prompt_s, {"prompt_progress": {}}), (0.0, {}), (token_s, {})):
            now[0] += step_s
            delta = {"content": None if reading else "a"}
            found.append(conversation.take({"choices": [{"index": 0, "delta": delta}], **reading}))
        if found[-1]:
            with pytest.raises(BadRequestError):
                conversation.check()
        return found

    assert taken(0.1, 2.5, {"response_format": form}) == [False, False, True]
    for prompt_s, token_s, values in ((0.1, 2.5, {}), (0.1, 1.5, {"response_format": form}),
                                      (0.3, 5.0, {"response_format": form})):  # fmt: skip
        assert not any(taken(prompt_s, token_s, values))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_text_becomes_calls(size: int) -> None:
    given = [('a"b', {"x": '}]\\"{', "y": [{"z": []}]}), ("c", {})]
    text = json.dumps([{"name": name, "arguments": one} for name, one in given], indent=2)
    reader = CallReader()
    names: list[str] = []
    arguments = ["", ""]
    for at in range(0, len(text), size):
        for part in reader.read(text[at : at + size]):
            arguments[part["index"]] += part["function"]["arguments"]
            names += [part["function"]["name"]] if part.get("id") else []
    found = zip(names, map(json.loads, arguments), strict=True)
    assert list(found) == given


def test_a_required_call_must_not_hold_up_the_engine(tmp_path: Path, now: list[float]) -> None:
    values = {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required"}
    request = Request("chat", "", "m", values, frozenset(values))
    calls, sink = RequiredCalls.of(request), HeardSink(tmp_path)
    made = Conversation(request, sink, Token(), "m", ChatSchemas(values), calls=calls)
    for step_s, ends in ((0.1, False), (2.5, True)):
        now[0] += step_s
        assert made.take({"choices": [{"index": 0, "delta": {"content": "{"}}]}) is ends
    with pytest.raises(BadRequestError) as caught:
        made.check()
    assert caught.value.param == "tools"


def test_a_long_answer_tells_how_far_it_is(tmp_path: Path, now: list[float]) -> None:
    """Progress comes once a second until the first text, and not for a streamed answer."""
    progress = {}
    for stream in (False, True):
        sink = HeardSink(tmp_path)
        request = Request("chat", "", "m", {"stream": stream}, frozenset())
        conversation = Conversation(request, sink, Token(), "m", ChatSchemas({}), token_limit=10)
        for number in range(8):
            now[0] += 0.5
            reading = {"prompt_progress": {"total": 9}} if number < 4 else {}
            delta = {"content": None if reading else "a"}
            conversation.take({"choices": [{"index": 0, "delta": delta}], **reading})
        progress[stream] = sink.progress
    assert progress == {False: [0.0, 0.0, 0.2, 0.4], True: [0.0, 0.0]}
