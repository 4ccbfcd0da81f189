"""Callbacks of `Local` and `AsyncLocal`: their threads, exceptions and reentrant calls."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.hostile_check import PATIENCE
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_S = 20 * PATIENCE


def within(call: Callable[[], Any]) -> Any:
    """Return or raise a call's outcome from a daemon thread, which a hanging call cannot block."""
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(MAX_S)


class Raising:
    """A file object and a callback, both of which raise."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def read(self, size: int) -> bytes:
        del size
        raise self._error

    def __call__(self, _: object) -> None:
        raise self._error


class Bound(Scripted):
    def bind(self, service: Any) -> None:
        self.service = service


ERRORS = [
    SystemExit("enough"),
    asyncio.CancelledError("enough"),
    TimeoutError("enough"),
    ValueError("enough"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("where", ["on_progress", "read"])
def test_what_they_raise_comes_out_unchanged(error: BaseException, where: str) -> None:
    """The exception also stops the work and removes all data."""
    backend = Bound(max_concurrency=4)
    local = polymux.Local(backends=[backend])
    backend.gate = asyncio.Event()
    raising: Any = Raising(error)
    given = {"on_progress": raising} if where == "on_progress" else {}
    for _ in range(2):
        with pytest.raises(type(error), match="enough") as caught:
            within(lambda: local.convert_to_mp3(b"x" if given else raising, **given))
        assert caught.value is error
    assert (backend.service.jobs.count, backend.service.store.media.used_bytes) == (0, 0)
    # Other calls still work.
    backend.gate.set()
    assert within(lambda: local.read_text(b"x").text) == "read"
    within(local.close)


def test_a_callback_may_call_and_close() -> None:
    """Callbacks run in the thread that made the call."""
    local = polymux.Local(backends=[Scripted(max_concurrency=4)])
    seen: list[str] = []
    threads: list[int] = []

    def call_too(_: object) -> None:
        threads.append(threading.get_ident())
        seen.append(local.read_text(b"x").text)

    made = local.convert_to_mp3(b"x", on_progress=call_too)
    assert made.content_type == "audio/mpeg"
    assert set(seen) == {"read"}
    assert set(threads) == {threading.get_ident()}

    def close(_: object) -> None:
        local.close()
        # Opens a new session.
        seen.append(local.read_text(b"x").text)

    seen.clear()
    with pytest.raises(polymux.OperationCancelledError):
        within(lambda: local.convert_to_mp3(b"x", on_progress=close))
    assert seen == ["read"]
    within(local.close)


def test_asynchronous_callbacks_are_awaited() -> None:
    async def main() -> None:
        async with polymux.AsyncLocal(backends=[Scripted(max_concurrency=4)]) as local:
            seen: list[str] = []

            async def tell(one: Any) -> None:
                await asyncio.sleep(0)
                assert (await local.read_text(b"x")).text == "read"
                seen.append(one.status)

            await local.convert_to_mp3(b"x", on_progress=tell)
            assert seen[-1] == "succeeded"

            async def fail(_: object) -> None:
                await asyncio.sleep(0)
                raise TimeoutError("enough")

            with pytest.raises(TimeoutError, match="enough") as caught:
                await local.convert_to_mp3(b"x", on_progress=fail, timeout=60)
            assert not isinstance(caught.value, polymux.PolymuxError)

            async def wait(_: object) -> None:
                await asyncio.sleep(60)

            with pytest.raises(polymux.RequestTimeoutError):
                await local.convert_to_mp3(b"x", on_progress=wait, timeout=0.3)

            async def close(_: object) -> None:
                await local.aclose()

            with pytest.raises(polymux.OperationCancelledError):
                await asyncio.wait_for(local.convert_to_mp3(b"x", on_progress=close), MAX_S)

    asyncio.run(main())


INTERRUPTED = """
import asyncio, time
import polymux
from support.services import Scripted
backend = Scripted()
backend.gate = asyncio.Event()
def tell(one):
    print(one.status, flush=True)
def blocks(*_):
    print("reads", flush=True)
    time.sleep(3600)
    yield b"x"
with polymux.Local(backends=[backend]) as local:
    try:
        %s
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""
CALLS = {
    "at work": ("local.convert_to_mp3(b'x', on_progress=tell)", "processing"),
    "reading": ("local.convert_to_mp3(blocks())", "reads"),
    "in a callback": (
        "local.convert_to_mp3(b'x', on_progress=lambda _: next(blocks()))",
        "reads",
    ),
}


@pytest.mark.parametrize("what", CALLS)
def test_control_c(what: str) -> None:
    call, begun = CALLS[what]
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED % call], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    with program:
        assert program.stdout is not None
        try:
            while program.stdout.readline().strip() != begun:
                assert program.poll() is None
            began = time.monotonic()
            program.send_signal(signal.SIGINT)
            while (line := program.stdout.readline().strip()) != "interrupted":
                assert line == "processing"
            assert time.monotonic() - began < 10 * PATIENCE
            # Program exit does not wait for threads that read.
            assert program.wait(MAX_S) == 0
        finally:
            program.kill()
