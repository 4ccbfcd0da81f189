"""Engines that crash, hang, grow and send invalid messages: errors, and the next one succeeds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import InternalServerError
from support.supervised_engine import QUICK, alive, asked, engine, go, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.engines.process.supervisor import EngineBackend
    from polymux.service.service import Service


def children() -> set[int]:
    """Child processes, including zombies."""
    found = set()
    for one in Path("/proc/self/task").glob("*/children"):
        found |= {int(pid) for pid in one.read_text().split()}
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Any:
    """Check that no process, zombie, descriptor or temporary file remains."""
    before, open_ones = children(), len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert children() == before
    assert len(list(Path("/proc/self/fd").iterdir())) <= open_ones
    assert not any(tmp_path.glob("s*/drafts/*"))


async def well(service: Service, backend: EngineBackend) -> None:
    """Check that the next request succeeds and that health and metrics are good."""
    assert (await service.call(asked("echo back"))).output["text"] == "back"
    assert backend.health().state == "ready"
    place = service.places["faulty"]
    assert (place.running, place.waiting) == (0, 0)


@pytest.mark.parametrize("fault", ["close", "crash late"])
def test_the_end_of_a_process_at_work(tmp_path: Path, fault: str) -> None:
    """The process exits or closes its connection. A stream reports it at once."""

    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            with pytest.raises(InternalServerError) as failed:
                await _whole(service, fault)
            assert (failed.value.status, failed.value.code) == (500, "engine_failed")
            await well(service, backend)

    go(body())


async def _whole(service: Service, what: str) -> list[Any]:
    return [one async for one in service.stream(asked(what, stream=True))]


@pytest.mark.parametrize(
    "garbage",
    [
        "garbage 00000004000000007b7d",
        "garbage " + (b"\x00\x00\x00\x08" + b"\x00\x00\x00\x04" + b"nope").hex(),
        'send {"kind": "done"}',
        'send {"kind": "failed", "error": {"status": "x"}}',
        'send {"kind": "failed", "error": '
        '{"status": 200, "code": "engine_failed", "message": "", "param": null}}',
        'send {"kind": "draft", "bytes": "many"}',
        'send {"kind": "draft", "bytes": -1}',
        f'send {{"kind": "done", "version": "", "metrics": {{}}, "value": {"[" * 900}{"]" * 900}}}',
        'send {"kind": "done", "id": "x"}',
    ],
)
def test_nonsense_on_the_connection(tmp_path: Path, garbage: str) -> None:
    async def body() -> None:
        async with engine(tmp_path) as (service, backend):
            with pytest.raises(InternalServerError) as failed:
                await service.call(asked(garbage))
            assert (failed.value.status, failed.value.code) == (500, "engine_failed")
            await well(service, backend)

    go(body())


def test_work_of_others_that_it_speaks_of(tmp_path: Path) -> None:
    """Messages for unknown requests or of an unknown kind are ignored."""

    async def body() -> None:
        async with engine(tmp_path, max_concurrency=2) as (service, backend):
            for nonsense in ('{"kind": "done", "id": 99}', '{"kind": "what"}', '{"kind": "ready"}'):
                call = asyncio.create_task(service.call(asked(f"send {nonsense}")))
                await until(lambda: backend.process is not None and backend.process.busy == 1)
                assert (await service.call(asked("echo other"))).output["text"] == "other"
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            await well(service, backend)

    go(body())


def test_a_loop_that_hears_nothing(tmp_path: Path) -> None:
    """It is killed with its process, which does not count as a crash."""

    async def body() -> None:
        async with engine(tmp_path, QUICK._replace(cancel_timeout_s=0.5)) as (service, backend):
            begun = tmp_path / "begun"
            for _ in range(4):  # More often than the allowed number of crashes.
                begun.unlink(missing_ok=True)
                call = asyncio.create_task(service.call(asked(f"touch {begun}")))
                await until(begun.exists)
                pid = backend.process and backend.process.pid
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                assert not alive(pid or 0)
            await well(service, backend)

    go(body())


def test_loading_may_hold_the_interpreter(tmp_path: Path) -> None:
    """Libraries hold the GIL while they load large models, which must not count as a hang."""

    async def body() -> None:
        async with engine(tmp_path, QUICK._replace(silence_s=2), load="silent") as (service, made):
            await well(service, made)

    go(body())


def _turns(number: int) -> Callable[[], Any]:
    async def wait() -> None:
        for _ in range(number):
            await asyncio.sleep(0)

    return wait


def _pause(seconds: float) -> Callable[[], Any]:
    return lambda: asyncio.sleep(seconds)


def test_who_leaves_at_any_moment_of_a_start_leaves_no_process(tmp_path: Path) -> None:
    waits = [_turns(number) for number in range(0, 40, 8)]
    waits += [_pause(seconds) for seconds in (0.01, 0.2)]

    async def body() -> None:
        async with engine(tmp_path, load="slow") as (service, backend):
            before = children()
            for wait in waits:
                call = asyncio.create_task(service.call(asked("echo x")))
                await wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                assert backend.process is None
                assert service.places["faulty"].running == 0
                await until(lambda: children() == before, 30)

    go(body())
