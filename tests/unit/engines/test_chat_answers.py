"""A conversation's pieces as the library gives them, and as they are handed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.engines.base import EngineSink, Request, Token
from polymux.engines.chat_answers import Conversation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Chunks(EngineSink):
    """Keeps them."""

    def __init__(self) -> None:
        self.all: list[Mapping[str, Any]] = []

    def log(self, line: str) -> None:
        raise AssertionError(line)

    def report(self, progress: float) -> None:
        raise AssertionError(progress)

    def chunk(self, data: Mapping[str, Any]) -> None:
        self.all.append(data)

    def draft(self, expected_bytes: int = 0) -> Path:
        raise AssertionError(expected_bytes)


def test_an_answer_has_one_id_and_one_time() -> None:
    """The library gives each piece the time at which it was made, and each turn an id."""
    sink = Chunks()
    values = {"stream": True, "stream_options": {"include_usage": True}}
    conversation = Conversation(Request("chat", "", "m", values, frozenset()), sink, Token(), "m")
    for turn in range(2):
        conversation.first = turn
        for at, delta, reason in ((0, {"role": "assistant", "content": None}, None),
                                  (1, {"content": "a"}, None), (2, {}, "stop")):  # fmt: skip
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            piece = {"id": f"c{turn}", "created": 1000 + 10 * turn + at, "choices": [choice]}
            assert not conversation.take(piece)
    conversation.finished()
    assert [one["choices"] == [] for one in sink.all] == [False] * 6 + [True]
    assert {(one["id"], one["created"]) for one in sink.all} == {("c0", 1000)}
