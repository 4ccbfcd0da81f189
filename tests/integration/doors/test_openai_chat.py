"""/v1/chat/completions and /v1/models with a real model, asked by the package openai."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import openai
import pytest
from pydantic import BaseModel
from support.openai_door import ScriptedDoor, of, of_asyncio, real_chat
from support.polymux_server import Box, PolymuxServer
from support.served import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKENS = 12
#: What makes the model answer alike each time.
SAME: dict[str, Any] = {"max_completion_tokens": TOKENS, "temperature": 0, "seed": 1}
ASKED: dict[str, Any] = {
    "model": "smollm2",
    "messages": [{"role": "user", "content": "Name three colours."}],
}
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with real_chat(tmp_path_factory.mktemp("chat")) as running:
        yield running


@pytest.fixture
def client(server: PolymuxServer) -> Iterator[openai.OpenAI]:
    with of(server) as made:
        yield made


def test_an_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(**ASKED, **SAME)
    assert answer.object == "chat.completion"
    assert answer.model == "smollm2"
    assert answer.choices[0].message.role == "assistant"
    assert len(answer.choices[0].message.content or "") > 5
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage is not None
    assert 1 <= answer.usage.completion_tokens <= TOKENS
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id


def test_the_older_name_of_the_longest_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(**ASKED, max_tokens=3, temperature=0)
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 3
    assert answer.choices[0].finish_reason == "length"


def test_a_stream_and_its_usage(client: openai.OpenAI) -> None:
    """The pieces are the whole answer; the counts come last, where they are wanted."""
    whole = client.chat.completions.create(**ASKED, **SAME)
    options: Any = {"include_usage": True}
    stream = client.chat.completions.create(**ASKED, **SAME, stream=True, stream_options=options)
    chunks = list(stream)
    *pieces, last = chunks
    assert "".join(one.choices[0].delta.content or "" for one in pieces) == (
        whole.choices[0].message.content
    )
    assert pieces[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert not any(one.usage for one in pieces)
    assert last.choices == []
    assert last.usage is not None
    assert whole.usage is not None
    assert last.usage.completion_tokens == whole.usage.completion_tokens
    without = list(client.chat.completions.create(**ASKED, **SAME, stream=True))
    assert all(one.choices for one in without)
    assert not any(one.usage for one in without)


class Colour(BaseModel):
    name: str
    warm: bool


def test_an_answer_of_a_schema(client: openai.OpenAI) -> None:
    """The package makes the schema and reads the answer."""
    answer = client.chat.completions.parse(
        **ASKED, response_format=Colour, max_completion_tokens=120, temperature=0
    )
    parsed = answer.choices[0].message.parsed
    assert isinstance(parsed, Colour)
    assert parsed.name


def test_asyncio(server: PolymuxServer) -> None:
    async def main() -> tuple[list[str], str]:
        async with of_asyncio(server) as client:
            stream = await client.chat.completions.create(**ASKED, **SAME, stream=True)
            pieces = [one.choices[0].delta.content or "" async for one in stream]
            whole = await client.chat.completions.create(**ASKED, **SAME)
            return pieces, whole.choices[0].message.content or ""

    pieces, whole = asyncio.run(main())
    assert "".join(pieces) == whole
    assert len(pieces) > 3


def test_models(client: openai.OpenAI) -> None:
    """Those that can be asked for, and only those: no speech, no pictures here."""
    found = list(client.models.list())
    assert [one.id for one in found] == ["smollm2", "chat"]
    assert {one.object for one in found} == {"model"}
    assert abs(found[0].created - time.time()) < 600
    assert client.models.retrieve("smollm2").id == "smollm2"
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("no-such/model here")
    assert refused.value.code == "model_not_found"


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_is_none(client: openai.OpenAI, stream: bool) -> None:
    """404 here, where the operation itself answers 400."""
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(**{**ASKED, "model": "gpt-9"}, stream=stream)
    assert refused.value.code == "model_not_found"
    assert refused.value.param == "model"
    assert refused.value.type == "invalid_request_error"
    assert "smollm2" in refused.value.message


def test_what_the_operation_refuses(client: openai.OpenAI) -> None:
    """By the contract's own checker: the field is named."""
    for more, param in (
        ({"temperature": 3}, "temperature"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"extra_body": {"api_base": "http://evil.example"}}, "api_base"),
        ({"messages": []}, "messages"),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(**{**ASKED, **more})  # type: ignore[call-overload]
        assert refused.value.param == param
        assert param in refused.value.message
        assert refused.value.code == "invalid_request"


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def scripted(tmp_path: Path, box: Box) -> Iterator[PolymuxServer]:
    def make() -> list[ScriptedDoor]:
        box.backend = ScriptedDoor()
        return [box.backend]

    with PolymuxServer(tmp_path / "s", make) as running:
        yield running


