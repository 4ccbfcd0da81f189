"""Work that never ends in a live process: the signs of progress that prevent a stall timeout."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from polymux.errors import InternalServerError
from support.supervised_engine import QUICK, asked, engine, go

if TYPE_CHECKING:
    from pathlib import Path

STALLED_S = 1.0
HOW = QUICK._replace(stalled_s=STALLED_S)


def test_what_tells_or_writes_goes_on(tmp_path: Path) -> None:
    """Progress reports and file writes count as progress, however long the work takes."""

    async def body() -> None:
        async with engine(tmp_path, HOW) as (service, backend):
            loop = asyncio.get_running_loop()
            for what in ("tell 0.4 4", "write 0.4 4"):
                began = loop.time()
                assert (await service.call(asked(what))).output["text"] == "done", what
                assert loop.time() - began > 1.3 * STALLED_S
            assert backend.health().state == "ready"

    go(body())


def test_a_request_must_begin_soon(tmp_path: Path) -> None:
    """Until its first progress it has less time, so a crafted file cannot hold up others."""

    async def body() -> None:
        how = QUICK._replace(stalled_s=60.0, opening_s=STALLED_S)
        async with engine(tmp_path, how) as (service, backend):
            with pytest.raises(InternalServerError):
                await asyncio.wait_for(service.call(asked(f"touch {tmp_path / 'begun'}")), 20)
            assert (await service.call(asked("tell 0.1 2"))).output["text"] == "done"
            assert backend.health().state == "ready"

    go(body())


def test_it_is_no_crash_and_not_tried_again(tmp_path: Path) -> None:
    """More often than the allowed number of crashes."""

    async def body() -> None:
        async with engine(tmp_path, HOW) as (service, backend):
            for _ in range(4):
                mark = tmp_path / "begun"
                with pytest.raises(InternalServerError) as failed:
                    await service.call(asked(f"touch {mark}"))
                assert (failed.value.status, failed.value.code) == (500, "engine_failed")
                mark.unlink()
                await asyncio.sleep(0.1)
                assert not mark.exists()
            assert (await service.call(asked("echo x"))).output["text"] == "x"
            assert backend.health().state == "ready"

    go(body())
