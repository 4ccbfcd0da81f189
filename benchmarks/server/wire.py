"""One connection by hand, for what no client does."""

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
    """A connection to a server."""
    made = socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def asked(server: Running, value: dict[str, Any]) -> socket.socket:
    """A connection with a chat request on it."""
    connection = connect(server)
    connection.sendall(request(server.key, value))
    return connection


def leave(connection: socket.socket) -> None:
    """As a process that was killed."""
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def read_until(connection: socket.socket, mark: bytes) -> bytes:
    """What comes, up to the mark or the end."""
    data = b""
    while mark not in data:
        piece = connection.recv(1 << 16)
        if not piece:
            break
        data += piece
    return data


def get(server: Running, path: str) -> bytes:
    """The body of a short answer."""
    with connect(server) as connection:
        lines = head(server.key, 0, path=path, method="GET", fields=("Connection: close",))
        connection.sendall(lines)
        data = b""
        while piece := connection.recv(1 << 16):
            data += piece
    return data.partition(b"\r\n\r\n")[2]


def places(server: Running, name: str) -> tuple[int, int]:
    """How many are at work at an engine, and how many wait for it."""
    found = {}
    for line in get(server, "/metrics").decode().splitlines():
        label, _, value = line.partition(" ")
        found[label] = value
    running, waiting = (found.get(f'polymux_{one}{{backend="{name}"}}', "0")
                        for one in ("running", "waiting"))  # fmt: skip
    return int(float(running)), int(float(waiting))


def within(condition: Callable[[], bool], max_s: float) -> float | None:
    """Seconds until it holds; None where it does not hold by then."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > max_s:
            return None
        time.sleep(_POLL_S)
    return time.monotonic() - began


def until(condition: Callable[[], bool], max_s: float = 20) -> float:
    """Seconds until it holds.

    Raises:
        SystemExit: It never does.
    """
    taken_s = within(condition, max_s)
    if taken_s is None:
        raise SystemExit(f"it did not come about within {max_s} s")
    return taken_s


def lines_of(path: Any) -> list[Any]:
    """A file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
