"""A request that comes more than once under one Idempotency-Key: whose it is, and its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import CONVERT, Box, PolymuxServer, form, read_answer
from support.served import until
from support.services import Scripted

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path


def held(box: Box) -> Callable[[], list[Scripted]]:
    """Makes a backend that waits for its gate."""

    def make() -> list[Scripted]:
        box.backend = Scripted(max_concurrency=4)
        box.backend.gate.clear()
        return [box.backend]

    return make


def head(server: PolymuxServer, path: str, *fields: str) -> bytes:
    host = f"{server.address[0]}:{server.address[1]}"
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {server.key}"]
    return "\r\n".join([*lines, *fields, "", ""]).encode()


def test_a_second_caller_keeps_the_job_alive(tmp_path: Path) -> None:
    """The connection of the first breaks, and it has asked again under the same key already."""
    box = Box()
    with PolymuxServer(tmp_path / "s", held(box)) as server:
        body, headers = form(("file", ("a.wav", b"x")))
        lines = (f"{headers[0][0]}: {headers[0][1]}", f"Content-Length: {len(body)}",
                 "Idempotency-Key: k", "Connection: close")  # fmt: skip
        first, second = server.connect(), server.connect()
        first.sendall(head(server, CONVERT, *lines) + body)
        until(lambda: box.backend.began)
        second.sendall(head(server, CONVERT, *lines) + body)
        time.sleep(0.3)
        first.close()
        time.sleep(0.3)
        server.loop.call_soon_threadsafe(box.backend.gate.set)
        assert read_answer(second).status == 200
        second.close()
        assert len(box.backend.began) == 1


def under_one_key(server: PolymuxServer, prefer: str = "") -> socket.socket:
    """A conversion that waits for its end, or as `prefer` says, under the same key as all here."""
    body, headers = form(("file", ("a.wav", b"x")))
    fields = [f"{headers[0][0]}: {headers[0][1]}", f"Content-Length: {len(body)}",
              "Idempotency-Key: k", "Connection: close"]  # fmt: skip
    connection = server.connect()
    if prefer:
        fields.append(f"Prefer: {prefer}")
    connection.sendall(head(server, CONVERT, *fields) + body)
    return connection


def waiters(server: PolymuxServer) -> int:
    return sum(one.waiters for one in server.state.service.jobs._running.values())


@pytest.mark.parametrize("prefer", ["respond-async", "wait=1"])
@pytest.mark.parametrize("acknowledged_first", [False, True])
def test_a_job_that_was_acknowledged_goes_on(
    tmp_path: Path, prefer: str, acknowledged_first: bool
) -> None:
    """Whoever of its callers was told where to look for it, and whoever leaves then."""
    box = Box()
    with PolymuxServer(tmp_path / "s", held(box)) as server:
        if acknowledged_first:
            with under_one_key(server, prefer) as told:
                answer = read_answer(told)
        with under_one_key(server):
            until(lambda: waiters(server) == 1)
            if not acknowledged_first:
                with under_one_key(server, prefer) as told:
                    answer = read_answer(told)
        assert answer.status == 202
        until(lambda: waiters(server) == 0)
        time.sleep(0.3)
        place = answer.json()["urls"]["get"].removeprefix(server.url)
        assert server.ask("GET", place).json()["status"] == "processing"
        server.loop.call_soon_threadsafe(box.backend.gate.set)
        until(lambda: server.ask("GET", place).json()["status"] == "succeeded")
        assert len(box.backend.began) == 1


@pytest.mark.parametrize("first_goes_first", [False, True])
def test_the_last_of_several_callers_ends_the_job(tmp_path: Path, first_goes_first: bool) -> None:
    """Whoever of them has begun it."""
    box = Box()
    with PolymuxServer(tmp_path / "s", held(box)) as server:
        callers = []
        for number in (1, 2):
            callers.append(under_one_key(server))
            until(lambda wanted=number: waiters(server) == wanted)
        leaving, staying = callers if first_goes_first else callers[::-1]
        leaving.close()
        until(lambda: waiters(server) == 1)
        time.sleep(0.3)
        assert box.backend.ended == []
        staying.close()
        until(lambda: box.backend.ended == ["cancelled"])
        until(lambda: server.state.service.jobs.count == 0)
