"""Data after a request on its connection: other requests, the rest of its body, or nothing."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest
from polymux.runtime.settings import Limits
from support.polymux_server import CHAT, HELLO, PolymuxServer, read_all, reset_at_close
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIMITS = Limits(body_first_s=0.5, body_idle_s=1.0, header_s=30.0)


class Slow(Scripted):
    """Works until its gate opens."""

    def __init__(self) -> None:
        super().__init__("slow", ["chat"], max_concurrency=4)
        self.gate.clear()
        self.chunks = [{"choices": []}]


@pytest.fixture
def engine() -> Slow:
    return Slow()


@pytest.fixture
def server(tmp_path: Path, engine: Slow) -> Iterator[PolymuxServer]:
    with PolymuxServer(tmp_path / "s", lambda: [engine], limits=LIMITS) as running:
        yield running


def chat(server: PolymuxServer, *, stream: bool = False) -> bytes:
    return server.written_json(CHAT, HELLO | ({"stream": True} if stream else {}), close=False)


def head(server: PolymuxServer, method: str, path: str, size: int) -> bytes:
    fields = [("Content-Type", "application/json"), ("Content-Length", str(size))]
    return server.written(method, path, headers=fields, close=False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("together", "behind", "reset"),
    [(True, HEALTH, False), (False, HEALTH * 4000, True)],
)
def test_a_leave_is_heard_behind_other_requests(
    server: PolymuxServer, engine: Slow, stream: bool, together: bool, behind: bytes, reset: bool
) -> None:
    """The further requests are sent together with the first, later, or exceed the read buffer."""
    first = chat(server, stream=stream)
    connection = server.connect()
    connection.sendall(first + behind if together else first)
    until(lambda: engine.began)
    if not together:
        connection.sendall(behind)
        time.sleep(0.1)
    if reset:
        reset_at_close(connection)
    connection.close()
    until(lambda: engine.ended)
    assert server.ask("GET", "/healthz").status == 200


def test_a_body_that_never_comes_behind_one_that_is_answered(
    server: PolymuxServer, engine: Slow
) -> None:
    """The complete request is answered without waiting for the incomplete one."""
    with server.connect() as connection:
        connection.settimeout(10)
        connection.sendall(chat(server) + head(server, "POST", CHAT, 1000) + b"{")
        until(lambda: engine.began)
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        server.loop.call_soon_threadsafe(engine.gate.set)
        came = read_all(connection)
    assert came.count(b"HTTP/1.1 200") == 1
    assert b"HTTP/1.1 408" not in came
    assert len(engine.began) == 1


def test_an_answer_before_the_body_is_the_last(server: PolymuxServer, engine: Slow) -> None:
    """It must not announce keep-alive: the server would drop the following data."""
    engine.gate.set()
    with server.connect() as connection:
        connection.settimeout(10)
        connection.sendall(head(server, "GET", "/api/v1/operations", 2))
        came = read_all(connection)
    assert came.startswith(b"HTTP/1.1 200")
    assert b"\r\nconnection: close\r\n" in came.lower()
    with server.connect() as connection:  # With its full body, the connection is reused as usual.
        connection.sendall(head(server, "GET", "/api/v1/operations", 2) + b"{}")
        came = connection.recv(1 << 16)
        assert came.startswith(b"HTTP/1.1 200")
        assert b"connection: close" not in came.lower()


@pytest.mark.parametrize("how", ["silent", "half closed"])
def test_a_body_that_stops_has_no_more_time_for_what_has_come(
    server: PolymuxServer, how: str
) -> None:
    """At the minimum body rate, these 200 kB would allow thirteen seconds."""
    with server.connect() as connection:
        connection.settimeout(10)
        connection.sendall(head(server, "POST", CHAT, 1_000_000) + b"x" * 200_000)
        if how == "half closed":
            connection.shutdown(socket.SHUT_WR)
        came = connection.recv(1 << 16)  # Within the ten-second timeout above.
    if how == "silent":
        assert came.startswith(b"HTTP/1.1 408")
    else:
        assert came == b""
