"""Many wrong keys: timing reveals nothing about the right key, and other clients are served."""

from __future__ import annotations

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from polymux.server.auth.api_keys import KeyFile
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


def test_a_flood_is_counted_exactly_and_logged_in_part(tmp_path: Path) -> None:
    total = 3_000
    with ServerProcess(tmp_path / "s") as server:
        wrong_key = wrong(server.key, 8)
        for _ in range(total // _AT_ONCE):
            with server.connect() as connection:
                connection.sendall(request(server, wrong_key) * _AT_ONCE)
                assert read_statuses(connection, _AT_ONCE) == [401] * _AT_ONCE
        found = 0
        until = time.monotonic() + 20
        while found != total and time.monotonic() < until:
            metrics = server.ask("GET", "/metrics").body.decode()
            matched = re.search(
                r'^polymux_requests_total\{.*status="401"\} (\S+)$', metrics, re.MULTILINE
            )
            found = 0 if matched is None else int(float(matched[1]))
        assert found == total
        assert (
            sum(
                map(
                    int,
                    re.findall(r"^polymux_request_seconds_count.* (\d+)", metrics, re.MULTILINE),
                )
            )
            >= total
        )
        log = server.log()
        lines = re.findall(r"polymux\.access: POST \S+ 401 ", log)
        others = re.findall(r" (\d+) further requests ", log)
        assert len(lines) > 0
        assert len(lines) + sum(map(int, others)) == total
        assert wrong_key not in log


def test_keys_are_known_at_once(tmp_path: Path) -> None:
    """A key works as soon as it is in the file, and no longer after it was removed."""
    with ServerProcess(tmp_path / "s", log="warning") as server:
        file = KeyFile(tmp_path / "s/store/keys.json")
        for _ in range(20):
            key, made = file.add("other")
            assert server.json(CHAT, HELLO, key=key).status == 200
            file.remove(made.id)
            assert server.json(CHAT, HELLO, key=key).status == 401
