"""Errors that the connection handler sends: invalid requests and too many connections."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from polymux.runtime.settings import Limits
from support.polymux_server import CHAT, HELLO, Box, PolymuxServer, read_answer
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def test_refusals_have_a_name(tmp_path: Path) -> None:
    """Every response has a request ID, which clients can log."""
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()], limits=Limits(header_s=0.5)) as server:
        long = b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000
        for data, status in ((b"\0\r\n\r\n", 400), (HEALTH[:20], 408), (long, 431)):
            answer = server.raw(data)
            assert answer.status == status
            assert answer.json()["request_id"] == answer.headers["x-request-id"]
            assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("behind", "pipelined"),
    [(b"\0garbage\r\n\r\n", False), (HEALTH.replace(b"1.1", b"2.0"), True),
     (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000, True), (b"\0" * 100_000, True)],
)  # fmt: skip
def test_what_is_no_request_takes_no_answer(
    server: PolymuxServer, box: Box, behind: bytes, pipelined: bool
) -> None:
    """Complete requests before the invalid one are answered, then the connection closes."""
    box.backend.gate.clear()
    with server.connect() as connection:
        asked = server.written_json(CHAT, HELLO, close=False)
        connection.sendall(asked * (2 if pipelined else 1))
        until(lambda: box.backend.began)
        connection.sendall(behind)
        assert not threading.Event().wait(0.3)  # The server reads meanwhile.
        assert box.backend.ended == []
        server.loop.call_soon_threadsafe(box.backend.gate.set)
        answer = read_answer(connection)
        assert answer.status == 200
        assert answer.body.count(b"HTTP/1.1 200") == (1 if pipelined else 0)
        assert len(box.backend.began) == (2 if pipelined else 1)


def test_one_address_does_not_take_all_connections(tmp_path: Path) -> None:
    """Other addresses are served. This one can connect again after it closes one (S25)."""
    limits = Limits(connections_per_address=5, header_s=30)
    with (
        PolymuxServer(tmp_path / "s", lambda: [Scripted()], limits=limits) as server,
        ExitStack() as stack,
    ):
        taken = [stack.enter_context(server.connect()) for _ in range(5)]
        until(lambda: server.server.open_connections == 5)
        refused = server.raw(HEALTH)
        assert (refused.status, refused.json()["code"]) == (503, "overloaded")
        assert refused.headers["retry-after"] == "5"
        with socket.create_connection(server.address, 10, ("127.0.0.2", 0)) as other:
            other.sendall(HEALTH)
            assert read_answer(other).status == 200
        taken[0].close()
        until(lambda: server.raw(HEALTH).status == 200)
