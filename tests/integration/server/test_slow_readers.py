"""Streams whose readers are slow or do not read at all, and streams in very small pieces."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import CHAT, HELLO
from support.served import ServedProcess, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = [pytest.mark.long, pytest.mark.slow]


def asked(server: ServedProcess, text: str) -> bytes:
    value = {**HELLO, "messages": [{"role": "user", "content": text}], "stream": True}
    return server.written_json(CHAT, value)


def stream(server: ServedProcess, text: str) -> socket.socket:
    """A stream whose reader has room for little."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect(server.address)
    connection.sendall(asked(server, text))
    return connection


def running(server: ServedProcess) -> float:
    """How many chats are at work."""
    text = server.ask("GET", "/metrics").body.decode()
    [line] = [one for one in text.splitlines() if one.startswith('polymux_running{backend="quick"')]
    return float(line.split()[1])


def events(data: bytes) -> Iterator[bytes]:
    """The data of all events of an answer in chunks, each of which is one event."""
    _, _, rest = data.partition(b"\r\n\r\n")
    at = 0
    while size := int(rest[at : (end := rest.index(b"\r\n", at))], 16):
        piece = rest[end + 2 : end + 2 + size]
        at = end + 4 + size
        for event in piece.split(b"\n\n"):
            if event.startswith(b"data: "):
                yield event.removeprefix(b"data: ")


@pytest.mark.parametrize(
    ("seconds", "write_s"), [(9.0, 4.0), pytest.param(130.0, None, marks=LONG)]
)
def test_a_reader_of_1_kib_a_second(tmp_path: Path, seconds: float, write_s: float | None) -> None:
    """C35: the engine stops until there is room, nothing is kept for it, and nothing is lost.

    Slow as it is, it reads: the deadline of a write, which is over twice, is not for it.
    """
    count = 10_000
    with ServedProcess(tmp_path / "s", log="warning", write_s=write_s) as server:
        assert server.json(CHAT, HELLO).status == 200
        before = server.memory_bytes()
        with stream(server, f"count {count}") as connection:
            pieces = []
            began = time.monotonic()
            while time.monotonic() - began < seconds:
                pieces.append(connection.recv(1024))
                assert pieces[-1]
                time.sleep(1)
                # The pieces that are under way, and not the 10 MB that are to come.
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
    ("count", "write_s", "max_bytes"),
    [(30, 1.5, 24 << 20), pytest.param(500, None, 256 << 20, marks=LONG)],
)
def test_readers_that_never_read(
    tmp_path: Path, count: int, write_s: float | None, max_bytes: int
) -> None:
    """C36: little is kept for each, and by the deadline of a write they are dropped."""
    with ServedProcess(tmp_path / "s", max_concurrency=count + 2, write_s=write_s) as server:
        assert server.json(CHAT, HELLO).status == 200
        before = server.memory_bytes()
        with ExitStack() as connections:
            for _ in range(count):
                connections.enter_context(stream(server, "flood 16000"))
            until(lambda: running(server) >= count, 60)
            most = 0
            began = time.monotonic()
            while running(server):
                assert time.monotonic() - began < (write_s or 60) + 300
                most = max(most, server.memory_bytes() - before)
                assert server.json(CHAT, HELLO).status == 200  # Others are served meanwhile.
                time.sleep(0.3)
            assert most < max_bytes
        until(lambda: server.log().count(f"POST {CHAT} 499 ") == count)
        assert [line for line in server.log().splitlines() if " INFO " not in line] == []
        assert server.is_alive()


def test_who_leaves_while_the_engine_waits_for_room(tmp_path: Path) -> None:
    """C33: an engine that waits for a reader hears that there is none any more."""
    with ServedProcess(tmp_path / "s") as server:
        assert server.json(CHAT, HELLO).status == 200
        pids = server.tree()
        connection = stream(server, "flood")
        until(lambda: running(server) == 1)
        time.sleep(1)
        connection.close()
        until(lambda: running(server) == 0)
        # By itself: its process was not ended for it.
        assert server.tree() == pids
        assert server.json(CHAT, HELLO).status == 200


@pytest.mark.parametrize("count", [4_000, pytest.param(100_000, marks=LONG)])
def test_very_many_pieces_of_one_letter(tmp_path: Path, count: int) -> None:
    """C46: all arrive, and the time that they take grows as their number does.

    100,000 have taken 5 to 8 s where nothing else ran; the bound leaves room for slow machines.
    """
    with ServedProcess(tmp_path / "s", log="warning") as server:
        assert server.json(CHAT, HELLO).status == 200
        busy_s, before = server.cpu_s(), server.memory_bytes()
        few_s = letters(server, count // 4)
        all_s = letters(server, count)
        assert server.cpu_s() - busy_s < 40
        assert all_s < 0.5 + 10 * few_s
        assert server.memory_bytes() - before < 32 << 20


def letters(server: ServedProcess, count: int) -> float:
    """How long the server works for so many pieces."""
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
