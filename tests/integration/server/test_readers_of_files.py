"""Many who read one file at once, and such as hardly read it at all."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support.fetches import wait_until
from support.polymux_server import CONVERT, PolymuxServer, form
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Of a file: more than waits on its way to who does not read.
SIZE_BYTES = 32 << 20
WRITE_S = 1.0


@pytest.fixture(scope="module")
def data() -> bytes:
    return bytes(range(256)) * (SIZE_BYTES >> 8)


@pytest.fixture
def server(tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[PolymuxServer]:
    monkeypatch.setattr("polymux.server.protocol._WRITE_S", WRITE_S)

    def make() -> list[Scripted]:
        backend = Scripted()
        backend.data = data
        return [backend]

    with PolymuxServer(tmp_path / "s", make) as running:
        yield running


@pytest.fixture
def link(server: PolymuxServer) -> str:
    body, headers = form(("file", ("a.wav", b"x")))
    answer = server.ask("POST", CONVERT, body, headers).json()
    return str(answer["response"]).removeprefix(server.url)


def reading(server: PolymuxServer, link: str) -> socket.socket:
    """A connection that has asked for the file, with room for little."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect(server.address)
    host = f"{server.address[0]}:{server.address[1]}"
    connection.sendall(f"GET {link} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert connection.recv(100).startswith(b"HTTP/1.1 200")
    return connection


def connections(server: PolymuxServer) -> int:
    return len(server.server.server_state.connections)


def test_two_hundred_readers(server: PolymuxServer, link: str, data: bytes) -> None:
    """S06: each gets the part that it asks for, all at once, and others are served meanwhile."""
    part = SIZE_BYTES // 200
    together = threading.Barrier(200)

    def read(number: int) -> bool:
        together.wait(60)
        place = f"bytes={number * part}-{(number + 1) * part - 1}"
        answer = server.ask("GET", link, headers=[("Range", place)], key=None)
        return answer.status == 206 and answer.body == data[number * part : (number + 1) * part]

    with ThreadPoolExecutor(200) as pool:
        assert all(pool.map(read, range(200)))
    assert server.ask("GET", "/healthz", key=None).status == 200
    wait_until(lambda: connections(server) == 0)


@pytest.mark.parametrize("pause_s", [None, 0.05])
def test_who_hardly_reads_is_dropped(
    server: PolymuxServer, link: str, data: bytes, pause_s: float | None
) -> None:
    """S06: nothing at all, or a byte now and then; the file itself is there for the next."""
    with reading(server, link) as connection:
        over = threading.Event()

        def drip() -> None:
            while not over.wait(pause_s) and connection.recv(1):
                pass

        thread = threading.Thread(target=drip)
        if pause_s is not None:
            thread.start()
        try:
            wait_until(lambda: connections(server) == 0)
        finally:
            over.set()
            if thread.ident is not None:
                thread.join(30)
    assert server.ask("GET", link, key=None).body == data


def test_who_reads_slowly_gets_it_all(server: PolymuxServer, link: str, data: bytes) -> None:
    """S06: the deadline is for those who do not read, however long the others take."""
    with reading(server, link) as connection:
        pieces = []
        pause = threading.Event()
        for _ in range(round(3 * WRITE_S / 0.1)):
            pause.wait(0.1)
            pieces.append(connection.recv(4096))
        assert connections(server) == 1
        while piece := connection.recv(1 << 20):
            pieces.append(piece)
    assert b"".join(pieces).partition(b"\r\n\r\n")[2] == data
