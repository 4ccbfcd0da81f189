"""Streams to slow or stopped readers, and streams in very small chunks. Case IDs: testing.md."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import CHAT, HELLO
from support.server_process import ServerProcess, until

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = [pytest.mark.long, pytest.mark.slow]


def asked(server: ServerProcess, text: str) -> bytes:
    value = {**HELLO, "messages": [{"role": "user", "content": text}], "stream": True}
    return server.written_json(CHAT, value)


def stream(server: ServerProcess, text: str) -> socket.socket:
    """A stream whose client has a small receive buffer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect(server.address)
    connection.sendall(asked(server, text))
    return connection


def running(server: ServerProcess) -> float:
    """The number of running chats."""
    text = server.ask("GET", "/metrics").body.decode()
    [line] = [one for one in text.splitlines() if one.startswith('polymux_running{backend="quick"')]
    return float(line.split()[1])


def events(data: bytes) -> Iterator[bytes]:
    """The data of all events in a chunked response, one event per chunk."""
    _, _, rest = data.partition(b"\r\n\r\n")
    at = 0
    while size := int(rest[at : (end := rest.index(b"\r\n", at))], 16):
        piece = rest[end + 2 : end + 2 + size]
        at = end + 4 + size
        for event in piece.split(b"\n\n"):
            if event.startswith(b"data: "):
                yield event.removeprefix(b"data: ")


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """The parameter is (write timeout in seconds, maximum concurrent chats)."""
    write_s, chats = request.param
    folder = tmp_path_factory.mktemp("server") / "s"
    with ServerProcess(folder, max_concurrency=chats, write_s=write_s) as running:
        assert running.json(CHAT, HELLO).status == 200
        yield running
        assert [line for line in running.log().splitlines() if " INFO " not in line] == []


@pytest.mark.parametrize(
    ("server", "seconds"),
    [((2.0, 32), 5.0), pytest.param((None, 502), 130.0, marks=LONG)],
    indirect=["server"],
)
def test_a_reader_of_few_kib_a_second(server: ServerProcess, seconds: float) -> None:
    """The engine pauses until there is room. Nothing is buffered or lost (C35).

    The stream takes over twice the write timeout, which does not apply to a client that reads.
    """
    count = 10_000
    before = server.memory_bytes()
    with stream(server, f"count {count}") as connection:
        pieces = []
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            pieces.append(connection.recv(1024))
            assert pieces[-1]
            time.sleep(0.2)
            # Only the chunks in transit, not the 10 MB that follow.
            assert server.memory_bytes() - before < 8 << 20
        busy_s = server.cpu_s()
        time.sleep(1)
        assert server.cpu_s() - busy_s < 0.3
        while piece := connection.recv(1 << 20):
            pieces.append(piece)
    data = list(events(b"".join(pieces)))
    assert data.pop() == b"[DONE]"
    texts = [json.loads(one)["choices"][0]["delta"]["content"] for one in data]
    assert [int(text.split()[0]) for text in texts] == list(range(count))
    assert server.is_alive()


@pytest.mark.parametrize(
    ("server", "count", "max_bytes"),
    [((2.0, 32), 30, 24 << 20), pytest.param((None, 502), 500, 256 << 20, marks=LONG)],
    indirect=["server"],
)
def test_readers_that_never_read(server: ServerProcess, count: int, max_bytes: int) -> None:
    """Little is buffered per client, and the write timeout drops them (C36)."""
    before = server.memory_bytes()
    with ExitStack() as connections:
        for _ in range(count):
            connections.enter_context(stream(server, "flood 16000"))
        until(lambda: running(server) >= count, 60)
        most = 0
        began = time.monotonic()
        while running(server):
            assert time.monotonic() - began < 360
            most = max(most, server.memory_bytes() - before)
            assert server.json(CHAT, HELLO).status == 200  # Other clients are served meanwhile.
            time.sleep(0.1)
        assert most < max_bytes
    until(lambda: server.log().count(f"POST {CHAT} 499 ") == count)
    assert server.is_alive()


@pytest.mark.parametrize("server", [(None, 4)], indirect=True)
def test_who_leaves_while_the_engine_waits_for_room(server: ServerProcess) -> None:
    """An engine that waits for a client ends at its disconnect, long before the timeout (C33)."""
    pids = server.tree()
    connection = stream(server, "flood")
    until(lambda: running(server) == 1)
    time.sleep(1)
    connection.close()
    until(lambda: running(server) == 0)
    # The engine's process was not killed.
    assert server.tree() == pids
    assert server.json(CHAT, HELLO).status == 200


@pytest.mark.parametrize(
    ("server", "count"),
    [((None, 4), 4_000), pytest.param((None, 4), 100_000, marks=LONG)],
    indirect=["server"],
)
def test_very_many_pieces_of_one_letter(server: ServerProcess, count: int) -> None:
    """All arrive, and the time grows linearly (C46).

    100,000 chunks took 5 to 8 s on an idle machine. The limit allows for slower ones.
    """
    busy_s, before = server.cpu_s(), server.memory_bytes()
    few_s = letters(server, count // 4)
    all_s = letters(server, count)
    assert server.cpu_s() - busy_s < 40
    assert all_s < 0.5 + 10 * few_s
    assert server.memory_bytes() - before < 32 << 20


def letters(server: ServerProcess, count: int) -> float:
    """The server's working time for this many chunks."""
    busy_s = server.cpu_s()
    pieces = []
    with server.connect() as connection:
        connection.settimeout(60)
        connection.sendall(asked(server, f"letters {count}"))
        while piece := connection.recv(1 << 20):
            pieces.append(piece)
    data = list(events(b"".join(pieces)))
    assert data.pop() == b"[DONE]"
    assert len(data) == count
    assert json.loads(data[-1])["choices"][0]["delta"]["content"] == "x"
    return server.cpu_s() - busy_s
