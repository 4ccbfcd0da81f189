"""Abandoned work that does not stop: its process is killed with little effect on other requests."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.service.model import ProgressSink
from support.conversions import wav
from support.supervised_engine import QUICK, asked, served, until

if TYPE_CHECKING:
    from asyncio import Task
    from pathlib import Path

    from polymux.engines.process.supervisor import EngineBackend
    from polymux.service.service import Service


def begun(backend: EngineBackend, text: str, sink: ProgressSink | None = None) -> Task[Any]:
    sink = sink or ProgressSink(lambda: None, None)
    return asyncio.create_task(backend.run(asked(text), sink))


async def leave(task: Task[Any], within_s: float) -> None:
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < within_s


@served(max_concurrency=2)
async def test_two_that_do_not_stop_end_at_once(service: Service, backend: EngineBackend) -> None:
    deaf = [service.stream(asked("deaf 30", stream=True)) for _ in range(2)]
    for one in deaf:
        await anext(one)
    pid = backend.process and backend.process.pid
    began = time.monotonic()
    await asyncio.gather(*(one.aclose() for one in deaf))
    assert 0.25 < time.monotonic() - began < 15
    assert service.places["faulty"].running == 0
    assert (await service.call(asked("echo x"))).output["pid"] != pid
    assert backend.health().state == "ready"  # The kill does not count as a crash.


@served()
async def test_what_waits_in_the_process_does_not_keep_it(backend: EngineBackend) -> None:
    """The process has not started the waiting request, so the next process runs it."""
    deaf = begun(backend, "deaf 30")
    await until(lambda: backend.process is not None and backend.process.last_reply_at)
    waiting = begun(backend, "echo x")
    await asyncio.sleep(0.1)
    await leave(deaf, 10)
    assert (await waiting).output["text"] == "x"


def test_others_are_not_kept_by_a_process_that_is_mute(tmp_path: Path) -> None:
    """A process that stops responding blocks its other requests, so another process runs them."""
    mark = tmp_path / "mark"

    @served(QUICK._replace(silence_s=1.5), max_concurrency=2)
    async def test(service: Service, backend: EngineBackend) -> None:
        deaf = service.stream(asked("deaf 30", stream=True))
        await anext(deaf)
        process = backend.process
        other = asyncio.create_task(service.call(asked(f"second {mark}")))
        await until(mark.exists)
        began = time.monotonic()
        await deaf.aclose()
        assert 1.4 < time.monotonic() - began < 15
        assert backend.process is not process
        assert (await other).output["text"] == "done"

    test(tmp_path)


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hours of audio, which take many seconds to decode: one MP3 frame repeated."""
    made = polymux.convert_to_mp3(wav(60), bitrate="32k", channels=1, tags="none").read()
    path = tmp_path_factory.mktemp("hours") / "hours.mp3"
    path.write_bytes(made * 240)
    return path
