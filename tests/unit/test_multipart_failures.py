"""What callers' own sources raise while a body is made of them, at any call (N14)."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from polymux.client.multipart import multipart_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

CONTENT = bytes(range(256)) * 400


class OwnError(Exception):
    pass


class OwnInterrupt(BaseException):
    """Such as Ctrl-C: no `Exception`."""


ERRORS = [
    OwnError,
    OwnInterrupt,
    KeyboardInterrupt,
    SystemExit,
    MemoryError,
    OSError,
    GeneratorExit,
]


class Faults:
    """Raises at the n-th call of whoever asks."""

    def __init__(self, at: int, kind: type[BaseException]) -> None:
        self.error = kind("raised by the caller's source")
        self.left = at

    def call(self) -> None:
        if self.left == 0:
            self.left -= 1
            raise self.error
        self.left -= 1


class FailingFile(io.BytesIO):
    """A file object whose every method may raise."""

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
        for begin in range(0, len(CONTENT), 20_000):
            self.faults.call()
            yield CONTENT[begin : begin + 20_000]


def whole(body: Any) -> bytes:
    return b"".join(iter(lambda: body.read(10_000), b""))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("source", [FailingFile, FailingPieces])
def test_a_source_that_raises_at_any_call(
    source: Callable[[Faults], Any], kind: type[BaseException], tmp_path: Any
) -> None:
    beside = tmp_path / "beside.bin"
    beside.write_bytes(CONTENT)
    gc.collect()  # What others have left goes now, and not in between.
    before = descriptors()
    raised = 0
    for at in range(1000):
        faults = Faults(at, kind)
        try:
            body = multipart_body([("a", "b")], [("p", beside), ("f", ("f", source(faults)))])
            content = whole(body)
        except kind as error:
            assert error is faults.error  # noqa: PT017 - which call raises it is not known
            raised += 1
            continue
        assert faults.left >= 0  # Nobody swallowed it.
        assert content.count(CONTENT) == 2
        break
    assert raised >= 5
    body = content = None  # type: ignore[assignment]
    gc.collect()
    assert descriptors() == before


@pytest.mark.parametrize("kind", [OwnError, OwnInterrupt, MemoryError])
def test_an_async_source_that_raises_at_any_call(kind: type[BaseException]) -> None:
    async def failing(faults: Faults) -> AsyncIterator[bytes]:
        for begin in range(0, len(CONTENT), 20_000):
            faults.call()
            await asyncio.sleep(0)
            faults.call()
            yield CONTENT[begin : begin + 20_000]

    async def send(faults: Faults) -> bytes:
        body = multipart_body([], [("f", ("f", failing(faults)))], awaited=True)
        return b"".join([piece async for piece in body])

    raised = 0
    for at in range(1000):
        faults = Faults(at, kind)
        try:
            content = asyncio.run(send(faults))
        except kind as error:
            assert error is faults.error  # noqa: PT017
            raised += 1
            continue
        assert CONTENT in content
        break
    assert raised == 12


@pytest.mark.parametrize("kind", ERRORS)
def test_a_progress_callback_that_raises_at_its_last_call(kind: type[BaseException]) -> None:
    error = kind("from the callback")

    def at_the_end(sent: int, total: int | None) -> None:
        if sent == total:
            raise error

    body = multipart_body([], [("f", CONTENT)], on_progress=at_the_end)
    with pytest.raises(kind) as caught:
        whole(body)
    assert caught.value is error


def test_errors_hold_nothing_after_they_are_gone() -> None:
    """A thousand failed bodies leave neither sources nor errors behind."""
    sources = []
    for at in range(1000):
        faults = Faults(at % 7, OwnError)
        sources.append(weakref.ref(faults))
        with pytest.raises(OwnError):
            whole(multipart_body([], [("f", ("f", FailingPieces(faults)))]))
    del faults
    gc.collect()
    assert [one for one in sources if one() is not None] == []
