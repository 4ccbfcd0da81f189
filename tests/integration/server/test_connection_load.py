"""Many connections: slow, idle, and more than the file descriptor limit. Case IDs: testing.md."""

from __future__ import annotations

import resource
import selectors
import socket
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import CHAT, HELLO, parsed
from support.server_process import ServerProcess, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import Asked

LONG = [pytest.mark.long, pytest.mark.slow]
IDLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(autouse=True)
def _descriptors() -> Iterator[None]:
    """Use the maximum number of file descriptors that this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def limiter(server: Asked, count: int) -> Iterator[list[socket.socket]]:
    """Start `count` connections, all before the server accepts the first one."""
    found: list[socket.socket] = []
    try:
        for _ in range(count):
            one = socket.socket()
            found.append(one)
            one.setblocking(False)
            one.connect_ex(server.address)
        yield found
    finally:
        for one in found:
            one.close()


def ended(
    connections: list[socket.socket], max_s: float, enough: int | None = None
) -> dict[socket.socket, bytes]:
    """The data of each connection that closed within `max_s`, or until `enough` have closed."""
    came = dict.fromkeys(connections, b"")
    over: dict[socket.socket, bytes] = {}
    until_then = time.monotonic() + max_s
    with selectors.DefaultSelector() as selector:
        for one in connections:
            selector.register(one, selectors.EVENT_READ)
        enough = len(connections) if enough is None else enough
        while len(over) < enough and time.monotonic() < until_then:
            for key, _ in selector.select(0.1):
                one = key.fileobj
                assert isinstance(one, socket.socket)
                try:
                    piece = one.recv(65536)
                except BlockingIOError:
                    continue
                except OSError:
                    piece = b""
                came[one] += piece
                if not piece:
                    selector.unregister(one)
                    over[one] = came[one]
    return over


def dripped(
    server: ServerProcess, connections: list[socket.socket], until: float
) -> dict[socket.socket, bytes]:
    """Send one byte per second on each connection until all have ended, and return their responses.
    Checks that other clients are served.
    """
    byte = 0
    over: dict[socket.socket, bytes] = {}
    while len(over) < len(connections):
        assert time.monotonic() < until
        for one in connections:
            if one not in over:
                with suppress(OSError):
                    one.send(IDLE[byte : byte + 1])
        byte += 1
        over |= ended([one for one in connections if one not in over], 1)
        assert server.json(CHAT, HELLO).status == 200
    return over


def test_200_headers_in_drips(tmp_path: Path) -> None:
    """Case H09: one byte per second each. By the header deadline, all are answered or closed."""
    header_s = 1.5
    with ServerProcess(tmp_path / "s", limits={"header_s": header_s}, log="warning") as server:
        began = time.monotonic()
        with limiter(server, 200) as connections:
            over = dripped(server, connections, began + header_s + 40)
        assert time.monotonic() - began > header_s - 0.5
        statuses = {parsed(data).status for data in over.values()}
        assert statuses <= {0, 408}
        assert 408 in statuses
        assert server.log() == ""


@pytest.mark.parametrize(
    ("keep_alive_s", "idle_s"), [(4.0, 1.0), pytest.param(90.0, 60.0, marks=LONG)]
)
def test_a_thousand_idle_connections(tmp_path: Path, keep_alive_s: float, idle_s: float) -> None:
    """Case H12: closed after the idle timeout. They use few resources and delay no request."""
    limits = {"keep_alive_s": keep_alive_s, "header_s": 30.0}
    with ServerProcess(tmp_path / "s", limits=limits, log="warning") as server:
        assert server.json(CHAT, HELLO).status == 200
        before, descriptors = server.memory_bytes(), server.descriptors()
        busy_s = server.cpu_s()
        for _ in range(100):
            assert server.json(CHAT, HELLO).status == 200
        alone_s = (server.cpu_s() - busy_s) / 100
        with limiter(server, 1000) as connections:
            for one in connections:
                one.setblocking(True)
                one.settimeout(30)
                one.sendall(IDLE)
            for one in connections:
                assert one.recv(65536).startswith(b"HTTP/1.1 200")
                one.setblocking(False)
            assert server.descriptors() >= 1000
            busy_s, began, asked = server.cpu_s(), time.monotonic(), 0
            while asked < 100 or time.monotonic() - began < idle_s:
                assert server.json(CHAT, HELLO).status == 200
                asked += 1
            # Idle connections must not increase the CPU time per request.
            assert (server.cpu_s() - busy_s) / asked < 2 * alone_s + 0.005
            assert server.memory_bytes() - before < 64 << 20
            assert len(ended(connections, keep_alive_s + 20)) == 1000
        until(lambda: server.descriptors() <= descriptors + 2)
        assert server.is_alive()
        assert server.log() == ""


@pytest.mark.parametrize(
    ("count", "descriptors"), [(1200, 256), pytest.param(5000, 1024, marks=LONG)]
)
def test_more_connections_than_descriptors(tmp_path: Path, count: int, descriptors: int) -> None:
    """Case H13: excess connections get an error. The others and later clients are served."""
    limits = {"header_s": 60.0}
    with ServerProcess(
        tmp_path / "s", limits=limits, log="warning", descriptors=descriptors
    ) as server:
        assert server.json(CHAT, HELLO).status == 200
        with limiter(server, count) as connections:
            # Accepted connections wait for the header deadline. The others get a response at once.
            over = ended(connections, 30, enough=count - descriptors)
            assert server.descriptors() < descriptors
            answers = [parsed(data) for data in over.values() if data]
            assert len(answers) > (count - descriptors) * 0.8
            for answer in answers:
                assert answer.status == 503
                assert answer.json()["code"] == "overloaded"
                assert int(answer.headers["retry-after"]) > 0
            busy_s = server.cpu_s()
            kept = [one for one in connections if one not in over]
            assert len(kept) > descriptors // 2
            time.sleep(1)
            assert server.cpu_s() - busy_s < 0.5
            # The connection closes with an unread request, so a reset may arrive before the
            # response.
            assert server.ask("GET", "/healthz").status in (503, 0)
            for one in kept[:50]:
                one.setblocking(True)
                one.settimeout(10)
                one.sendall(IDLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                assert one.recv(65536).startswith(b"HTTP/1.1 200")
        assert until(lambda: server.ask("GET", "/healthz").status == 200) < 5
        assert server.json(CHAT, HELLO).status == 200
        assert server.log() == ""
