"""Work that nobody waits for and that does not stop: its process ends, and costs others little."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.engines.media.engine import DECODE_AUDIO, MEASURE_SOUND
from polymux.engines.process.supervisor import EngineBackend
from polymux.service.model import OperationRequest, ProgressSink, Upload
from polymux.service.store import Store
from support.conversions import wav
from support.supervised import QUICK, asked, in_loop, served, until

if TYPE_CHECKING:
    from asyncio import Task
    from pathlib import Path

    from polymux.service.service import Service


def begun(backend: EngineBackend, said: str, sink: ProgressSink | None = None) -> Task[Any]:
    sink = sink or ProgressSink(lambda: None, None)
    return asyncio.create_task(backend.run(asked(said), sink))


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
    assert 0.25 < time.monotonic() - began < 2
    assert service.places["faulty"].running == 0
    assert (await service.call(asked("echo x"))).output["pid"] != pid
    assert backend.health().state == "ready"  # That was no crash.


@served()
async def test_what_waits_in_the_process_does_not_keep_it(backend: EngineBackend) -> None:
    """It was not begun, so that the next process does it."""
    deaf = begun(backend, "deaf 30")
    await until(lambda: backend.process is not None and backend.process.told_at)
    waiting = begun(backend, "echo x")
    await asyncio.sleep(0.1)
    await leave(deaf, 2)
    assert (await waiting).output["text"] == "x"


def test_others_are_not_kept_by_a_process_that_is_mute(tmp_path: Path) -> None:
    """What does not stop holds up everybody: another process does what they wait for."""
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
        assert 1.4 < time.monotonic() - began < 6
        assert backend.process is not process
        assert (await other).output["text"] == "done"

    test(tmp_path)


@served(QUICK._replace(cancel_timeout_s=4.0), max_concurrency=2)
async def test_asking_for_a_file_is_told_of_the_end(
    service: Service, backend: EngineBackend
) -> None:
    """It waited a minute for an answer that nobody gave, and then its process was ended."""
    pid = (await service.call(asked("echo x"))).output["pid"]
    for others in (False, True):
        other = begun(backend, "tell 0.1 25") if others else None
        sink = ProgressSink(lambda: None, None)
        late = begun(backend, "late 0.5", sink)
        await until(lambda sink=sink: sink.progress == 0.1)
        await leave(late, 3)
        assert other is None or (await other).output["text"] == "done"
        assert (await service.call(asked("echo x"))).output["pid"] == pid


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hours of sound, which take many seconds to decode: frames of MP3 one after another."""
    made = polymux.convert_to_mp3(wav(60), bitrate="32k", channels=1, tags="none").read()
    path = tmp_path_factory.mktemp("hours") / "hours.mp3"
    path.write_bytes(made * 240)
    return path


@in_loop
async def test_a_decoding_stops_though_others_wait(tmp_path: Path, hours: Path) -> None:
    """By itself: its process goes on with what waits in it."""

    def asked_for(operation: str) -> OperationRequest:
        file = Upload(hours, "hours.mp3", "", hours.stat().st_size)
        return OperationRequest(operation, "", "", {"file": file}, frozenset())

    store = Store(tmp_path / "s")
    media = EngineBackend("media", "media", ["convert_to_mp3"], supervision=QUICK)
    sink = ProgressSink(lambda: None, store.media.draft)
    await media._ready()
    process = media.process
    decoding = asyncio.create_task(media.run(asked_for(DECODE_AUDIO), sink))
    await asyncio.sleep(0.5)
    waiting = asyncio.create_task(media.run(asked_for(MEASURE_SOUND), sink))
    await asyncio.sleep(0.1)
    assert not decoding.done()
    await leave(decoding, QUICK.cancel_timeout_s)
    assert (await waiting).output["duration_s"] > 4 * 3600 - 60
    assert media.process is process
    await media.close()
    store.close()
