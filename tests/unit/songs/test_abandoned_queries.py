from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from polymux.songs.backend import SongIndexBackend

if TYPE_CHECKING:
    from collections.abc import Callable


class Endless:
    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()

    def identify_query(self, query: bytes, go_on: Callable[[], object]) -> None:
        assert query == b"query"
        self.begun.set()
        try:
            while True:
                go_on()
        finally:
            self.ended.set()


class Library:
    def __init__(self, found: Endless) -> None:
        self.found = found

    def index(self) -> Endless:
        return self.found


class Described(SongIndexBackend):
    async def _query(self, work: Any) -> bytes:
        return b"query"


def test_a_question_that_is_given_up_ends() -> None:
    index = Endless()
    nothing: Any = None

    async def main() -> None:
        library: Any = Library(index)
        backend = Described(library, nothing, lambda _: nothing)
        task = asyncio.ensure_future(backend._identify(nothing, nothing))
        assert await asyncio.to_thread(index.begun.wait, 60)
        assert not index.ended.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(index.ended.wait, 60)

    asyncio.run(main())
