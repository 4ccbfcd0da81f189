"""Engines in their processes: every way to fail, to hang, to be cancelled and to be ended."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from polymux.engines.process import framing
from polymux.errors import (
    InternalServerError,
    OverloadedError,
    RequestTooLargeError,
    UnprocessableEntityError,
)
from polymux.service.model import OperationRequest, ProgressSink
from support.services import work_of
from support.supervised import QUICK, TESTS, alive, asked, engine, go, until

if TYPE_CHECKING:
    from polymux.service.service import Service

NOT_LOADED = "it could not be loaded: the log says why"


def test_work_is_done_in_one_process_again_and_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            assert backend.health().state == "idle"
            first = await service.call(asked("echo one"))
            second = await service.call(asked("echo two"))
            assert (first.output["text"], second.output["text"]) == ("one", "two")
            assert first.output["pid"] == second.output["pid"] != os.getpid()
            assert (first.version, first.metrics) == ("v1", {"n": 1})
            assert backend.health().state == "ready"
            pid = first.output["pid"]
            assert backend.process is not None
            await until(lambda: backend.process.memory_bytes > 1_000_000)
        assert not alive(pid)

    go(body())


def test_streams_come_piece_by_piece_and_are_cancelled(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            pieces = [one["n"] async for one in service.stream(asked("stream 500", stream=True))]
            assert pieces == list(range(500))
            stream = service.stream(asked("endless", stream=True))
            assert (await anext(stream))["n"] == 0
            began = time.monotonic()
            await stream.aclose()
            assert time.monotonic() - began < 0.2
            assert service.places["faulty"].running == 0
            pid = backend.process and backend.process.pid
            again = await service.call(asked("echo still there"))
            assert again.output["pid"] == pid

    go(body())


def test_work_that_does_not_stop_is_ended_with_its_process(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            stream = service.stream(asked("deaf 60", stream=True))
            await anext(stream)
            process = backend.process
            assert process is not None
            began = time.monotonic()
            await stream.aclose()
            took = time.monotonic() - began
            assert 0.25 < took < 2
            assert not alive(process.pid or 0)
            again = await service.call(asked("echo anew"))
            assert again.output["pid"] != process.pid
            assert backend.health().state == "ready"  # That was no crash.

    go(body())


def test_cancelling_one_leaves_the_other_alone(tmp_path: Path) -> None:
    """Two at work in one process: the one that does not stop is waited for, not killed."""

    async def body() -> None:
        async with engine(tmp_path, max_concurrency=2) as (service, backend):
            deaf = service.stream(asked("deaf 0.8", stream=True))
            await anext(deaf)
            process = backend.process
            other = asyncio.create_task(_count(service, asked("endless", stream=True), 200))
            await asyncio.sleep(0.1)
            await deaf.aclose()
            assert await other == 200
            assert backend.process is process

    async def _count(service: Service, work: OperationRequest, most: int) -> int:
        seen = 0
        async with aclosing(service.stream(work)) as stream:
            async for _ in stream:
                seen += 1
                if seen == most:
                    break
        return seen

    go(body())


@pytest.mark.parametrize("fault", ["crash", "exit 3", "exit 0", "garbage ffffffffffffffff"])
def test_a_process_that_goes_is_tried_once_more(tmp_path: Path, fault: str) -> None:
    """Nothing was delivered, so it is tried again; then it is the engine's failure."""

    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            with pytest.raises(InternalServerError) as failed:
                await service.call(asked(fault))
            assert (failed.value.status, failed.value.code) == (500, "engine_failed")
            again = await service.call(asked("echo back"))
            assert again.output["text"] == "back"
            assert backend.health().state == "ready"

    go(body())


def test_one_crash_is_not_noticed_by_the_caller(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path, once=str(tmp_path / "mark")) as (service, _):
            assert (await service.call(asked("echo x"))).output["text"] == "x"

    go(body())


def test_a_crash_within_a_stream_is_an_error_at_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, _):
            stream = service.stream(asked("crash late", stream=True))
            assert await anext(stream) == {"begun": True}
            with pytest.raises(InternalServerError):
                await anext(stream)

    go(body())


def test_after_three_crashes_it_is_left_alone(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            for _ in range(2):
                with pytest.raises((InternalServerError, OverloadedError)):
                    await service.call(asked("crash"))
            with pytest.raises(OverloadedError) as refused:
                await service.call(asked("echo x"))
            assert refused.value.code == "engine_broken"
            assert 200 < int(refused.value.headers["retry-after"]) <= 300
            assert backend.health().state == "failed"

    go(body())


def test_a_process_that_gives_no_sign_of_life_is_ended(tmp_path: Path) -> None:
    async def body() -> None:
        how = QUICK._replace(silence_s=2.5)
        async with engine(tmp_path, how) as (service, _):
            began = time.monotonic()
            stream = service.stream(asked("freeze", stream=True))
            with pytest.raises(InternalServerError):
                await asyncio.wait_for(anext(stream), 20)
            assert time.monotonic() - began < 15

    go(body())


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        ("raise", UnprocessableEntityError, "undecodable"),
        ("crash", InternalServerError, "engine_failed"),
        ("defect", InternalServerError, "engine_failed"),
    ],
)
def test_an_engine_that_cannot_be_loaded(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    fault: str,
    kind: type[Exception],
    code: str,
) -> None:
    async def body() -> None:
        async with engine(tmp_path, load=fault) as (service, backend):
            with pytest.raises(kind) as failed:
                await service.call(asked("echo x"))
            assert failed.value.code == code  # type: ignore[attr-defined]
            assert "canary" not in str(failed.value)
            health = backend.health()
            assert (health.state, health.detail) == ("failed", NOT_LOADED)
            assert f"the engine faulty could not be loaded: {failed.value}" in caplog.messages
            assert service.places["faulty"].running == 0

    go(body())


