"""A raw connection, for behavior that no client library offers."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import head, request

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.server.sides import Running

TIMEOUT_S = 60
_POLL_S = 0.002


def connect(server: Running) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def asked(server: Running, value: dict[str, Any]) -> socket.socket:
    """Open a connection and send a chat request."""
    connection = connect(server)
    connection.sendall(request(server.key, value))
    return connection


def leave(connection: socket.socket) -> None:
    """Disconnect as a killed process does."""
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def read_until(connection: socket.socket, mark: bytes) -> bytes:
    """Read up to the mark or the end of the connection."""
    data = b""
    while mark not in data:
        piece = connection.recv(1 << 16)
        if not piece:
            break
        data += piece
    return data


def get(server: Running, path: str) -> bytes:
    with connect(server) as connection:
        lines = head(server.key, 0, path=path, method="GET", fields=("Connection: close",))
        connection.sendall(lines)
        data = b""
        while piece := connection.recv(1 << 16):
            data += piece
    return data.partition(b"\r\n\r\n")[2]


def places(server: Running, name: str) -> tuple[int, int]:
    """Return the number of running and of waiting requests of an engine."""
    found = {}
    for line in get(server, "/metrics").decode().splitlines():
        label, _, value = line.partition(" ")
        found[label] = value
    running, waiting = (found.get(f'polymux_{one}{{backend="{name}"}}', "0")
                        for one in ("running", "waiting"))  # fmt: skip
    return int(float(running)), int(float(waiting))


def within(condition: Callable[[], bool], max_s: float) -> float | None:
    """Return the seconds until the condition holds; None if it does not within `max_s`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > max_s:
            return None
        time.sleep(_POLL_S)
    return time.monotonic() - began


def until(condition: Callable[[], bool], max_s: float = 20) -> float:
    """Return the seconds until the condition holds.

    Raises:
        SystemExit: The condition does not hold within `max_s`.
    """
    taken_s = within(condition, max_s)
    if taken_s is None:
        raise SystemExit(f"timed out: condition not met within {max_s} s")
    return taken_s


def lines_of(path: Any) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]
