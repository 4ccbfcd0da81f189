"""A lenient HTTP/1.1 reader for the test servers (RFC 9112)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from servers.records import Request
from servers.tcp_connection import DisconnectedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from servers.tcp_connection import TcpConnection

MAX_HEAD_BYTES = 16 << 20
PIECE_BYTES = 1 << 18

Headers = list[tuple[bytes, bytes]]
HeaderFields = Iterable[tuple[str | bytes, str | bytes | int]]


async def read_head(wire: TcpConnection) -> Request:
    """The next request of a connection, without its body."""
    head = await wire.read_until(b"\r\n\r\n", MAX_HEAD_BYTES)
    arrived_at = time.monotonic()
    first, *lines = head[:-4].split(b"\r\n")
    words = first.decode("latin-1").split(" ")
    if len(words) != 3:
        raise DisconnectedError(f"no request line: {first[:80]!r}")
    return Request(wire.record, -1, arrived_at, words[0], words[1], words[2], _fields(lines))


def _fields(lines: Iterable[bytes]) -> Headers:
    headers: Headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon:
            raise DisconnectedError(f"no header field: {line[:80]!r}")
        headers.append((name, value.strip(b" \t")))
    return headers


def has_body(request: Request) -> bool:
    return is_chunked(request) or (request.header("content-length") or "0") != "0"


def is_chunked(request: Request) -> bool:
    return "chunked" in (request.header("transfer-encoding") or "").lower()


def expects_continue(request: Request) -> bool:
    return (request.header("expect") or "").lower() == "100-continue"


def keeps_alive(request: Request) -> bool:
    return "close" not in ",".join(request.all_of("connection")).lower()


async def body_pieces(
    wire: TcpConnection, request: Request, max_bytes: int = PIECE_BYTES
) -> AsyncIterator[bytes]:
    """The body's bytes in arriving pieces, with chunks decoded."""
    if not is_chunked(request):
        left = int(request.header("content-length") or "0")
        while left:
            piece = await wire.read_some(min(left, max_bytes))
            left -= len(piece)
            yield piece
        return
    while True:
        line = await wire.read_until(b"\r\n", 1000)
        try:
            left = int(line.partition(b";")[0], 16)
        except ValueError:
            raise DisconnectedError(f"no chunk size: {line!r}") from None
        if left == 0:
            break
        while left:
            piece = await wire.read_some(min(left, max_bytes))
            left -= len(piece)
            yield piece
        if await wire.read_until(b"\r\n", 2) != b"\r\n":
            raise DisconnectedError("a chunk is longer than it says")
    await wire.read_until(b"\r\n", 2)  # no trailers


def as_bytes(text: str | bytes | float) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode("latin-1")


def head(
    status: int,
    headers: HeaderFields = (),
    *,
    reason: str | bytes = "",
    version: str = "HTTP/1.1",
) -> bytes:
    lines = [f"{version} {status} ".encode() + as_bytes(reason)]
    lines += [as_bytes(name) + b": " + as_bytes(value) for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
