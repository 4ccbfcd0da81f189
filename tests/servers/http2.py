"""A small HTTP/2 server over TLS that can refuse requests, which real servers do only sometimes.

Example:

    with Http2Server(authority.certificate(), lambda request: request.answer(b"{}")) as server:
        ...  # requests to server.url
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from servers.certificates import Certificate

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INTERNAL_ERROR, REFUSED_STREAM = 2, 7
_PREFACE_BYTES = 24
_MAX_FRAME_BYTES = 16384
_STATUS_200 = b"\x88"


class Http2Request:
    """A complete request, and the ways to end it. `number` counts a connection's requests."""

    def __init__(self, connection: ssl.SSLSocket, stream: int, body: bytes) -> None:
        self._connection = connection
        self.stream = stream
        self.number = (stream + 1) // 2
        self.body = body

    def answer(self, body: bytes, fields: dict[str, str] | None = None) -> None:
        """Send everything at once."""
        block = _STATUS_200 + b"".join(
            b"\0" + _text(name) + _text(value) for name, value in (fields or {}).items()
        )
        starts = range(0, len(block), _MAX_FRAME_BYTES)
        frames = [
            _frame(
                CONTINUATION if at else HEADERS,
                block[at : at + _MAX_FRAME_BYTES],
                END_HEADERS if at == starts[-1] else 0,
                self.stream,
            )
            for at in starts
        ]
        self._connection.sendall(b"".join(frames) + _frame(DATA, body, END_STREAM, self.stream))

    def reset(self, code: int) -> None:
        self._connection.sendall(_frame(RST_STREAM, struct.pack(">I", code), 0, self.stream))

    def go_away(self, last_stream: int) -> None:
        self._connection.sendall(_frame(GOAWAY, struct.pack(">II", last_stream, 0)))

    def close(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)


class Http2Server:
    """Calls `react` with each request; `requests` has all of them."""

    def __init__(self, certificate: Certificate, react: Callable[[Http2Request], None]) -> None:
        self._react = react
        self._context = certificate.context()
        self._context.set_alpn_protocols(["h2"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self.ca = certificate.ca
        self.requests: list[Http2Request] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            self._context.wrap_socket(plain, server_side=True) as connection,
        ):
            connection.sendall(_frame(SETTINGS))
            for stream, body in _requests(connection):
                request = Http2Request(connection, stream, body)
                self.requests.append(request)
                self._react(request)


def _requests(connection: ssl.SSLSocket) -> Iterator[tuple[int, bytes]]:
    """Yield stream and body of each request. Bodies up to 64 KiB in all need no window updates."""
    with connection.makefile("rb") as source:
        source.read(_PREFACE_BYTES)
        bodies: dict[int, bytes] = {}
        while len(head := source.read(9)) == 9:
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            payload = source.read(int.from_bytes(head[:3]))
            if kind in (SETTINGS, PING) and not flags & ACK:
                connection.sendall(_frame(kind, payload if kind == PING else b"", ACK))
            elif kind in (DATA, HEADERS):
                bodies[stream] = bodies.get(stream, b"") + (payload if kind == DATA else b"")
                if flags & END_STREAM:
                    yield stream, bodies.pop(stream)


def _frame(kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _text(text: str) -> bytes:
    """A string of HPACK (RFC 7541, 5.1 and 5.2), not compressed."""
    length = len(text)
    if length < 127:
        return bytes([length]) + text.encode()
    prefix, rest = bytearray([127]), length - 127
    while rest >= 128:
        prefix.append(rest % 128 + 128)
        rest //= 128
    return bytes(prefix) + bytes([rest]) + text.encode()
