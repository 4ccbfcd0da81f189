"""What programs made for OpenAI send beside the usual, with a real model and with scripted ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import openai
import pytest
from support.openai_door import ScriptedDoor, of, of_asyncio, real_chat
from support.polymux_server import Box, PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGES: list[Any] = [{"role": "user", "content": "Name three colours."}]
ASKED: dict[str, Any] = {"model": "smollm2", "messages": MESSAGES, "max_completion_tokens": 5}
WORDS = ("a.wav", b"RIFF0000WAVE")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with real_chat(tmp_path_factory.mktemp("chat"), context=512) as running:
        yield running


@pytest.fixture
def client(server: PolymuxServer) -> Iterator[openai.OpenAI]:
    with of(server) as made:
        yield made


def test_more_answers_than_slots(client: openai.OpenAI) -> None:
    """Five of a model with two slots: each of its own, all of them counted, and the same again."""
    given: dict[str, Any] = {**ASKED, "n": 5, "seed": 3, "temperature": 1.5}
    whole = client.chat.completions.create(**given)
    texts = [one.message.content for one in whole.choices]
    assert [one.index for one in whole.choices] == [0, 1, 2, 3, 4]
    assert len(set(texts)) > 1
    assert all(one.finish_reason for one in whole.choices)
    assert whole.usage is not None
    assert 5 < whole.usage.completion_tokens <= 5 * 5
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    options: Any = {"include_usage": True}
    chunks = list(client.chat.completions.create(**given, stream=True, stream_options=options))
    said = dict.fromkeys(range(5), "")
    for chunk in chunks[:-1]:
        for choice in chunk.choices:
            said[choice.index] += choice.delta.content or ""
    assert list(said.values()) == texts
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


@pytest.mark.parametrize("wanted", [None, 0, 3])
def test_as_many_other_tokens_as_are_asked_for(client: openai.OpenAI, wanted: int | None) -> None:
    more: dict[str, Any] = {} if wanted is None else {"top_logprobs": wanted}
    given: dict[str, Any] = {**ASKED, "logprobs": True, "temperature": 0, **more}
    whole = client.chat.completions.create(**given)
    told = whole.choices[0].logprobs
    assert told is not None
    assert told.content
    assert [len(one.top_logprobs) for one in told.content] == [wanted or 0] * len(told.content)
    assert "".join(one.token for one in told.content) == whole.choices[0].message.content
    assert all(one.logprob <= 0 for one in told.content)
    pieces = [chunk.choices[0].logprobs for chunk in
              client.chat.completions.create(**given, stream=True)]  # fmt: skip
    streamed = [one for piece in pieces if piece for one in piece.content or ()]
    assert [one.token for one in streamed] == [one.token for one in told.content]
    assert {len(one.top_logprobs) for one in streamed} == {wanted or 0}


@pytest.mark.parametrize("stop", ["", [""], [], None])
def test_stops_that_say_nothing_stop_nothing(client: openai.OpenAI, stop: Any) -> None:
    usual = client.chat.completions.create(**ASKED, temperature=0)
    answer = client.chat.completions.create(**ASKED, temperature=0, stop=stop)
    assert answer.choices[0].message.content == usual.choices[0].message.content


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


@pytest.fixture(scope="module")
def box() -> Box:
    return Box()


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory, box: Box) -> Iterator[PolymuxServer]:
    def make() -> list[ScriptedDoor]:
        box.backend = ScriptedDoor()
        return [box.backend]

    with PolymuxServer(tmp_path_factory.mktemp("scripted") / "s", make) as running:
        yield running


def tool_pieces() -> list[dict[str, Any]]:
    """Two calls at once, whose arguments come in pieces."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for number, city in enumerate(("Paris", "R\u00f4me")):
        function = {"name": "weather", "arguments": ""}
        deltas.append({"tool_calls": [
            {"index": number, "id": f"call_{number}", "type": "function", "function": function}
        ]})  # fmt: skip
        deltas += [{"tool_calls": [{"index": number, "function": {"arguments": piece}}]}
                   for piece in ('{"ci', f'ty": "{city}"', "}")]  # fmt: skip
    chunks = [{"delta": one, "finish_reason": None} for one in deltas]
    chunks.append({"delta": {}, "finish_reason": "tool_calls"})
    return [
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
         "choices": [{"index": 0, **one}]} for one in chunks
    ]  # fmt: skip


