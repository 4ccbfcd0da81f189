"""What the core makes comes and goes without a trace."""

from __future__ import annotations

import gc
import json
import resource
import tracemalloc
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import contract
from polymux._native import _core
from polymux.client.request import build_request
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGES = [{"role": "user", "content": "naïve 🎵 " * 50, "name": f"n{i}"} for i in range(20)]
CHAT = {"messages": MESSAGES, "model": "m", "tools": [], "x": {"a": [1, 2.5, None, True]}}
BODY = json.dumps(CHAT).encode()


def write_and_clear() -> None:
    buffer = _core.JsonBuffer()
    buffer.write(CHAT)
    view = memoryview(buffer)
    assert len(view) > 1000
    view.release()
    buffer.clear()


def fail_to_write() -> None:
    buffer = _core.JsonBuffer()
    with pytest.raises(polymux.InvalidRequestError):
        buffer.write({"a": [1, {"b": float("nan")}]})


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


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize(
    "use",
    [write_and_clear, fail_to_write, read, fail_to_read, read_form, build, parse_and_decode],
)
def test_a_thousand_times_leave_nothing(use: Callable[[], None]) -> None:
    """N17."""
    for _ in range(100):
        use()
    gc.collect()
    resident = resident_bytes()
    tracemalloc.start()
    use()
    gc.collect()
    traced = tracemalloc.get_traced_memory()[0]
    for _ in range(1000):
        use()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - traced
    tracemalloc.stop()
    assert (
        SANITIZED or grown < 40_000
    )  # One object left behind each time would be 48 bytes at the least.
    assert SANITIZED or resident_bytes() - resident < 8 << 20
