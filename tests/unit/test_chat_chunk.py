from __future__ import annotations

import json

import polymux
import pytest

CALL = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{"}}
DELTA = {"role": "assistant", "content": "Hi", "reasoning_content": "hm", "tool_calls": [CALL]}
CHUNK = {
    "id": "chatcmpl-1",
    "created": 1700000000,
    "model": "m",
    "choices": [
        {
            "index": 2,
            "delta": DELTA,
            "logprobs": {"content": [{"token": "Hi", "logprob": -0.5}]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"total_tokens": 5},
}


def test_all_members_of_a_chunk() -> None:
    chunk = polymux.ChatChunk(json.dumps(CHUNK).encode())
    assert (chunk.content, chunk.reasoning, chunk.role) == ("Hi", "hm", "assistant")
    assert (chunk.index, chunk.finish_reason) == (2, "tool_calls")
    assert (chunk.id, chunk.model, chunk.created) == ("chatcmpl-1", "m", 1700000000)
    assert chunk.tool_calls[0].function.arguments == "{"
    assert chunk.logprobs.content[0].logprob == -0.5
    assert chunk.usage.total_tokens == chunk.usage["total_tokens"] == 5
    assert chunk.json() == CHUNK
    delta = chunk.choices[0].delta
    assert (delta.content, delta.refusal) == ("Hi", None)
    assert "content" in delta
    with pytest.raises(AttributeError, match="contents"):
        delta.contents  # noqa: B018
    with pytest.raises(AttributeError, match="content"):
        delta.content = "x"


def test_a_bare_chunk_has_nothing() -> None:
    chunk = polymux.ChatChunk(b"{}")
    assert (chunk.content, chunk.reasoning, chunk.role, chunk.finish_reason) == ("", "", None, None)
    assert (chunk.index, chunk.id, chunk.model, chunk.created) == (None, None, None, None)
    assert (chunk.tool_calls, chunk.choices, chunk.logprobs, chunk.usage) == ((), (), None, None)
    with pytest.raises(polymux.DecodeError):
        polymux.ChatChunk(b"[]")


@pytest.mark.parametrize(
    ("role", "reason", "found"),
    [("judge", "model_length", ("judge", "model_length")), ("", "", (None, None))],
)
def test_unknown_reasons_and_roles_keep_their_words(
    role: str, reason: str, found: tuple[str | None, str | None]
) -> None:
    raw = {"choices": [{"delta": {"role": role, "content": "xy"}, "finish_reason": reason}]}
    chunk = polymux.ChatChunk(json.dumps(raw).encode())
    assert (chunk.role, chunk.finish_reason, chunk.content) == (*found, "xy")


def test_the_deepest_chunk_can_be_looked_at() -> None:
    def nested(levels: int) -> bytes:
        return b'{"id":"a","choices":[],"x":' + b"[" * levels + b"]" * levels + b"}"

    chunk = polymux.ChatChunk(nested(199))
    assert (chunk.id, chunk.choices) == ("a", ())
    for levels in (200, 100_000):
        with pytest.raises(polymux.DecodeError):
            polymux.ChatChunk(nested(levels))