def test_the_packages_helper_reads_streams_of_tools(scripted: PolymuxServer, box: Box) -> None:
    """Sync and async: it puts the calls together, and parses their arguments by the schema."""
    properties = {"city": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["city"],
              "additionalProperties": False}  # fmt: skip
    function = {"name": "weather", "parameters": schema, "strict": True}
    given: dict[str, Any] = {"model": "default", "messages": MESSAGES,
                             "tools": [{"type": "function", "function": function}]}  # fmt: skip
    box.backend.chunks = tool_pieces()
    with of(scripted) as client, client.chat.completions.stream(**given) as stream:
        done = [one for one in stream if one.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert [one.parsed_arguments for one in done] == [{"city": "Paris"}, {"city": "R\u00f4me"}]
    assert final.choices[0].finish_reason == "tool_calls"

    async def main() -> list[str]:
        async with (
            of_asyncio(scripted) as other,
            other.chat.completions.stream(**given) as pieces,
        ):
            whole = await pieces.get_final_completion()
        return [one.id for one in whole.choices[0].message.tool_calls or ()]

    assert asyncio.run(main()) == ["call_0", "call_1"]


@pytest.mark.parametrize(
    "given",
    [
        {"stream_options": {"include_usage": True}}, {"store": True, "metadata": {"a": "b"}},
        {"max_tokens": None}, {"tools": [], "tool_choice": "none"}, {"prompt_cache_key": "k"},
        {"modalities": ["text"]}, {"logit_bias": {"50256": -100}}, {"extra_query": {"a": "b"}},
        {"extra_headers": {"OpenAI-Beta": "x", "X-Stainless-Lang": "python"}},
        {"messages": [{"role": "developer", "content": "Be brief."}, *MESSAGES]},
        {"messages": [{"role": "user", "name": "b\u00f6b", "content": "\U0001f600\u0000"}]},
    ],
)  # fmt: skip
def test_what_other_programs_send_beside_the_usual(
    scripted: PolymuxServer, box: Box, given: dict[str, Any]
) -> None:
    with of(scripted) as client:
        answer = client.chat.completions.create(
            **{"model": "default", "messages": MESSAGES, **given}
        )
    assert answer.choices[0].message.content == "read"
    sent = given.get("messages")
    assert sent is None or box.backend.began[-1].values["messages"] == sent


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"n": 0}, "n"), ({"n": "2"}, "n"), ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"stop": list("abcde")}, "stop"), ({"seed": 2**63}, "seed"), ({"model": ""}, "model"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools[0].type"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, "max_tokens"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(scripted: PolymuxServer, given: dict[str, Any], param: str) -> None:
    with of(scripted) as client, pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**{"model": "default", "messages": MESSAGES, **given})
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"timestamp_granularities": ["word"]}, "timestamp_granularities"),
        ({"response_format": "verbose_json", "timestamp_granularities": ["char"]},
         "timestamp_granularities"),
        ({"response_format": "diarized_json"}, "response_format"), ({"stream": True}, "stream"),
        ({"temperature": 0.2}, "temperature"), ({"prompt": "x"}, "prompt"),
        ({"include": ["logprobs"]}, "include"), ({"model": "gpt-4o-transcribe"}, "model"),
        ({"chunking_strategy": {"type": "server_vad"}}, "chunking_strategy"),
    ],
)  # fmt: skip
def test_speech_that_is_asked_for_in_vain(
    scripted: PolymuxServer, given: dict[str, Any], param: str
) -> None:
    with of(scripted) as client, pytest.raises(openai.APIStatusError) as refused:
        client.audio.transcriptions.create(**{"model": "whisper-1", "file": WORDS, **given})
    assert refused.value.status_code == (404 if param == "model" else 400)
    assert refused.value.param == param


@pytest.mark.parametrize("key", ["wrong", "pmx_", "a b", "x" * 5000])
def test_wrong_keys(scripted: PolymuxServer, key: str) -> None:
    with of(scripted, api_key=key) as client, pytest.raises(openai.AuthenticationError) as refused:
        client.audio.transcriptions.create(model="whisper-1", file=WORDS)
    assert refused.value.code == "invalid_api_key"
    assert key not in refused.value.message or len(key) < 5
