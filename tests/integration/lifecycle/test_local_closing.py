"""Closing `Local` and `AsyncLocal` while calls run: nobody waits for ever, and nothing is left."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.engines.process.supervisor import EngineBackend
from polymux.errors import OperationCancelledError
from polymux.runtime.settings import EngineSettings
from support.engines import FAMILY
from support.served import until
from support.services import Scripted
from support.supervised import QUICK, alive

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}


def held(max_concurrency: int = 4) -> Scripted:
    """A backend that comes to no end."""
    made: Any = Scripted(max_concurrency=max_concurrency)
    made.gate = asyncio.Event()
    made.chunks = [CHUNK]
    return made


class Caller(threading.Thread):
    """A call in a thread of its own, and how it ended."""

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
        assert "closed" in str(self.error)


def test_callers_in_other_threads_are_told() -> None:
    """At work, in the queue, in a job, and in the midst of a stream."""
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


def test_threads_that_call_while_it_is_closed() -> None:
    """Each call has a result or an error, whatever the moment."""
    local = polymux.Local(backends=[Scripted(max_concurrency=8)])
    over = threading.Event()

    def call_on() -> None:
        while not over.is_set():
            try:
                assert local.read_text(b"x").text == "read"
            except polymux.PolymuxError as error:
                assert "closed" in str(error) or "stopping" in str(error), error  # noqa: PT017

    callers = [Caller(call_on) for _ in range(4)]
    for _ in range(8):
        time.sleep(0.02)
        local.close()
    over.set()
    for one in callers:
        one.join(5)
        assert not one.is_alive()
        assert one.error is None, one.error
    local.close()


def test_asynchronous_calls_are_told() -> None:
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


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class SlowToClose(Scripted):
    """Its end takes until `goes_on`, and fails where it is told to."""

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
    """It waits until the folder is free, and opens it again."""
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
        with suppress(OperationCancelledError):  # It was opened for it just before, maybe.
            await call
        assert (await local.read_text(b"x")).text == "read"
        await local.aclose()
        await polymux.AsyncLocal(tmp_path / "kept", backends=[Scripted()]).read_text(b"x")

    asyncio.run(main())


@pytest.mark.parametrize("why", ["the loop ends", "a backend fails"])
def test_closing_that_comes_to_no_good_end_gives_up_the_folder(tmp_path: Path, why: str) -> None:
    backend = SlowToClose(ValueError("it does not close"))
    local = polymux.AsyncLocal(tmp_path / "kept", backends=[backend])

    async def main() -> None:
        await local.read_text(b"x")
        if why == "the loop ends":
            closing = asyncio.create_task(local.aclose())
            await asyncio.sleep(0.05)
            closing.cancel()
            return
        backend.goes_on.set()
        with pytest.raises(ValueError, match="it does not close"):
            await local.aclose()
        await local.aclose()

    async def again() -> None:
        backend.goes_on.set()
        backend.error = None
        assert (await local.read_text(b"x")).text == "read"
        await local.aclose()

    asyncio.run(main())
    asyncio.run(again())


def test_what_cannot_be_opened_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the folder's lock nor descriptors, nor a folder of its own."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    wrong = {"diffusion": EngineSettings("diffusion", {"models": {"nope": "x"}})}
    folder = tmp_path / "kept"

    def tried(folder: Path | None) -> str:
        local = polymux.Local(folder, engines=wrong)
        with pytest.raises(polymux.PolymuxError) as caught:
            local.read_text(b"x")
        local.close()
        return str(caught.value)

    first = tried(folder)
    assert "nope" in first
    count = descriptors()
    for _ in range(5):
        assert tried(folder) == first
        assert tried(None) == first
    assert descriptors() <= count
    assert list(temporary.iterdir()) == []
    with polymux.Local(folder, backends=[Scripted()]) as local:
        assert local.read_text(b"x").text == "read"
