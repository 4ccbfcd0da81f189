"""The steps of a misbehaving server's scripts.

A script is a list of steps. The request's body is read before the first one, unless `read_nothing`,
`read_slowly` or `respond_before_body` is among them. After the script, the connection continues
with the next request if the body was read; otherwise it is closed.
"""

from __future__ import annotations

import asyncio
import gzip
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from servers import http1

if TYPE_CHECKING:
    import threading
    from collections.abc import Awaitable, Callable

    from servers.loopback import Exchange

HeaderFields = http1.HeaderFields
_MIB = bytes(1 << 20)


@dataclass
class Stage:
    """The state of a script: the exchange, and how to send its bytes."""

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
    """One step; `reads_body` means that it decides how the body is read."""

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
    """Status line, only these header fields, empty line."""
    return send(http1.head(status, headers, reason=reason, version=version))


def answer(
    status: int = 200,
    body: bytes = b"{}",
    headers: HeaderFields = (),
    *,
    content_type: str = "application/json",
) -> Step:
    """A complete and correct answer."""
    own: http1.HeaderFields = [("Content-Type", content_type), ("Content-Length", len(body))]
    fields = [*own, *headers]
    return send(http1.head(status, fields) + body)


def event_stream(headers: HeaderFields = ()) -> Step:
    """The head of an event stream that ends with the connection; `send` sends the events."""
    fields = [("Content-Type", "text/event-stream"), ("Connection", "close"), *headers]
    return head(200, fields)


def informational(status: int = 103, headers: HeaderFields = ()) -> Step:
    """An interim answer, such as 100 or 103."""
    return head(status, headers)


def redirect(status: int, location: str | bytes) -> Step:
    return head(status, [("Location", location), ("Content-Length", 0)])


def chunked_head(status: int = 200, content_type: str = "application/json") -> Step:
    """The head of a chunked answer; `chunk` and `last_chunk` follow, or errors by `send`."""
    return head(status, [("Content-Type", content_type), ("Transfer-Encoding", "chunked")])


def chunk(data: bytes) -> Step:
    return send(http1.chunk(data))


def last_chunk(trailers: HeaderFields = ()) -> Step:
    fields = [http1.as_bytes(name) + b": " + http1.as_bytes(value) for name, value in trailers]
    return send(b"\r\n".join([b"0", *fields]) + b"\r\n\r\n")


def wrong_content_length(declared: int, body: bytes) -> Step:
    """An answer with a wrong Content-Length; `close` should follow."""
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
    """A gzip file (RFC 1952) of zeros with a ratio of about 1000; 256 MiB take 0.1 s.

    A compressed MiB that ends in a full flush is self-contained, so it can be repeated.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(_MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(mebibytes):
        checksum = zlib.crc32(_MIB, checksum)
    end = packer.flush(zlib.Z_FINISH) + struct.pack("<II", checksum, mebibytes << 20)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + block * mebibytes + end


def gzip_bomb(size_bytes: int = 256 << 20, layers: int = 1) -> Step:
    """An answer that grows to `size_bytes` of zeros, compressed `layers` times."""

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
    """Send these bytes as fast as the peer reads them, until it closes."""
    block = data * max(1, (1 << 16) // len(data))

    async def play(stage: Stage) -> None:
        while True:
            await stage.send(block if stage.piece_bytes is None else data)

    return Step(play)


def split(piece_bytes: int, pause_s: float = 0.001) -> Step:
    """Send everything after this step in pieces of `size` bytes, with a pause after each."""

    async def play(stage: Stage) -> None:
        stage.piece_bytes, stage.pause_s = piece_bytes, pause_s

    return Step(play)


def sleep(seconds: float) -> Step:
    return Step(lambda stage: stage.sleep(seconds))


def wait(event: threading.Event) -> Step:
    return Step(lambda _: asyncio.to_thread(event.wait, 20))


def stall() -> Step:
    """Send nothing more; the connection stays open until the peer closes it."""
    return Step(lambda stage: stage.sleep(None))


def close() -> Step:
    """Close normally. If the request was not read completely, the kernel sends RST."""
    return Step(lambda stage: stage.exchange.wire.close())


def half_close() -> Step:
    """Send FIN but keep reading. TLS gets no close_notify, so its stream is truncated."""

    async def play(stage: Stage) -> None:
        stage.exchange.wire.half_close()

    return Step(play)


def reset() -> Step:
    """Send RST immediately; unsent data is lost."""
    return Step(lambda stage: stage.exchange.wire.reset())


def read_body() -> Step:
    """Read the rest of the body here, for scripts that send first."""
    return Step(lambda stage: stage.exchange.read_body(), reads_body=True)


def read_nothing() -> Step:
    """Do not read the body; the peer's window fills."""

    async def play(stage: Stage) -> None:
        stage.exchange.wire.stop_reading()

    return Step(play, reads_body=True)


def read_slowly(bytes_per_s: float) -> Step:
    """Read the body at this speed, to its end."""
    return Step(lambda stage: stage.exchange.read_body(bytes_per_s), reads_body=True)


def respond_before_body() -> Step:
    """Send the next steps while the body is still being received."""

    async def play(stage: Stage) -> None:
        stage.exchange.read_body_meanwhile()

    return Step(play, reads_body=True)
