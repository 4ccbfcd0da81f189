"""Engine processes: failures, hangs, cancellation and shutdown."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from polymux.engines.process import framing
from polymux.errors import (
    APIStatusError,
    InternalServerError,
    RequestTooLargeError,
    UnprocessableEntityError,
)
from polymux.service.model import OperationRequest, ProgressSink
from support.supervised_engine import QUICK, alive, asked, engine, in_loop, served, until

if TYPE_CHECKING:
    from polymux.engines.process.supervisor import EngineBackend
    from polymux.service.service import Service


@in_loop
async def test_work_is_done_in_one_process_again_and_again(tmp_path: Path) -> None:
    async with engine(tmp_path) as (service, backend):
        assert backend.health().state == "idle"
        first = await service.call(asked("echo one"))
        second = await service.call(asked("echo two"))
        assert (first.output["text"], second.output["text"]) == ("one", "two")
        assert first.output["pid"] == second.output["pid"] != os.getpid()
        assert (first.version, first.metrics) == ("v1", {"n": 1})
        assert backend.health().state == "ready"
        assert backend.process is not None
        await until(lambda: backend.process.memory_bytes > 1_000_000)
    assert not alive(first.output["pid"])


@served(max_concurrency=2)
async def test_cancelling_one_of_two(service: Service, backend: EngineBackend) -> None:
    """One that does not stop is waited for. The process, which both share, is not killed."""
    deaf = service.stream(asked("deaf 0.8", stream=True))
    await anext(deaf)
    process = backend.process

    async def count() -> None:
        async with aclosing(service.stream(asked("endless", stream=True))) as stream:
            for _ in range(200):
                await anext(stream)

    other = asyncio.create_task(count())
    await asyncio.sleep(0.1)
    await deaf.aclose()
    await other
    assert backend.process is process


@pytest.mark.parametrize("fault", ["crash", "exit 0", "garbage ffffffffffffffff"])
def test_a_process_that_goes_is_tried_once_more(tmp_path: Path, fault: str) -> None:
    """Nothing was delivered, so the request is retried once. Then the engine has failed."""

    @served()
    async def test(service: Service, backend: EngineBackend) -> None:
        with pytest.raises(InternalServerError) as failed:
            await service.call(asked(fault))
        assert (failed.value.status, failed.value.code) == (500, "engine_failed")
        assert (await service.call(asked("echo back"))).output["text"] == "back"
        assert backend.health().state == "ready"

    test(tmp_path)


def test_one_crash_is_not_noticed_by_the_caller(tmp_path: Path) -> None:
    @served(once=str(tmp_path / "mark"))
    async def test(service: Service) -> None:
        assert (await service.call(asked("echo x"))).output["text"] == "x"

    test(tmp_path)


@served(QUICK._replace(silence_s=2.5))
async def test_a_process_that_gives_no_sign_of_life_is_ended(service: Service) -> None:
    began = time.monotonic()
    with pytest.raises(InternalServerError):
        await asyncio.wait_for(anext(service.stream(asked("freeze", stream=True))), 20)
    assert time.monotonic() - began < 15


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
    kind: type[APIStatusError],
    code: str,
) -> None:
    @served(load=fault)
    async def test(service: Service, backend: EngineBackend) -> None:
        with pytest.raises(kind) as failed:
            await service.call(asked("echo x"))
        assert failed.value.code == code
        health = backend.health()
        assert (health.state, bool(health.detail)) == ("failed", True)
        assert "canary" not in f"{failed.value} {health.detail}"
        assert ("canary" in caplog.text) == (fault == "defect")
        assert any("faulty" in one and str(failed.value) in one for one in caplog.messages)
        assert service.places["faulty"].running == 0

    test(tmp_path)


@served(QUICK._replace(load_s=1.5), load="slow")
async def test_loading_has_a_deadline(service: Service) -> None:
    with pytest.raises(InternalServerError, match=r"\b2 s\b"):
        await service.call(asked("echo x"))


@served(load="slow")
async def test_loading_can_be_cancelled(service: Service, backend: EngineBackend) -> None:
    task = asyncio.create_task(service.call(asked("echo x")))
    await until(lambda: backend.health().state == "loading")
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.places["faulty"].running == 0


@served()
async def test_errors_come_back_as_what_they_are(service: Service) -> None:
    for fault, kind, code in (
        ("raise broken", UnprocessableEntityError, "undecodable"),
        ("raise defect", InternalServerError, "engine_failed"),
    ):
        with pytest.raises(kind) as failed:
            await service.call(asked(fault))
        assert failed.value.code == code
        assert "canary" not in str(failed.value)
    stream = service.stream(asked("crash late", stream=True))
    assert await anext(stream) == {"begun": True}
    with pytest.raises(InternalServerError):
        await anext(stream)
    assert (await service.call(asked("echo x"))).output["text"] == "x"


def test_a_path_that_is_not_its_own_is_refused(tmp_path: Path) -> None:
    @served()
    async def test(service: Service) -> None:
        with pytest.raises(InternalServerError) as failed:
            await service.call(asked("steal /etc/passwd"))
        assert failed.value.code == "engine_failed"

    test(tmp_path)


@served(QUICK._replace(idle_s=1.0))
async def test_memory_is_free_when_it_is_unloaded(service: Service, backend: EngineBackend) -> None:
    await service.call(asked("grow 100000000"))
    assert backend.process is not None
    pid = backend.process.pid or 0
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    assert pages * 4096 > 100_000_000
    assert await until(lambda: not alive(pid)) < 2.0
    await until(lambda: backend.health().state == "idle")
    assert (await service.call(asked("echo x"))).output["pid"] != pid


@served(QUICK._replace(idle_s=0.3))
async def test_who_is_gone_before_work_began_leaves_no_process(
    backend: EngineBackend,
) -> None:
    """The process was started for a request that was canceled while it was sent."""
    values = {"messages": [{"role": "user", "content": "echo " + "x" * 30_000_000}]}
    work = OperationRequest("chat", "", "", values, frozenset())
    call = asyncio.create_task(backend.run(work, ProgressSink(lambda: None, None)))
    while backend.process is None or not backend.process.busy:
        await asyncio.sleep(0)  # Exactly one turn of the loop: the request is not sent yet.
    pid = backend.process.pid or 0
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: not alive(pid), 5)


def test_what_is_too_large_to_be_sent_leaves_no_process_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framing, "MAX_HEADER_BYTES", 10_000)

    @served(QUICK._replace(idle_s=0.3))
    async def test(service: Service, backend: EngineBackend) -> None:
        with pytest.raises(RequestTooLargeError):
            await service.call(asked("echo " + "x" * 20_000))
        assert backend.process is not None
        pid = backend.process.pid or 0
        await until(lambda: not alive(pid), 5)

    test(tmp_path)


@served()
async def test_unloading_waits_for_work(service: Service, backend: EngineBackend) -> None:
    stream = service.stream(asked("endless", stream=True))
    await anext(stream)
    assert not await backend.unload()
    await stream.aclose()
    assert await backend.unload()
    assert await backend.unload()


@served()
async def test_what_an_engine_started_ends(service: Service, backend: EngineBackend) -> None:
    grandchild = (await service.call(asked("spawn"))).output["pid"]
    assert alive(grandchild)
    assert backend.process is not None
    backend.process.kill()
    await until(lambda: not alive(grandchild))
