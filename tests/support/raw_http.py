"""A client that sends and reads bytes as they are, to see what servers really do."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servers.loopback import LoopbackServer

TIMEOUT_S = 10


def post(body: bytes = b"{}", target: str = "/", headers: bytes = b"") -> bytes:
    """A request with a body."""
    length = b"Content-Length: %d\r\n" % len(body)
    return f"POST {target} HTTP/1.1\r\nHost: h\r\n".encode() + headers + length + b"\r\n" + body


def connect(server: LoopbackServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S)


def read_to_end(peer: socket.socket) -> bytes:
    """All bytes up to FIN; ConnectionResetError on RST."""
    pieces = []
    while piece := peer.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def read_until(peer: socket.socket, mark: bytes) -> bytes:
    data = b""
    while mark not in data:
        piece = peer.recv(1 << 16)
        if not piece:
            raise EOFError(f"no {mark!r} in {data!r}")
        data += piece
    return data


def exchange(server: LoopbackServer, request: bytes | None = None) -> bytes:
    """Sends a request on a new connection, and gives all that comes up to its end."""
    with connect(server) as peer:
        peer.sendall(post(headers=b"Connection: close\r\n") if request is None else request)
        return read_to_end(peer)
