"""Bodies leave nothing behind, and keep nothing of what goes through."""

from __future__ import annotations

import gc
import io
import os
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from polymux.client.multipart import multipart_body
from support.hostile_check import SANITIZED
from support.memory import leaves_nothing, resident_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


class Watched:
    pass


def test_cycles_through_generators_and_callbacks_are_collected() -> None:
    def make() -> list[weakref.ref[Watched]]:
        watched = [Watched() for _ in range(3)]
        held: list[Any] = []

        def generator(own: Watched) -> Iterator[bytes]:
            yield b"x"
            held.append(own)

        async def a_generator(own: Watched) -> AsyncIterator[bytes]:
            held.append(own)
            yield b"x"

        files = [("f", generator(watched[0])), ("g", a_generator(watched[1]))]
        own = watched[2]
        body = multipart_body([], files, on_progress=lambda *_: held.append(own))
        held.append(body)
        body.read(300)
        return [weakref.ref(one) for one in watched]

    references = make()
    gc.collect()
    assert [one() for one in references] == [None, None, None]


def test_bodies_come_and_go_without_a_trace(tmp_path: Path) -> None:
    """N17."""
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 100_000)

    def use() -> None:
        body = multipart_body(
            [("a", "b")], [("p", path), ("f", io.BytesIO(b"y" * 1000)), ("g", iter([b"z"]))]
        )
        for _ in body:
            pass
        half = multipart_body([], [("p", path), ("g", iter([b"z"] * 10))])
        half.read(10)

    leaves_nothing(use)


@pytest.mark.slow
def test_a_sparse_file_over_4_gib_goes_through_without_being_kept(tmp_path: Path) -> None:
    """K16, K17."""
    size = 2**32 + 5
    path = tmp_path / "sparse.bin"
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(-3, os.SEEK_END)
        file.write(b"END")
    body = multipart_body([], [("f", path)])
    assert body.length_bytes is not None
    resident = resident_bytes()
    sent = 0
    tail = b""
    while piece := body.read(2**20):
        sent += len(piece)
        tail = piece
    assert sent == body.length_bytes == body.sent_bytes
    assert size < sent < size + 400
    assert b"\0END\r\n--polymux-" in tail
    assert tail.endswith(b"--\r\n")
    assert SANITIZED or resident_bytes() - resident < 16 * 2**20
