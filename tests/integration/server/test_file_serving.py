"""Many concurrent downloads, very slow clients, and deletion meanwhile. Case IDs: testing.md."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from support.fetches import wait_until
from support.polymux_server import PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.fake_clock import FakeClock

#: Larger than the buffers of a connection whose client does not read.
SIZE_BYTES = 16 << 20
WRITE_S = 0.5


@pytest.fixture(scope="module")
def data() -> bytes:
    return bytes(range(256)) * (SIZE_BYTES >> 8)


@pytest.fixture
def link(server: PolymuxServer) -> str:
    return server.link()


@pytest.fixture
def write_s() -> float:
    return WRITE_S


@pytest.fixture
def server(
    tmp_path: Path, data: bytes, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, write_s: float
) -> Iterator[PolymuxServer]:
    monkeypatch.setattr("polymux.server.http.front.WRITE_S", write_s)

    def make() -> list[Scripted]:
        backend = Scripted()
        backend.data = data
        return [backend]

    with PolymuxServer(tmp_path / "s", make) as running:
        yield running


def reading(server: PolymuxServer, link: str) -> socket.socket:
    """A connection with a small receive buffer that has requested the file."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect(server.address)
    connection.sendall(server.written("GET", link, key=None))
    assert connection.recv(100).startswith(b"HTTP/1.1 200")
    return connection


def connections(server: PolymuxServer) -> int:
    return server.server.open_connections


def test_two_hundred_readers(server: PolymuxServer, link: str, data: bytes) -> None:
    """Each client gets its own range, all at the same time (S06)."""
    part = SIZE_BYTES // 200
    together = threading.Barrier(200)

    def read(number: int) -> bool:
        together.wait(60)
        place = f"bytes={number * part}-{(number + 1) * part - 1}"
        answer = server.ask("GET", link, headers=[("Range", place)], key=None)
        return answer.status == 206 and answer.body == data[number * part : (number + 1) * part]

    with ThreadPoolExecutor(200) as pool:
        assert all(pool.map(read, range(200)))
    wait_until(lambda: connections(server) == 0)


def test_who_hardly_reads_is_dropped(server: PolymuxServer, link: str, data: bytes) -> None:
    """A client that rarely reads a byte is dropped, too. The file remains available (S06)."""
    with reading(server, link), reading(server, link) as dripping:

        def both_are_gone() -> bool:
            with suppress(OSError):
                dripping.recv(1)
            return connections(server) == 0

        wait_until(both_are_gone)
    assert server.ask("GET", link, key=None).body == data


def test_who_reads_slowly_gets_it_all(server: PolymuxServer, link: str, data: bytes) -> None:
    """The deadline is only for clients that stop reading, however long others take (S06)."""
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


def files(server: PolymuxServer) -> list[Path]:
    return list((server.settings.store.folder / "media").glob("*/*"))


def delete_its_job(server: PolymuxServer, _: FakeClock) -> None:
    (job,) = server.ask("GET", "/api/v1/predictions").json()["results"]
    assert server.ask("DELETE", f"/api/v1/predictions/{job['id']}").status == 204


def let_its_time_pass(server: PolymuxServer, clock: FakeClock) -> None:
    """Let the file expire and run the sweep that the server runs periodically."""
    clock.now += server.settings.store.retention_s
    store = server.state.service.store
    asyncio.run_coroutine_threadsafe(store.run(store.sweep), server.loop).result(20)


@pytest.mark.parametrize("write_s", [60.0])  # The client pauses.
@pytest.mark.parametrize("go", [delete_its_job, let_its_time_pass])
def test_a_file_that_goes_while_it_is_read(
    server: PolymuxServer,
    link: str,
    data: bytes,
    clock: FakeClock,
    go: Callable[[PolymuxServer, FakeClock], None],
) -> None:
    """A running download completes. New requests return 404 (S07)."""
    with reading(server, link) as early, reading(server, link) as late:
        pieces = [early.recv(1 << 20)]
        go(server, clock)
        assert files(server) == []
        for method in ("GET", "HEAD"):
            assert server.ask(method, link, key=None).status == 404
        ranged = server.ask("GET", link, headers=[("Range", "bytes=0-0")], key=None)
        assert (ranged.status, ranged.json()["code"]) == (404, "not_found")
        for connection, found in ((early, pieces), (late, [])):
            while piece := connection.recv(1 << 20):
                found.append(piece)
            assert b"".join(found).partition(b"\r\n\r\n")[2] == data
    assert server.ask("GET", link, key=None).status == 404
    wait_until(lambda: connections(server) == 0)
    assert server.state.service.store.media.used_bytes == 0
