"""An engine that crashes repeatedly: how often it restarts and which errors clients get."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.process.process import EngineProcess
from polymux.errors import InternalServerError, OverloadedError
from polymux.service.routes import Route
from support.services import Scripted, chat_of, running, work_of
from support.supervised_engine import asked, served

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.process.supervisor import EngineBackend
    from polymux.service.service import Service


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


async def crash_twice(service: Service) -> None:
    """The first crash is retried. The error after the last one does not suggest to try again."""
    for _ in range(2):
        with pytest.raises(InternalServerError) as failed:
            await service.call(asked("crash"))
        assert (failed.value.status, failed.value.code) == (500, "engine_failed")


def test_three_crashes_are_three_starts(tmp_path: Path, starts: list[float]) -> None:
    @served()
    async def test(service: Service, backend: EngineBackend) -> None:
        await crash_twice(service)
        assert len(starts) == 3
        assert starts[1] - starts[0] > 0.2
        assert starts[2] - starts[1] > 0.4
        # A job for a broken engine is rejected and not stored.
        for refused_by in (service.call(asked("echo x")), service.submit(work_of())):
            with pytest.raises(OverloadedError) as refused:
                await refused_by
            assert (refused.value.status, refused.value.code) == (503, "engine_broken")
            assert 200 < int(refused.value.headers["retry-after"]) <= 300
        assert len(starts) == 3
        assert backend.health().state == "failed"
        assert service.jobs.count == 0
        newest = service.store.jobs.newest
        owner = work_of().caller.id
        assert await service.store.run(lambda: newest(owner, before=None, most=10)) == ([], None)
        # The next backend handles the request.
        other: Any = Scripted("other", operations=("chat",))
        routes = {"chat": [Route("faulty"), Route("other")]}
        async with running(tmp_path / "b", backend, other, routes=routes) as both:
            assert [one.name for one in both.backends_of(chat_of())] == ["other"]
            assert (await both.call(chat_of())).output is not None

    test(tmp_path)
