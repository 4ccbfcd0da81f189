"""A client that disconnects before it knows the job's ID cancels the job."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import polymux
import pytest
from support.client_children import eventually
from support.polymux_server import Box, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

MAX_S = 60


def test_a_task_that_is_cancelled(tmp_path: Path) -> None:
    """The server has not sent the job's ID yet."""
    box = Box()

    def make() -> list[Scripted]:
        box.backend = Scripted(max_concurrency=2)
        box.backend.gate.clear()  # The backend works until it is canceled.
        return [box.backend]

    async def main(server: PolymuxServer) -> list[polymux.Prediction]:
        async with polymux.AsyncClient(server.url, server.key) as client:
            task = asyncio.ensure_future(client.convert_to_mp3(("a.wav", b"x")))
            assert await asyncio.to_thread(eventually, lambda: box.backend.began, MAX_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            ended = ["cancelled"]
            assert await asyncio.to_thread(eventually, lambda: box.backend.ended == ended, MAX_S)
            return [one async for one in client.predictions.list()]

    with PolymuxServer(tmp_path / "s", make) as server:
        jobs = asyncio.run(main(server))
    assert [one.status for one in jobs] == ["canceled"]
