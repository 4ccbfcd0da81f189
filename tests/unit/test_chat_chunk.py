"""Chunks as objects."""

from __future__ import annotations

import copy
import json
import pickle

import polymux
import pytest

CHUNK = {
    "id": "chatcmpl-1",
    "created": 1700000000,
    "model": "m",
    "choices": [
        {
            "index": 2,
            "delta": {
                "role": "assistant",
                "content": "Hi",
                "reasoning_content": "hm",
                "tool_calls": [
                    {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{"}}
                ],
            },
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
    with pytest.raises(AttributeError, match="does not change"):
        delta.content = "x"


def test_a_bare_chunk_has_nothing() -> None:
    chunk = polymux.ChatChunk(b"{}")
    assert (chunk.content, chunk.reasoning, chunk.role, chunk.finish_reason) == ("", "", None, None)
    assert (chunk.index, chunk.id, chunk.model, chunk.created) == (None, None, None, None)
    assert (chunk.tool_calls, chunk.choices, chunk.logprobs, chunk.usage) == ((), (), None, None)
    with pytest.raises(polymux.DecodeError, match="not an object"):
        polymux.ChatChunk(b"[]")


def test_unknown_reasons_and_roles_keep_their_words() -> None:
    raw = b'{"choices":[{"delta":{"role":"judge","content":"xy"},"finish_reason":"model_length"}]}'
    chunk = polymux.ChatChunk(raw)
    assert (chunk.role, chunk.finish_reason, chunk.content) == ("judge", "model_length", "xy")


def test_empty_reasons_and_roles_are_none() -> None:
    raw = b'{"choices":[{"delta":{"role":"","content":"xy"},"finish_reason":""}]}'
    chunk = polymux.ChatChunk(raw)
    assert (chunk.role, chunk.finish_reason, chunk.content) == (None, None, "xy")


def test_the_deepest_chunk_can_be_looked_at() -> None:
    def nested(levels: int) -> bytes:
        return b'{"id":"a","choices":[],"x":' + b"[" * levels + b"]" * levels + b"}"

    chunk = polymux.ChatChunk(nested(199))
    assert (chunk.id, chunk.choices) == ("a", ())
    for levels in (200, 1000, 100_000):
        with pytest.raises(polymux.DecodeError, match="nested too deep"):
            polymux.ChatChunk(nested(levels))


def test_chunks_are_values() -> None:
    chunk = polymux.ChatChunk(json.dumps(CHUNK).encode())
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(chunk, protocol)) == chunk
    assert copy.copy(chunk) == copy.deepcopy(chunk) == chunk
    assert len({chunk, copy.copy(chunk)}) == 1
    assert chunk != polymux.ChatChunk(b"{}")
    assert chunk != "Hi"
    assert repr(chunk) == "ChatChunk('Hi', finish_reason='tool_calls')"
    long = polymux.ChatChunk(json.dumps({"response": "x" * 500}).encode())
    assert repr(long) == "ChatChunk('" + "x" * 40 + "'...)"
    with pytest.raises(AttributeError):
        chunk.content = "other"  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        chunk.new = 1  # type: ignore[attr-defined]
