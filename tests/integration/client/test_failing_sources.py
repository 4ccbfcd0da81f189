"""What a caller's objects raise in the native core comes out as it was (N14), at every call."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from servers import steps
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from servers.misbehaving import MisbehavingServer

GOOD = steps.answer(200, b'{"text":"fine"}')
DATA = b"x" * 700_000
MAX_ATTEMPTS = 200


class Planted(BaseException):
    """Of the caller; not even an Exception."""


class Calls:
    """Raises at the n-th call of whatever is counted here."""

    def __init__(self, n: int) -> None:
        self.planted = Planted(f"at call {n}")
        self._left = n
        self.fired = False

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.fired = True
            raise self.planted

    def check(self, came: Planted | None) -> None:
        """What was raised has come out itself, and not anything else."""
        assert came is (self.planted if self.fired else None)


class File(io.BytesIO):
    """Each of its methods counts."""

    def __init__(self, calls: Calls) -> None:
        super().__init__(DATA)
        self._calls = calls

    def read(self, size: int | None = -1) -> bytes:
        self._calls.count()
        return super().read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._calls.count()
        return super().seek(offset, whence)

    def tell(self) -> int:
        self._calls.count()
        return super().tell()

    def seekable(self) -> bool:
        self._calls.count()
        return super().seekable()

    def fileno(self) -> int:
        self._calls.count()
        return super().fileno()


class Pipe(File):
    """One that cannot go back."""

    def seekable(self) -> bool:
        self._calls.count()
        return False

    def seek(self, offset: int, whence: int = 0) -> int:
        raise io.UnsupportedOperation("seek")

    tell = seek  # type: ignore[assignment]


def pieces(calls: Calls) -> Iterator[bytes]:
    for at in range(0, len(DATA), 100_000):
        calls.count()
        yield DATA[at : at + 100_000]


async def awaited_pieces(calls: Calls) -> AsyncIterator[bytes]:
    for piece in pieces(calls):
        await asyncio.sleep(0)
        yield piece


class OnUpload:
    """A progress callback."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __call__(self, sent: int, total: int | None) -> None:
        self._calls.count()


SOURCES: dict[str, Callable[[Calls], Any]] = {"file": File, "pipe": Pipe, "iterator": pieces}


def arguments(kind: str, calls: Calls) -> dict[str, Any]:
    if kind == "progress":
        return {"image": ("a.png", DATA), "on_upload": OnUpload(calls)}
    if kind == "async iterator":
        return {"image": ("a.png", awaited_pieces(calls))}
    return {"image": ("a.png", SOURCES[kind](calls))}


@pytest.mark.parametrize("kind", [*SOURCES, "progress"])
def test_at_every_call(kind: str, server: MisbehavingServer) -> None:
    """N14: the very exception comes out, nothing is answered, and the client works on."""
    server.script(GOOD, times=None)
    with polymux.Client(server.url, KEY, retry=0, timeout=60) as client:
        for n in range(1, MAX_ATTEMPTS):
            calls = Calls(n)
            try:
                answer = client.read_text(**arguments(kind, calls))
            except Planted as planted:
                calls.check(planted)
            else:
                calls.check(None)
                assert answer.text == "fine"
                break
        else:
            raise AssertionError("the calls never end")
        assert n > 1, "nothing was called"
        assert client.read_text(("a.png", b"x")).text == "fine"


@pytest.mark.parametrize("kind", [*SOURCES, "async iterator", "progress"])
def test_at_every_call_in_a_loop(kind: str, server: MisbehavingServer) -> None:
    """N14: the same for asyncio, where a file is read by other threads."""
    server.script(GOOD, times=None)

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0, timeout=60) as client:
            for n in range(1, MAX_ATTEMPTS):
                calls = Calls(n)
                try:
                    answer = await client.read_text(**arguments(kind, calls))
                except Planted as planted:
                    calls.check(planted)
                else:
                    calls.check(None)
                    assert answer.text == "fine"
                    break
            else:
                raise AssertionError("the calls never end")
            assert n > 1, "nothing was called"
            assert (await client.read_text(("a.png", b"x"))).text == "fine"

    asyncio.run(main())
