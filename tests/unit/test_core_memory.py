"""Native objects that are created and destroyed many times leave no memory behind."""

from __future__ import annotations

import dataclasses
import enum
import io
import json
from types import MappingProxyType
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import contract
from polymux._native import _core
from polymux.client.multipart import multipart_body
from polymux.client.request import build_request
from support.memory import leaves_nothing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MESSAGES = [{"role": "user", "content": "naïve 🎵 " * 10, "name": f"n{i}"} for i in range(5)]
CHAT = {"messages": MESSAGES, "model": "m", "tools": [], "x": {"a": [1, 2.5, None, True]}}
BODY = json.dumps(CHAT).encode()


class Colour(enum.Enum):
    DEEP = {"shade": ["dark"]}  # noqa: RUF012


@dataclasses.dataclass
class Message:
    role: str


def write_and_clear() -> None:
    buffer = _core.JsonBuffer()
    buffer.write([MappingProxyType({"a": "é"}), 2**80, Message("user"), Colour.DEEP])
    buffer.write(CHAT)
    view = memoryview(buffer)
    assert len(view) > 500
    view.release()
    buffer.clear()


def fail_to_write() -> None:
    for bad in ({"a": [1, {"b": float("nan")}]}, [object()], {"a": {1: 2}}, ["\ud800"]):
        with pytest.raises((polymux.InvalidRequestError, TypeError)):
            _core.JsonBuffer().write(bad)


def read() -> None:
    assert contract.read_json("chat", BODY).values["model"] == "m"


def fail_to_read() -> None:
    for body in (BODY[:-1], BODY.replace(b'"user"', b'"nobody"'), b'{"a":' * 300):
        with pytest.raises(polymux.InvalidRequestError):
            contract.read_json("chat", body)


def read_form() -> None:
    fields = [("prompt", "x" * 100), ("fps", "12"), ("image", object())]
    contract.read_form("generate_video", fields)


def build() -> None:
    build_request("chat", CHAT, extra_body={"more": ["x" * 100]})
    build_request("transcribe", {"audio": b"x" * 1000, "task": "translate"})


def parse_and_decode() -> None:
    _core.parse_json(BODY)
    chunk = polymux.ChatChunk(b'{"id":"a","choices":[{"index":0,"delta":{"content":"Hi"}}]}')
    assert chunk.choices[0].delta.content == "Hi"
    assert chunk.json()["id"] == "a"


@pytest.mark.parametrize(
    "use",
    [write_and_clear, fail_to_write, read, fail_to_read, read_form, build, parse_and_decode],
)
def test_many_times_leave_nothing(use: Callable[[], None]) -> None:
    leaves_nothing(use)


def test_bodies_come_and_go_without_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 100_000)

    def use() -> None:
        body = multipart_body(
            [("a", "b")], [("p", path), ("f", io.BytesIO(b"y" * 1000)), ("g", iter([b"z"]))]
        )
        for _ in body:
            pass
        half = multipart_body([], [("p", path), ("g", iter([b"z"] * 10))])
        half.read(10)

    leaves_nothing(use)
