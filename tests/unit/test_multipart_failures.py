"""Exceptions of the caller's sources, at every possible call."""

from __future__ import annotations

import asyncio
import gc
import io
import os
from typing import TYPE_CHECKING, Any

import pytest
from polymux.client.multipart import multipart_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

CONTENT = bytes(range(256)) * 100
PIECES = [CONTENT[begin : begin + 5_000] for begin in range(0, len(CONTENT), 5_000)]


class OwnError(Exception):
    pass


ERRORS = [OwnError, KeyboardInterrupt]


class Faults:
    """Raises at the n-th call."""

    def __init__(self, at: int, kind: type[BaseException]) -> None:
        self.error = kind("raised by the caller's source")
        self.left = at

    def call(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise self.error


class FailingFile(io.BytesIO):
    """Every method may raise."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(CONTENT)
        self.faults = faults

    def read(self, size: int | None = -1, /) -> bytes:
        self.faults.call()
        return super().read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.faults.call()
        return super().seek(offset, whence)

    def tell(self) -> int:
        self.faults.call()
        return super().tell()

    def seekable(self) -> bool:
        self.faults.call()
        return super().seekable()


class FailingPieces:
    """An iterable whose steps may raise."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    def __iter__(self) -> Iterator[bytes]:
        self.faults.call()
        for piece in PIECES:
            self.faults.call()
            yield piece


async def failing(faults: Faults) -> AsyncIterator[bytes]:
    for piece in PIECES:
        faults.call()
        await asyncio.sleep(0)
        faults.call()
        yield piece


def whole(body: Any) -> bytes:
    return b"".join(iter(lambda: body.read(10_000), b""))


def fail_at_every_call(kind: type[BaseException], send: Callable[[Faults], bytes]) -> int:
    """The number of calls that raised before a body was read completely."""
    for at in range(1000):
        faults = Faults(at, kind)
        try:
            content = send(faults)
        except kind as error:
            assert error is faults.error  # noqa: PT017 - which call raises it is not known
            continue
        assert faults.left >= 0  # No failure was swallowed.
        assert content.count(CONTENT) >= 1
        return at
    pytest.fail("the body was never complete")


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("source", [FailingFile, FailingPieces])
def test_a_source_that_raises_at_any_call(
    source: Callable[[Faults], Any], kind: type[BaseException], tmp_path: Path
) -> None:
    beside = tmp_path / "beside.bin"
    beside.write_bytes(CONTENT)

    def send(faults: Faults) -> bytes:
        return whole(multipart_body([("a", "b")], [("p", beside), ("f", ("f", source(faults)))]))

    before = descriptors()
    assert fail_at_every_call(kind, send) >= 5
    assert descriptors() == before


def test_an_async_source_that_raises_at_any_call() -> None:
    async def read(faults: Faults) -> bytes:
        body = multipart_body([], [("f", ("f", failing(faults)))], awaited=True)
        return b"".join([piece async for piece in body])

    assert fail_at_every_call(OwnError, lambda faults: asyncio.run(read(faults))) == 2 * len(PIECES)


def test_a_progress_callback_that_raises_at_its_last_call() -> None:
    error = OwnError("from the callback")

    def at_the_end(sent: int, total: int | None) -> None:
        if sent == total:
            raise error

    with pytest.raises(OwnError) as caught:
        whole(multipart_body([], [("f", CONTENT)], on_progress=at_the_end))
    assert caught.value is error
