"""Records of a test server: connections, requests, and how and when they ended."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(eq=False)
class Request:
    """One request; times are `time.monotonic()`."""

    connection: Connection = field(repr=False)
    number: int
    arrived_at: float
    method: str
    target: str
    version: str
    #: In the received order, unchanged.
    headers: list[tuple[bytes, bytes]] = field(repr=False)
    #: The length of the decoded body; `body` may hold only its start.
    body_bytes: int = 0
    kept: bytearray = field(default_factory=bytearray, repr=False)
    body_complete: bool = False

    @property
    def body(self) -> bytes:
        return bytes(self.kept)

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def all_of(self, name: str) -> list[str]:
        wanted = name.lower().encode()
        return [value.decode("latin-1") for key, value in self.headers if key.lower() == wanted]

    def header(self, name: str) -> str | None:
        values = self.all_of(name)
        return values[0] if values else None


@dataclass(eq=False)
class Connection:
    """One TCP connection; times are `time.monotonic()`."""

    number: int
    accepted_at: float
    peer_port: int
    requests: list[Request] = field(default_factory=list, repr=False)
    #: All bytes received, inside TLS.
    received_bytes: int = 0
    #: The bytes passed to the kernel, or to a buffer of some KiB before it.
    sent_bytes: int = 0
    closed_at: float | None = None


class Log:
    """The records of a server: its thread writes them, the test's thread reads them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._connections: list[Connection] = []
        self._requests: list[Request] = []

    @property
    def connections(self) -> list[Connection]:
        with self._changed:
            return list(self._connections)

    @property
    def requests(self) -> list[Request]:
        with self._changed:
            return list(self._requests)

    def wait_for(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Wait until `condition` is true; it is checked after every change."""
        with self._changed:
            if not self._changed.wait_for(condition, timeout_s):
                raise TimeoutError(f"{what}: timed out after {timeout_s} s")

    def accepted(self, peer_port: int) -> Connection:
        with self._changed:
            connection = Connection(len(self._connections), time.monotonic(), peer_port)
            self._connections.append(connection)
            self._changed.notify_all()
            return connection

    def add(self, request: Request) -> None:
        with self._changed:
            request.number = len(self._requests)
            self._requests.append(request)
            request.connection.requests.append(request)
            self._changed.notify_all()

    def body(self, request: Request, data: bytes, keep_bytes: int) -> None:
        with self._changed:
            request.kept += data[: max(0, keep_bytes - len(request.kept))]
            request.body_bytes += len(data)
            self._changed.notify_all()

    def body_end(self, request: Request) -> None:
        with self._changed:
            request.body_complete = True
            self._changed.notify_all()

    def closed(self, connection: Connection) -> None:
        """Record the end of a connection. Only the first call counts."""
        with self._changed:
            if connection.closed_at is None:
                connection.closed_at = time.monotonic()
            self._changed.notify_all()

    def changed(self) -> None:
        with self._changed:
            self._changed.notify_all()
