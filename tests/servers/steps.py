"""What a misbehaving server can do with a request, step by step.

A script is a row of steps. The request's body is read before the first one, unless one of
`read_nothing`, `read_slowly` and `respond_before_body` is among them. When the script has come to
its end, the connection goes on with the next request if the body was read, and is closed otherwise.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from servers import http1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from servers.loopback import Exchange

HeaderFields = http1.HeaderFields
_MIB = bytes(1 << 20)


@dataclass
class Stage:
    """Where a script stands: the exchange, and how its bytes are to be sent."""

    exchange: Exchange
    piece_bytes: int | None = None
    pause_s: float = 0

    async def send(self, data: bytes) -> None:
        if self.piece_bytes is None:
            await self.exchange.wire.write(data)
            return
        for start in range(0, len(data), self.piece_bytes):
            await self.exchange.wire.write(data[start : start + self.piece_bytes])
            await self.sleep(self.pause_s)

    async def sleep(self, seconds: float | None) -> None:
        await self.exchange.wire.sleep(seconds)


@dataclass(frozen=True)
class Step:
    """One step; `reads_body` says that it decides itself how the body is read."""

    play: Callable[[Stage], Awaitable[None]]
    reads_body: bool = False


def send(data: bytes) -> Step:
    return Step(lambda stage: stage.send(data))


def head(
    status: int = 200,
    headers: HeaderFields = (),
    *,
    reason: str | bytes = "",
    version: str = "HTTP/1.1",
) -> Step:
    """Status line, these header fields and no others, empty line."""
    return send(http1.head(status, headers, reason=reason, version=version))


def answer(
    status: int = 200,
    body: bytes = b"{}",
    headers: HeaderFields = (),
    *,
    content_type: str = "application/json",
) -> Step:
    """A whole and correct answer."""
    own: http1.HeaderFields = [("Content-Type", content_type), ("Content-Length", len(body))]
    fields = [*own, *headers]
    return send(http1.head(status, fields) + body)


def event_stream(headers: HeaderFields = ()) -> Step:
    """The head of a stream of events that ends with the connection; `send` makes the events."""
    fields = [("Content-Type", "text/event-stream"), ("Connection", "close"), *headers]
    return head(200, fields)


def informational(status: int = 103, headers: HeaderFields = ()) -> Step:
    """An answer before the answer, such as 100 or 103."""
    return head(status, headers)


def redirect(status: int, location: str | bytes) -> Step:
    return head(status, [("Location", location), ("Content-Length", 0)])


def chunked_head(status: int = 200, content_type: str = "application/json") -> Step:
    """The head of an answer in chunks; `chunk` and `last_chunk` follow, or errors by `send`."""
    return head(status, [("Content-Type", content_type), ("Transfer-Encoding", "chunked")])


def chunk(data: bytes) -> Step:
    return send(http1.chunk(data))


def last_chunk(trailers: HeaderFields = ()) -> Step:
    fields = [http1.as_bytes(name) + b": " + http1.as_bytes(value) for name, value in trailers]
    return send(b"\r\n".join([b"0", *fields]) + b"\r\n\r\n")


def wrong_content_length(declared: int, body: bytes) -> Step:
    """An answer whose body is longer or shorter than its head says; `close` should follow."""
    fields: http1.HeaderFields = [
        ("Content-Type", "application/json"),
        ("Content-Length", declared),
    ]
    return send(http1.head(200, fields) + body)


def many_headers() -> Step:
    return answer(200, b"{}", [(f"X-Filler-{number}", "x") for number in range(10_000)])


def huge_header(size_bytes: int = 1 << 20) -> Step:
    return answer(200, b"{}", [("X-Filler", "x" * size_bytes)])


def _zeros_in_gzip(mebibytes: int) -> bytes:
    """A gzip file (RFC 1952) of zeros, about a thousandth of them; 256 MiB in 0.1 s.

    A packed MiB that ends in a full flush stands by itself, so that it can be repeated.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(_MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(mebibytes):
        checksum = zlib.crc32(_MIB, checksum)
    end = packer.flush(zlib.Z_FINISH) + struct.pack("<II", checksum, mebibytes << 20)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + block * mebibytes + end


def gzip_bomb(size_bytes: int = 256 << 20, layers: int = 1) -> Step:
    """An answer that says it is gzip and grows to `size_bytes` of zeros, packed `layers` times."""

    @cache
    def packed() -> bytes:
        body = _zeros_in_gzip(size_bytes >> 20)
        for _ in range(layers - 1):
            body = gzip.compress(body, mtime=0)
        return body

    async def play(stage: Stage) -> None:
        body = packed()
        encodings = ", ".join(["gzip"] * layers)
        fields: http1.HeaderFields = [
            ("Content-Type", "application/json"),
            ("Content-Encoding", encodings),
            ("Content-Length", len(body)),
        ]
        await stage.send(http1.head(200, fields) + body)

    return Step(play)


def repeat_forever(data: bytes) -> Step:
    """These bytes as fast as the peer takes them, until it closes."""
    block = data * max(1, (1 << 16) // len(data))

    async def play(stage: Stage) -> None:
        while True:
            await stage.send(block if stage.piece_bytes is None else data)

    return Step(play)


def split(piece_bytes: int, pause_s: float = 0.001) -> Step:
    """All that follows is sent in pieces of so many bytes, with a pause after each."""

    async def play(stage: Stage) -> None:
        stage.piece_bytes, stage.pause_s = piece_bytes, pause_s

    return Step(play)


def sleep(seconds: float) -> Step:
    return Step(lambda stage: stage.sleep(seconds))


def stall() -> Step:
    """Nothing more, ever; the connection stays open until the peer closes it."""
    return Step(lambda stage: stage.sleep(None))


def close() -> Step:
    """Closes in order; where the request was not all read, the kernel makes RST of it."""
    return Step(lambda stage: stage.exchange.wire.close())


def half_close() -> Step:
    """FIN, while the peer's bytes are still taken; under TLS without a goodbye: a cut stream."""

    async def play(stage: Stage) -> None:
        stage.exchange.wire.half_close()

    return Step(play)


def reset() -> Step:
    """RST at once; what is still on its way is lost."""
    return Step(lambda stage: stage.exchange.wire.reset())


def read_body() -> Step:
    """The rest of the body is read here; for scripts that begin with sending."""
    return Step(lambda stage: stage.exchange.read_body(), reads_body=True)


def read_nothing() -> Step:
    """The body is not read; the peer's window fills."""

    async def play(stage: Stage) -> None:
        stage.exchange.wire.stop_reading()

    return Step(play, reads_body=True)


def read_slowly(bytes_per_s: float) -> Step:
    """The body is read at this speed, to its end."""
    return Step(lambda stage: stage.exchange.read_body(bytes_per_s), reads_body=True)


def respond_before_body() -> Step:
    """What follows is sent while the body is still coming in; that is read beside it."""

    async def play(stage: Stage) -> None:
        stage.exchange.read_body_meanwhile()

    return Step(play, reads_body=True)
