"""An engine that crashes again and again: how often it is started, and what callers are told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.process.process import EngineProcess
from polymux.engines.process.supervisor import CRASHES_WITHIN_S, CrashLoopBackoff
from polymux.errors import InternalServerError, OverloadedError
from polymux.service.routes import Route
from support.services import Scripted, chat_of, running, work_of
from support.supervised import asked, engine, go

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When processes were started."""
    found: list[float] = []
    start = EngineProcess.start

    async def noted(process: EngineProcess) -> None:
        found.append(asyncio.get_running_loop().time())
        await start(process)

    monkeypatch.setattr(EngineProcess, "start", noted)
    return found


def test_three_crashes_are_three_starts_with_pauses_between(
    tmp_path: Path, starts: list[float]
) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            for _ in range(2):
                # Who sees the last of them is told that the engine failed at it, not to come back.
                with pytest.raises(InternalServerError) as failed:
                    await service.call(asked("crash"))
                assert (failed.value.status, failed.value.code) == (500, "engine_failed")
            assert len(starts) == 3
            assert starts[1] - starts[0] > 0.2
            assert starts[2] - starts[1] > 0.4
            with pytest.raises(OverloadedError):
                await service.call(asked("echo x"))
            assert len(starts) == 3
            assert backend.health().state == "failed"

    go(body())


def test_a_job_for_a_broken_engine_is_not_begun(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, _):
            for _ in range(2):
                with pytest.raises(InternalServerError):
                    await service.call(asked("crash"))
            with pytest.raises(OverloadedError) as refused:
                await service.submit(work_of())
            assert (refused.value.status, refused.value.code) == (503, "engine_broken")
            assert int(refused.value.headers["retry-after"]) > 200
            assert service.jobs.count == 0
            newest = service.store.jobs.newest
            owner = work_of().caller.id
            kept = await service.store.run(lambda: newest(owner, before=None, most=10))
            assert kept == ([], None)

    go(body())


def test_the_next_backend_does_what_a_broken_one_cannot(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path / "a") as (service, broken):
            for _ in range(2):
                with pytest.raises(InternalServerError):
                    await service.call(asked("crash"))
            other: Any = Scripted("other", operations=("chat",))
            routes = {"chat": [Route("faulty"), Route("other")]}
            async with running(tmp_path / "b", broken, other, routes=routes) as both:
                assert [one.name for one in both.backends_of(chat_of())] == ["other"]
                assert (await both.call(chat_of())).output is not None

    go(body())


def test_crashes_of_long_ago_count_for_nothing() -> None:
    crashes = CrashLoopBackoff()
    assert (crashes.blocked_s(0), crashes.pause_s(0)) == (0, 0)
    for second in range(3):
        crashes.record(second)
    assert crashes.blocked_s(3) == CRASHES_WITHIN_S - 3
    assert crashes.blocked_s(CRASHES_WITHIN_S) == 0
    assert crashes.pause_s(CRASHES_WITHIN_S) == pytest.approx(0.4)
    assert crashes.pause_s(2 * CRASHES_WITHIN_S) == 0
