"""An engine that crashes repeatedly: how often it restarts and which errors clients get."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.process.process import EngineProcess
from polymux.errors import InternalServerError, OverloadedError, UnprocessableEntityError
from polymux.service.model import Caller
from polymux.service.routes import Route
from support.services import ALICE, BOB, Scripted, chat_of, running, work_of
from support.supervised_engine import asked, served

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.process.supervisor import EngineBackend
    from polymux.service.service import Service


CAROL = Caller("carol", "Carol")


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which processes started."""
    found: list[float] = []
    start = EngineProcess.start

    async def noted(process: EngineProcess) -> None:
        found.append(asyncio.get_running_loop().time())
        await start(process)

    monkeypatch.setattr(EngineProcess, "start", noted)
    return found


async def crash(service: Service, what: str, caller: Caller = ALICE) -> None:
    with pytest.raises(InternalServerError) as failed:
        await service.call(asked(what, caller=caller))
    assert (failed.value.status, failed.value.code) == (500, "engine_failed")


async def check_is_broken(service: Service, caller: Caller) -> None:
    """A job for a broken engine is rejected and not stored."""
    for refused_by in (
        service.call(asked("echo x", caller=caller)), service.submit(work_of(caller=caller))
    ):  # fmt: skip
        with pytest.raises(OverloadedError) as refused:
            await refused_by
        assert (refused.value.status, refused.value.code) == (503, "engine_broken")
        assert 200 < int(refused.value.headers["retry-after"]) <= 300
    assert service.jobs.count == 0
    newest = service.store.jobs.newest
    assert await service.store.run(lambda: newest(caller.id, before=None, most=9)) == ([], None)


def test_one_key_cannot_disable_an_engine(tmp_path: Path, starts: list[float]) -> None:
    """The request that crashes is refused, then its key. Others go on."""

    @served()
    async def test(service: Service, backend: EngineBackend) -> None:
        await crash(service, "crash")
        assert len(starts) == 2
        assert starts[1] - starts[0] > 0.2
        with pytest.raises(UnprocessableEntityError) as refused:
            await service.call(asked("crash"))
        assert refused.value.code == "engine_crashed"
        await service.call(asked("echo x"))
        assert len(starts) == 3
        assert starts[2] - starts[1] > 0.4
        await crash(service, "crash again")  # The error does not suggest to try again.
        await check_is_broken(service, ALICE)
        assert (await service.call(asked("echo y", caller=BOB))).output["text"] == "y"
        assert backend.health().state == "ready"
        # The next backend handles the request of the key.
        other: Any = Scripted("other", operations=("chat",))
        routes = {"chat": [Route("faulty"), Route("other")]}
        async with running(tmp_path / "b", backend, other, routes=routes) as both:
            assert [one.name for one in both.backends_of(chat_of())] == ["other"]
            assert (await both.call(chat_of())).output is not None

    test(tmp_path)


def test_an_engine_that_crashes_for_all_is_disabled(tmp_path: Path, starts: list[float]) -> None:
    @served()
    async def test(service: Service, backend: EngineBackend) -> None:
        for caller in (ALICE, BOB, CAROL):
            await crash(service, "crash", caller)
        assert len(starts) == 5
        await check_is_broken(service, Caller("dave", "Dave"))
        assert len(starts) == 5
        assert backend.health().state == "failed"

    test(tmp_path)


def test_who_runs_beside_a_crash_is_repeated(tmp_path: Path) -> None:
    """However often another request crashes the process, and it is not blamed."""

    @served(max_concurrency=3)
    async def test(service: Service) -> None:
        beside = [
            asyncio.create_task(service.call(asked(f"tell 0.05 {20 + number}", caller=BOB)))
            for number in range(2)
        ]
        await asyncio.sleep(0.2)
        await crash(service, "crash")
        await crash(service, "crash again")
        for one in beside:
            assert (await one).output["text"] == "done"
        await service.call(asked("echo x", caller=BOB))

    test(tmp_path)
