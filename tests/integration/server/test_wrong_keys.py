"""Many wrong keys: timing reveals nothing about the right key, and other clients are served."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import CHAT, HELLO
from support.server_process import ServerProcess

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from support.polymux_server import Asked

_AT_ONCE = 50
BODY = json.dumps(HELLO).encode()


def request(server: Asked, key: str, body: bytes = BODY, *, close: bool = False) -> bytes:
    fields = [("Content-Length", str(len(body)))]
    return server.written_json(CHAT, body, fields, key=key, close=close)


def wrong(key: str, shared: int) -> str:
    """A key that shares its first `shared` characters with the right one."""
    turned = "".join("A" if char != "A" else "B" for char in key[shared:])
    return key[:shared] + turned


@pytest.mark.parametrize(
    "seconds", [2.0, pytest.param(30.0, marks=[pytest.mark.long, pytest.mark.slow])]
)
def test_a_flood_of_wrong_keys(tmp_path: Path, seconds: float) -> None:
    """Hundreds of wrong keys per second do not delay other clients (A21)."""
    with ServerProcess(tmp_path / "s", log="warning") as server:
        over = threading.Event()

        def flood() -> int:
            """Requests without a body keep the connection open, so fifty can be pipelined."""
            count = 0
            with server.connect() as connection:
                while not over.is_set():
                    keys = (wrong(server.key, number % 32) for number in range(_AT_ONCE))
                    connection.sendall(b"".join(request(server, key, b"") for key in keys))
                    statuses = read_statuses(connection, _AT_ONCE)
                    assert set(statuses) <= {401, 429}
                    count += len(statuses)
            return count

        assert server.json(CHAT, HELLO).status == 200  # The engine is ready.
        counts = [0]
        with ThreadPoolExecutor(4) as pool:
            floods = [pool.submit(flood) for _ in range(4)]
            until = time.monotonic() + seconds
            asked = 0
            while time.monotonic() < until:
                assert server.json(CHAT, HELLO).status == 200
                asked += 1
            over.set()
            counts = [one.result() for one in floods]
        assert asked >= seconds
        assert sum(counts) >= 100 * seconds
        assert server.log() == ""
        assert server.is_alive()


def read_statuses(connection: socket.socket, count: int) -> list[int]:
    """Read `count` pipelined responses to their end and return their statuses."""
    data = b""
    while data.count(b"HTTP/1.1 ") < count or not data.endswith(b"}"):
        piece = connection.recv(1 << 20)
        assert piece
        data += piece
    return [int(one[:3]) for one in data.split(b"HTTP/1.1 ")[1:]]
