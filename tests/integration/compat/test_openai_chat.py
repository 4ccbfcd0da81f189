"""/v1/chat/completions and /v1/models with the package openai.

Uses a real model if the answers matter, otherwise a scripted backend.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from support.lazy_imports import openai
from support.openai_compat import ScriptedModels, of, of_asyncio, real_chat
from support.server_process import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import PolymuxServer

TOKENS = 12
#: Makes the model's answers deterministic.
SAME: dict[str, Any] = {"max_completion_tokens": TOKENS, "temperature": 0, "seed": 1}
MESSAGES: list[Any] = [{"role": "user", "content": "Name three colours."}]
ASKED: dict[str, Any] = {"model": "smollm2", "messages": MESSAGES}
SCRIPTED: dict[str, Any] = {"model": "default", "messages": MESSAGES}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        "additionalProperties": False}  # fmt: skip
WEATHER: dict[str, Any] = {
    "type": "function", "function": {"name": "weather", "parameters": CITY, "strict": True},
}  # fmt: skip
CALL: dict[str, Any] = {
    "id": "call_0", "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
}  # fmt: skip


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with real_chat(tmp_path_factory.mktemp("chat"), context=512) as running:
        yield running


@pytest.fixture
def client(real: PolymuxServer) -> Iterator[openai.OpenAI]:
    with of(real) as made:
        yield made


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


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
    # max_tokens is the older name of max_completion_tokens.
    answer = client.chat.completions.create(**ASKED, max_tokens=3, temperature=0)
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 3
    assert answer.choices[0].finish_reason == "length"


def test_a_stream_and_its_usage(client: openai.OpenAI) -> None:
    """The joined chunks equal the full answer. The token counts arrive last, if requested."""
    whole = client.chat.completions.create(**ASKED, **SAME)
    options: Any = {"include_usage": True}
    stream = client.chat.completions.create(**ASKED, **SAME, stream=True, stream_options=options)
    *pieces, last = list(stream)
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


def test_as_many_other_tokens_as_are_asked_for(client: openai.OpenAI) -> None:
    wanted = 3
    given: dict[str, Any] = {**ASKED, **SAME, "logprobs": True, "top_logprobs": wanted}
    whole = client.chat.completions.create(**given)
    logprobs = whole.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content
    assert [len(one.top_logprobs) for one in logprobs.content] == [wanted] * len(logprobs.content)
    assert "".join(one.token for one in logprobs.content) == whole.choices[0].message.content
    assert all(one.logprob <= 0 for one in logprobs.content)
    pieces = [chunk.choices[0].logprobs for chunk in
              client.chat.completions.create(**given, stream=True)]  # fmt: skip
    streamed = [one for piece in pieces if piece for one in piece.content or ()]
    assert [one.token for one in streamed] == [one.token for one in logprobs.content]
    assert {len(one.top_logprobs) for one in streamed} == {wanted}


def test_stops_that_say_nothing_stop_nothing(client: openai.OpenAI) -> None:
    usual = client.chat.completions.create(**ASKED, **SAME)
    for stop in ("", [""], None):
        answer = client.chat.completions.create(**ASKED, **SAME, stop=stop)
        assert answer.choices[0].message.content == usual.choices[0].message.content


class Colour(BaseModel):
    name: str
    warm: bool


def test_an_answer_of_a_schema(client: openai.OpenAI) -> None:
    """The package creates the schema and parses the answer."""
    answer = client.chat.completions.parse(
        **ASKED, response_format=Colour, max_completion_tokens=120, temperature=0
    )
    parsed = answer.choices[0].message.parsed
    assert isinstance(parsed, Colour)
    assert parsed.name


def test_models(client: openai.OpenAI) -> None:
    """The list has only models for chats, not for speech or images."""
    found = list(client.models.list())
    assert [one.id for one in found] == ["smollm2", "chat"]
    assert {one.object for one in found} == {"model"}
    assert {one.to_dict()["operation"] for one in found} == {"chat"}
    assert abs(found[0].created - time.time()) < 600
    assert client.models.retrieve("smollm2").id == "smollm2"
    assert client.models.retrieve("default") == found[0]
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("no-such/model here")
    assert refused.value.code == "model_not_found"


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_is_none(client: openai.OpenAI, stream: bool) -> None:
    """Returns 404 here, while the operation itself returns 400."""
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(**{**ASKED, "model": "gpt-9"}, stream=stream)
    assert refused.value.code == "model_not_found"
    assert refused.value.param == "model"
    assert refused.value.type == "invalid_request_error"
    assert "smollm2" in refused.value.message


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        ({"messages": [{"role": "user", "content": "word " * 900}]}, "context_length_exceeded",
         "messages"),
        ({"top_logprobs": 2}, "invalid_request", "logprobs"),
        ({"response_format": {"type": "json_schema", "json_schema": {
            "name": "x", "schema": {"type": "nonsense"}}}}, "invalid_request", "response_format"),
    ],
)  # fmt: skip
def test_what_the_model_cannot_do_names_its_field(
    client: openai.OpenAI, given: dict[str, Any], code: str, param: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        list(client.chat.completions.create(**{**ASKED, **given}, stream=stream))
    assert (refused.value.code, refused.value.param) == (code, param)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"service_tier": "priority"}, "service_tier"), ({"n": "2"}, "n"), ({"model": ""}, "model"),
        ({"extra_body": {"api_base": "http://evil.example"}}, "api_base"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools[0].type"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(server: PolymuxServer, given: dict[str, Any], param: str) -> None:
    with of(server) as client, pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**{**SCRIPTED, **given})
    assert refused.value.param == param
    assert refused.value.code == "invalid_request" or param == "model"


@pytest.mark.parametrize(
    "given",
    [
        {"store": True, "metadata": {"a": "b"}}, {"max_tokens": None}, {"modalities": ["text"]},
        {"tools": [], "tool_choice": "none"}, {"extra_query": {"a": "b"}},
        {"extra_headers": {"OpenAI-Beta": "x", "X-Stainless-Lang": "python"}},
        {"messages": [{"role": "developer", "content": "Be brief."}, *MESSAGES]},
        {"messages": [{"role": "user", "name": "b\u00f6b", "content": "\U0001f600\u0000"}]},
    ],
)  # fmt: skip
def test_what_other_programs_send_beside_the_usual(
    server: PolymuxServer, backend: ScriptedModels, given: dict[str, Any]
) -> None:
    with of(server) as client:
        answer = client.chat.completions.create(**{**SCRIPTED, **given})
    assert answer.choices[0].message.content == "read"
    sent = given.get("messages")
    assert sent is None or backend.began[-1].values["messages"] == sent


def chunk_of(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]}  # fmt: skip


def test_tools(server: PolymuxServer, backend: ScriptedModels) -> None:
    """Tools reach the backend unchanged. Its calls and their results are returned."""
    backend.message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    messages = list(MESSAGES)
    given: dict[str, Any] = {"model": "default", "tools": [WEATHER], "tool_choice": "required"}
    with of(server) as client:
        answer = client.chat.completions.create(messages=messages, **given)
        assert answer.choices[0].message.tool_calls
        assert answer.choices[0].message.tool_calls[0].model_dump(exclude_none=True) == CALL
        [work] = backend.began
        assert work.values["tools"] == [WEATHER]
        assert work.values["tool_choice"] == "required"
        result = {"role": "tool", "tool_call_id": "call_0", "content": "It rains."}
        messages += [answer.choices[0].message, result]
        client.chat.completions.create(messages=messages, **given)
    sent = backend.began[-1].values["messages"]
    assert sent[1]["tool_calls"] == [CALL]
    assert sent[2] == result


def tool_pieces() -> list[dict[str, Any]]:
    """Two parallel calls whose arguments arrive in pieces."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for number, city in enumerate(("Paris", "R\u00f4me")):
        function = {"name": "weather", "arguments": ""}
        deltas.append({"tool_calls": [
            {"index": number, "id": f"call_{number}", "type": "function", "function": function}
        ]})  # fmt: skip
        deltas += [{"tool_calls": [{"index": number, "function": {"arguments": piece}}]}
                   for piece in ('{"ci', f'ty": "{city}"', "}")]  # fmt: skip
    return [*map(chunk_of, deltas), chunk_of({}, "tool_calls")]