def test_loading_has_a_deadline_and_can_be_cancelled(tmp_path: Path) -> None:
    async def body() -> None:
        how = QUICK._replace(load_s=1.5)
        async with engine(tmp_path, how, load="slow") as (service, backend):
            with pytest.raises(InternalServerError, match=r"not loaded within 2 s"):
                await service.call(asked("echo x"))
        async with engine(tmp_path, load="slow") as (service, backend):
            task = asyncio.create_task(service.call(asked("echo x")))
            await until(lambda: backend.health().state == "loading")
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert service.places["faulty"].running == 0

    go(body())


#: As a program whose main coroutine fails: all tasks are cancelled, those of the engine with them.
ENDED_LOOP = """
import asyncio, sys
from pathlib import Path
from polymux.engines.process.supervisor import EngineBackend, Supervision
from support.engines import FAMILY
from support.services import running
from support.supervised import asked

async def main():
    how = Supervision(threads=1, load_s=20)
    options = {"load": "slow"} if sys.argv[2] == "loading" else {}
    backend = EngineBackend("faulty", FAMILY, ["chat"], options, supervision=how)
    service = running(Path(sys.argv[1]), backend)
    call = asyncio.create_task((await service.__aenter__()).call(asked("endless")))
    while backend.health().state != sys.argv[2]:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    raise SystemExit(7)

asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["loading", "ready"])
def test_an_event_loop_that_ends_is_not_held_up(when: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDED_LOOP, tmp_path / "s", when], capture_output=True, text=True,
        check=False, timeout=60, env={**os.environ, "PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert done.returncode == 7, done.stderr


@pytest.mark.parametrize(
    ("fault", "code"), [("broken", "undecodable"), ("defect", "engine_failed")]
)
def test_errors_come_back_as_what_they_are(tmp_path: Path, fault: str, code: str) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, _):
            with pytest.raises((UnprocessableEntityError, InternalServerError)) as failed:
                await service.call(asked(f"raise {fault}"))
            assert failed.value.code == code
            assert "canary" not in str(failed.value)
            assert (await service.call(asked("echo x"))).output["text"] == "x"

    go(body())


def test_files_are_written_to_drafts_and_kept(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, _):
            # The job's own fields do not matter to this engine, but its message does.
            work = work_of(fields=[("url", "http://files.example/a")])
            values = {**work.values, "messages": [{"role": "user", "content": "file 1000"}]}
            object.__setattr__(work, "values", values)
            job = await service.jobs.wait((await service.submit(work))[0])
            assert job.status == "succeeded", job.error
            file = service.store.media.find(job.output["response"]["file"])
            assert file is not None
            assert file.size_bytes == 1000
            values["messages"] = [{"role": "user", "content": "file 2000000"}]
            job = await service.jobs.wait((await service.submit(work))[0])
            assert job.error is not None
            assert job.error["code"] == "storage_full"

    go(body())


def test_a_path_that_is_not_its_own_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, _):
            with pytest.raises(InternalServerError, match="not its own"):
                await service.call(asked("steal /etc/passwd"))

    go(body())


def test_memory_is_free_when_it_is_unloaded(tmp_path: Path) -> None:
    async def body() -> None:
        how = QUICK._replace(idle_s=1.0)
        async with engine(tmp_path, how) as (service, backend):
            await service.call(asked("grow 100000000"))
            process = backend.process
            assert process is not None
            pid = process.pid
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            assert pages * 4096 > 100_000_000
            took = await until(lambda: not alive(pid or 0))
            assert took < 2.0
            await until(lambda: backend.health().state == "idle")
            assert (await service.call(asked("echo x"))).output["pid"] != pid

    go(body())


def test_who_is_gone_before_work_has_begun_leaves_no_process_for_ever(tmp_path: Path) -> None:
    """It was started for a request that was cancelled while it was being sent."""

    async def body() -> None:
        async with engine(tmp_path, QUICK._replace(idle_s=0.3)) as (_, backend):
            values = {"messages": [{"role": "user", "content": "echo " + "x" * 30_000_000}]}
            work = OperationRequest("chat", "", "", values, frozenset())
            call = asyncio.create_task(backend.run(work, ProgressSink(lambda: None, None)))
            while backend.process is None or not backend.process.busy:
                await asyncio.sleep(0)  # No longer: it is not sent yet.
            pid = backend.process.pid or 0
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: not alive(pid), 5)

    go(body())


def test_what_is_too_large_to_be_sent_leaves_no_process_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framing, "MAX_HEADER_BYTES", 10_000)

    async def body() -> None:
        async with engine(tmp_path, QUICK._replace(idle_s=0.3)) as (service, backend):
            with pytest.raises(RequestTooLargeError):
                await service.call(asked("echo " + "x" * 20_000))
            process = backend.process
            assert process is not None
            await until(lambda: not alive(process.pid or 0), 5)

    go(body())


def test_unloading_waits_for_work(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            stream = service.stream(asked("endless", stream=True))
            await anext(stream)
            assert not await backend.unload()
            await stream.aclose()
            assert await backend.unload()
            assert await backend.unload()

    go(body())


def test_nothing_is_left_of_what_an_engine_started(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            grandchild = (await service.call(asked("spawn"))).output["pid"]
            assert alive(grandchild)
            assert backend.process is not None
            backend.process.kill()
            await until(lambda: not alive(grandchild))

    go(body())
