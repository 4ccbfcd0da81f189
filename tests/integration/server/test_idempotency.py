"""Repeated requests with one Idempotency-Key: the job's owner and end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import CONVERT, Box, PolymuxServer, form, read_answer
from support.server_process import until

if TYPE_CHECKING:
    import socket
    from pathlib import Path


def under_one_key(server: PolymuxServer, prefer: str = "") -> socket.socket:
    """Send a conversion with the one Idempotency-Key; wait for its end, or as `prefer` says."""
    body, headers = form(("file", ("a.wav", b"x")))
    more = [("Prefer", prefer)] if prefer else []
    connection = server.connect()
    fields = [*headers, ("Idempotency-Key", "k"), *more]
    connection.sendall(server.written("POST", CONVERT, body, fields))
    return connection


def waiters(server: PolymuxServer) -> int:
    return sum(one.waiters for one in server.state.service.jobs._running.values())


@pytest.mark.parametrize("acknowledged_first", [False, True])
def test_a_job_that_was_acknowledged_goes_on(tmp_path: Path, acknowledged_first: bool) -> None:
    """The job continues if any of its clients got its URL, whichever client disconnects."""
    prefer = "respond-async"
    box = Box()
    with PolymuxServer(tmp_path / "s", box.makes(hold=True)) as server:
        if acknowledged_first:
            with under_one_key(server, prefer) as connection:
                answer = read_answer(connection)
        with under_one_key(server):
            until(lambda: waiters(server) == 1)
            if not acknowledged_first:
                with under_one_key(server, prefer) as connection:
                    answer = read_answer(connection)
        assert answer.status == 202
        until(lambda: waiters(server) == 0)
        time.sleep(0.3)
        place = answer.json()["urls"]["get"].removeprefix(server.url)
        assert server.ask("GET", place).json()["status"] == "processing"
        server.loop.call_soon_threadsafe(box.backend.gate.set)
        until(lambda: server.ask("GET", place).json()["status"] == "succeeded")
        assert len(box.backend.began) == 1


def test_the_last_of_several_callers_ends_the_job(tmp_path: Path) -> None:
    """The job ends when the last client disconnects, whichever client started it."""
    box = Box()
    with PolymuxServer(tmp_path / "s", box.makes(hold=True)) as server:
        callers = []
        for number in (1, 2):
            callers.append(under_one_key(server))
            until(lambda wanted=number: waiters(server) == wanted)
        leaving, staying = callers
        leaving.close()
        until(lambda: waiters(server) == 1)
        time.sleep(0.3)
        assert box.backend.ended == []
        staying.close()
        until(lambda: box.backend.ended == ["cancelled"])
        until(lambda: server.state.service.jobs.count == 0)