def test_the_packages_helper_reads_streams_of_tools(
    server: PolymuxServer, backend: ScriptedModels
) -> None:
    """The sync and async helpers join the calls and parse their arguments."""
    given: dict[str, Any] = SCRIPTED | {"tools": [WEATHER]}
    backend.chunks = tool_pieces()
    with of(server) as client, client.chat.completions.stream(**given) as stream:
        done = [one for one in stream if one.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert [one.parsed_arguments for one in done] == [{"city": "Paris"}, {"city": "R\u00f4me"}]
    assert final.choices[0].finish_reason == "tool_calls"

    async def main() -> list[str]:
        async with (
            of_asyncio(server) as other,
            other.chat.completions.stream(**given) as pieces,
        ):
            whole = await pieces.get_final_completion()
        return [one.id for one in whole.choices[0].message.tool_calls or ()]

    assert asyncio.run(main()) == ["call_0", "call_1"]


def test_who_leaves_ends_the_work(server: PolymuxServer, backend: ScriptedModels) -> None:
    backend.gate.clear()
    backend.chunks = [chunk_of({"content": "a"})]
    with of(server) as client:
        stream = client.chat.completions.create(**SCRIPTED, stream=True)
        assert next(iter(stream)).choices[0].delta.content == "a"
        assert backend.ended == []
        stream.close()
        until(lambda: backend.ended == ["closed"])
    with of(server, timeout=0.5) as client, pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(**SCRIPTED)
    until(lambda: backend.ended == ["closed", "cancelled"])
    assert len(backend.began) == 2


def test_a_stream_that_fails(server: PolymuxServer, backend: ScriptedModels) -> None:
    """An error before the first chunk sets the status. After it, the package raises the event."""
    server.expect_defects()
    backend.failure = openai.OpenAIError("an engine's secret")
    with of(server) as client:
        with pytest.raises(openai.InternalServerError) as refused:
            client.chat.completions.create(**SCRIPTED, stream=True)
        assert refused.value.code == "internal"
        assert "secret" not in refused.value.message
        backend.chunks = [chunk_of({"content": "a"})]
        stream = iter(client.chat.completions.create(**SCRIPTED, stream=True))
        next(stream)
        with pytest.raises(openai.APIError) as cut:
            next(stream)
        assert cut.value.code == "internal"