def test_tools(scripted: PolymuxServer, box: Box) -> None:
    """Tools reach the backend as they were given; its calls, whole and in pieces, come back."""
    call = {"id": "call_1", "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}  # fmt: skip
    box.backend.message = {"role": "assistant", "content": None, "tool_calls": [call]}
    box.backend.chunks = [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": one}]}
        for one in ({"tool_calls": [{"index": 0, **call}]}, {})
    ]
    messages: list[Any] = [{"role": "user", "content": "What is the weather in Paris?"}]
    given: dict[str, Any] = {"model": "default", "tools": [WEATHER], "tool_choice": "required"}
    with of(scripted) as client:
        answer = client.chat.completions.create(messages=messages, **given)
        assert answer.choices[0].message.tool_calls
        assert answer.choices[0].message.tool_calls[0].model_dump(exclude_none=True) == call
        [work] = box.backend.began
        assert work.values["tools"] == [WEATHER]
        assert work.values["tool_choice"] == "required"
        stream = client.chat.completions.create(messages=messages, **given, stream=True)
        deltas = [one for chunk in stream for one in chunk.choices[0].delta.tool_calls or ()]
        assert [one.function.arguments for one in deltas if one.function] == ['{"city": "Paris"}']
        messages += [
            answer.choices[0].message,
            {"role": "tool", "tool_call_id": "call_1", "content": "It rains."},
        ]
        client.chat.completions.create(messages=messages, **given)
    sent = box.backend.began[-1].values["messages"]
    assert sent[1]["tool_calls"] == [call]
    assert sent[2] == {"role": "tool", "tool_call_id": "call_1", "content": "It rains."}


def test_who_leaves_a_stream_ends_its_work(scripted: PolymuxServer, box: Box) -> None:
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": None}
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [choice]}  # fmt: skip
    box.backend.gate.clear()
    box.backend.chunks = [chunk]
    with of(scripted) as client:
        stream = client.chat.completions.create(**{**ASKED, "model": "default"}, stream=True)
        assert next(iter(stream)).choices[0].delta.content == "a"
        assert box.backend.ended == []
        stream.close()
    until(lambda: box.backend.ended == ["closed"])


def test_who_leaves_an_answer_ends_its_work(scripted: PolymuxServer, box: Box) -> None:
    box.backend.gate.clear()
    with of(scripted, timeout=0.5) as client, pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(**{**ASKED, "model": "default"})
    until(lambda: box.backend.ended == ["cancelled"])
    assert len(box.backend.began) == 1


def test_a_stream_that_fails(scripted: PolymuxServer, box: Box) -> None:
    """Before its first piece it has a status; after it, the package raises what it is told."""
    scripted.expect_defects()
    box.backend.failure = openai.OpenAIError("an engine's secret")
    given: dict[str, Any] = {**ASKED, "model": "default", "stream": True}
    with of(scripted) as client:
        with pytest.raises(openai.InternalServerError) as refused:
            client.chat.completions.create(**given)
        assert refused.value.code == "internal"
        assert "secret" not in refused.value.message
        choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": None}
        box.backend.chunks = [{"object": "chat.completion.chunk", "choices": [choice]}]
        stream = iter(client.chat.completions.create(**given))
        next(stream)
        with pytest.raises(openai.APIError, match="internal error"):
            next(stream)
