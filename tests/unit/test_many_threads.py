"""Objects without a server, used by many threads at once: correct values or errors, no crash.

`integration/client/test_shared_objects.py` has the tests with a server.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import sysconfig
import threading
from typing import Any

import polymux
from polymux import errors
from polymux._native import _core
from support.many_threads import THREADS, at_once

DONE = b"data: [DONE]\n\n"


def test_the_interpreter_does_without_its_lock() -> None:
    code = (
        "import sys, polymux._native._core, polymux._native._media;"
        "print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    )
    usual = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=True, env=usual, timeout=120,
    ).stdout  # fmt: skip
    assert found.strip() == str(not sysconfig.get_config_var("Py_GIL_DISABLED"))


def test_the_parts_of_an_answer() -> None:
    """Parts are created on first access, and all threads get the same objects."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice] * 50, "usage": {"total_tokens": 5}}).encode()
    answers = [polymux.ChatCompletion.decode(body) for _ in range(300)]
    parts = at_once(lambda _: [(one.usage, one.choices, one.choices[7].message) for one in answers])
    for made in zip(*parts, strict=True):
        for part in zip(*made, strict=True):
            assert len({id(one) for one in part}) == 1


def test_one_json_buffer() -> None:
    """Every read sees one complete text."""
    buffer = _core.JsonBuffer()
    texts = {json.dumps([number] * 500).replace(" ", "") for number in range(THREADS)} | {""}

    def work(thread: int) -> None:
        for _ in range(200):
            with contextlib.suppress(BufferError):
                if thread % 2:
                    buffer.write([thread] * 500)
                assert len(buffer) in {len(text) for text in texts}
                with memoryview(buffer) as view:
                    assert bytes(view).decode() in texts
                if thread == 3:
                    buffer.clear()

    at_once(work)


def test_values_that_change_while_they_are_written() -> None:
    """The writer returns JSON or raises; it never uses a removed name or item."""
    names = [f"name {number}" for number in range(40)]
    value: dict[str, Any] = {"list": [[] for _ in names], "dict": dict.fromkeys(names, 1.5)}
    shape = ({"list": 16, "dict": 8}, ("list",), {})
    over = threading.Event()

    def work(thread: int) -> None:
        if thread < 2:
            while not over.is_set():
                for name in names:
                    value["dict"].pop(name, None)
                    value["list"][-1:] = []
                for name in names:
                    value["dict"][name] = {name + str(thread): [name]}
                    value["list"].append([name])
            return
        try:
            for _ in range(150):
                with contextlib.suppress(errors.InvalidRequestError):
                    _core.write_json(value)
                assert _core.fits(value, shape)
                assert set(_core.present(value["dict"])) <= set(names)
                with contextlib.suppress(errors.InvalidRequestError):
                    _core.check("chat", "B", {"messages": value["list"]})
        finally:
            if thread == 2:
                over.set()

    at_once(work)
