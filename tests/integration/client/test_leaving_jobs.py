"""Whoever leaves before a server has named the job has it cancelled: the connection's end tells."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from support.client_children import eventually, finish, start, wait_for
from support.polymux_server import Box, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_S = 60
FILE = ("a.wav", b"x")


def holding(box: Box) -> Callable[[], list[Scripted]]:
    """An engine that works until it is told to stop."""

    def make() -> list[Scripted]:
        box.backend = Scripted(max_concurrency=2)
        box.backend.gate.clear()
        return [box.backend]

    return make


def check_cancelled(box: Box, server: PolymuxServer) -> None:
    """The engine was told, and the job says so."""
    assert eventually(lambda: box.backend.ended == ["cancelled"], MAX_S), box.backend.ended
    with polymux.Client(server.url, server.key) as client:
        jobs = list(client.predictions.list())
    assert [one.status for one in jobs] == ["canceled"]


def test_a_task_that_is_cancelled(tmp_path: Path) -> None:
    """While the server keeps its answer back: nobody knows the job's id yet."""
    box = Box()
    with PolymuxServer(tmp_path / "s", holding(box)) as server:

        async def main() -> None:
            async with polymux.AsyncClient(server.url, server.key) as client:
                task = asyncio.ensure_future(client.convert_to_mp3(FILE))
                began: Any = lambda: eventually(lambda: box.backend.began, MAX_S)  # noqa: E731
                assert await asyncio.to_thread(began)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await asyncio.to_thread(check_cancelled, box, server)

        asyncio.run(main())


def test_a_deadline(tmp_path: Path) -> None:
    """The call's own, which is shorter than the server would keep its answer back."""
    box = Box()
    with PolymuxServer(tmp_path / "s", holding(box)) as server:
        with (
            polymux.Client(server.url, server.key, retry=0) as client,
            pytest.raises(errors.RequestTimeoutError),
        ):
            client.convert_to_mp3(FILE, timeout=2)
        check_cancelled(box, server)


def test_control_c(tmp_path: Path) -> None:
    """In a call of the main thread's."""
    code = """
client = polymux.Client(url, sys.argv[2])
say("begins")
try:
    client.convert_to_mp3(("a.wav", b"x"))
except KeyboardInterrupt:
    say("interrupted")
"""
    box = Box()
    with PolymuxServer(tmp_path / "s", holding(box)) as server:
        child = start(code, server.url, server.key)
        wait_for(child, "begins")
        assert eventually(lambda: box.backend.began, MAX_S)
        child.send_signal(signal.SIGINT)
        wait_for(child, "interrupted")
        check_cancelled(box, server)
        finish(child)
