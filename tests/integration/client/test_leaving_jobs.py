"""Whoever leaves before a server has named the job has it cancelled: the connection's end tells."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from support.client_children import eventually, finish, start, wait_for
from support.polymux_server import Box, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_S = 60
FILE = ("a.wav", b"x")


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def polymux_server(box: Box, tmp_path: Path) -> Iterator[PolymuxServer]:
    """Its engine works until it is told to stop."""

    def make() -> list[Scripted]:
        box.backend = Scripted(max_concurrency=2)
        box.backend.gate.clear()
        return [box.backend]

    with PolymuxServer(tmp_path / "s", make) as made:
        yield made


def check_cancelled(box: Box, server: PolymuxServer) -> None:
    """The engine was told, and the job says so."""
    assert eventually(lambda: box.backend.ended == ["cancelled"], MAX_S), box.backend.ended
    with polymux.Client(server.url, server.key) as client:
        jobs = list(client.predictions.list())
    assert [one.status for one in jobs] == ["canceled"]


def test_a_task_that_is_cancelled(box: Box, polymux_server: PolymuxServer) -> None:
    """While the server keeps its answer back: nobody knows the job's id yet."""

    async def main() -> None:
        async with polymux.AsyncClient(polymux_server.url, polymux_server.key) as client:
            task = asyncio.ensure_future(client.convert_to_mp3(FILE))
            assert await asyncio.to_thread(eventually, lambda: box.backend.began, MAX_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(check_cancelled, box, polymux_server)

    asyncio.run(main())


def test_a_deadline(box: Box, polymux_server: PolymuxServer) -> None:
    """The call's own, which is shorter than the server would keep its answer back."""
    with (
        polymux.Client(polymux_server.url, polymux_server.key, retry=0) as client,
        pytest.raises(errors.RequestTimeoutError),
    ):
        client.convert_to_mp3(FILE, timeout=1.5)
    check_cancelled(box, polymux_server)


def test_control_c(box: Box, polymux_server: PolymuxServer) -> None:
    """In a call of the main thread's."""
    code = """
client = polymux.Client(url, sys.argv[2])
try:
    client.convert_to_mp3(("a.wav", b"x"))
except KeyboardInterrupt:
    say("interrupted")
"""
    child = start(code, polymux_server.url, polymux_server.key)
    assert eventually(lambda: box.backend and box.backend.began, MAX_S)
    child.send_signal(signal.SIGINT)
    wait_for(child, "interrupted")
    check_cancelled(box, polymux_server)
    finish(child)
