from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from polymux.client.multipart import multipart_body
from support import form_parsers
from support.form_parsers import Field, File

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def a_pieces(*pieces: Any) -> AsyncIterator[Any]:
    for piece in pieces or (b"one ", b"", b"two ", b"three"):
        await asyncio.sleep(0)
        if isinstance(piece, Exception):
            raise piece
        yield piece


@pytest.mark.parametrize("size", [1, 65536])
def test_async_iterables_are_awaited_in_their_turn(tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(b"from the disk")

    async def run() -> tuple[bytes, str]:
        body = multipart_body(
            [("x", "y")],
            [("f", a_pieces()), ("g", tmp_path / "a"), ("h", ("n.mp3", a_pieces(), "audio/mp3"))],
        )
        assert body.length_bytes is None
        assert not body.can_rewind
        content = b""
        while piece := await body.aread(size):
            content += piece
        assert body.finished
        return content, body.content_type

    assert form_parsers.starlette(*asyncio.run(run())) == [
        Field("x", "y"),
        File("f", "f", "application/octet-stream", b"one two three"),
        File("g", "a", "application/octet-stream", b"from the disk"),
        File("h", "n.mp3", "audio/mp3", b"one two three"),
    ]


def test_an_async_part_cannot_be_read_without_await() -> None:
    body = multipart_body([], [("f", a_pieces())])
    body.read(10_000)
    with pytest.raises(TypeError, match="async for"):
        body.read(10)


def test_a_slow_file_does_not_hold_up_the_loop() -> None:
    class Slow:
        left = 3

        def read(self, size: int) -> bytes:
            time.sleep(0.1)
            self.left -= 1
            return b"x" * (self.left > 0)

    async def run() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticker = asyncio.create_task(tick())
        async for _ in multipart_body([], [("f", Slow())]):
            pass
        ticker.cancel()
        return ticks

    assert asyncio.run(run()) > 10
