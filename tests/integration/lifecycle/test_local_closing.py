"""Closing `Local` and `AsyncLocal` during calls: every call ends and nothing remains."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.engines.process.supervisor import EngineBackend
from polymux.errors import OperationCancelledError
from support.faulty_engine import FAMILY
from support.server_process import until
from support.services import Scripted
from support.supervised_engine import QUICK, alive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHUNK = {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}


def held(max_concurrency: int = 4) -> Scripted:
    """A backend that never finishes."""
    made: Any = Scripted(max_concurrency=max_concurrency)
    made.gate = asyncio.Event()
    made.chunks = [CHUNK]
    return made


class Caller(threading.Thread):
    """A call in its own thread, and its outcome."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self.error = error

    def check_ended(self) -> None:
        self.join(30)
        assert not self.is_alive()
        assert isinstance(self.error, OperationCancelledError)


def test_close_ends_calls_of_other_threads() -> None:
    """Running, queued, in a job, and in the middle of a stream."""
    backend = held(max_concurrency=3)
    local = polymux.Local(backends=[backend])
    callers = [
        Caller(lambda: local.chat("Hi")),
        Caller(lambda: local.convert_to_mp3(b"x")),
        Caller(lambda: list(local.chat("Hi", stream=True))),
    ]
    until(lambda: len(backend.began) == 3)
    callers.append(Caller(lambda: local.chat("Behind")))
    time.sleep(0.2)
    local.close()
    for one in callers:
        one.check_ended()
    assert len(backend.began) == 3


@pytest.mark.parametrize(("load", "what"), [("", "deaf 30"), ("silent", "echo x")])
def test_processes_at_work_and_in_the_making_are_ended(load: str, what: str) -> None:
    engine = EngineBackend("faulty", FAMILY, ["chat"], {"load": load}, supervision=QUICK)
    local = polymux.Local(backends=[engine])
    caller = Caller(lambda: local.chat(what))
    until(lambda: engine.loading and engine.loading.pid)
    process = engine.loading
    assert process is not None
    if not load:
        until(lambda: process.busy)
        time.sleep(0.2)
    local.close()
    caller.check_ended()
    assert not alive(process.pid or 0)
    assert engine.process is None


def test_close_ends_asynchronous_calls() -> None:
    async def main() -> None:
        backend = held()
        local = polymux.AsyncLocal(backends=[backend])
        calls = [
            asyncio.create_task(local.chat("Hi")),
            asyncio.create_task(local.convert_to_mp3(b"x")),
        ]
        stream = await local.chat("Hi", stream=True)
        assert (await anext(stream)).content == "Hello"
        reading = asyncio.create_task(anext(stream))
        idle = await local.chat("Hi", stream=True)
        await anext(idle)
        while len(backend.began) < 4:
            await asyncio.sleep(0.01)
        await asyncio.wait_for(local.aclose(), 10)
        for one in [*calls, reading]:
            assert one.done()
            assert isinstance(one.exception(), OperationCancelledError)
            assert one.cancelling() == 0
        with pytest.raises(OperationCancelledError):
            await anext(idle)
        assert sorted(backend.ended) == ["cancelled"] * 2 + ["closed"] * 2
        await local.aclose()

    asyncio.run(main())


class SlowToClose(Scripted):
    """Closing it blocks until `goes_on` is set, and can fail."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(max_concurrency=4)
        self.closes, self.goes_on = threading.Event(), threading.Event()
        self.error = error

    async def close(self) -> None:
        self.closes.set()
        while not self.goes_on.is_set():
            await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error


def test_a_call_while_another_thread_closes(tmp_path: Path) -> None:
    """The call waits until the folder is free, then opens it again."""
    backend = SlowToClose()
    local = polymux.Local(tmp_path / "kept", backends=[backend])
    assert local.read_text(b"x").text == "read"
    made: list[str] = []
    closers = [Caller(local.close), Caller(local.close)]
    assert backend.closes.wait(10)
    caller = Caller(lambda: made.append(local.read_text(b"x").text))
    time.sleep(0.2)
    assert made == []
    assert all(one.is_alive() for one in (*closers, caller))
    backend.goes_on.set()
    for one in (*closers, caller):
        one.join(10)
        assert not one.is_alive()
        assert one.error is None, one.error
    assert made == ["read"]
    local.close()


def test_closing_that_is_cancelled_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        backend = SlowToClose()
        local = polymux.AsyncLocal(tmp_path / "kept", backends=[backend])
        await local.read_text(b"x")
        for _ in range(2):
            closing = asyncio.create_task(local.aclose())
            await asyncio.sleep(0.05)
            assert closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
        call = asyncio.create_task(local.read_text(b"x"))
        closing = asyncio.create_task(local.aclose())
        await asyncio.sleep(0.1)
        assert not call.done()
        assert not closing.done()
        backend.goes_on.set()
        await closing
        with suppress(OperationCancelledError):  # The call may have opened it just before.
            await call
        assert (await local.read_text(b"x")).text == "read"
        await local.aclose()
        await polymux.AsyncLocal(tmp_path / "kept", backends=[Scripted()]).read_text(b"x")

    asyncio.run(main())
