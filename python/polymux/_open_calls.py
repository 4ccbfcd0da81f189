"""The calls of an `AsyncLocal` that have not ended: closing it ends them, wherever they wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakSet

from polymux.errors import OperationCancelledError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType


class _OpenCall:
    """A call in its task; ended by cancelling that, which its caller is told of by an error."""

    def __init__(self, calls: OpenCalls) -> None:
        self._calls = calls
        self._is_ended = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self.task = task
        self._cancelling = task.cancelling()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls.open.add(self)

    def end(self) -> None:
        self._is_ended = True
        self.task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._calls.open.discard(self)
        self.over.set_result(None)
        if not self._is_ended:
            return
        # As in asyncio.timeout: what others have cancelled stays cancelled.
        is_ours = self.task.uncancel() <= self._cancelling
        if is_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise OperationCancelledError("it was closed while this was done") from error


class OpenCalls:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        """There is none."""
        self.open: set[_OpenCall] = set()
        self._streams: WeakSet[OpenStream] = WeakSet()

    def entered(self) -> _OpenCall:
        """A scope for what a call does in the current task.

        Raises:
            OperationCancelledError: `end` was called meanwhile.
        """
        return _OpenCall(self)

    def stream(self, pieces: AsyncGenerator[bytes]) -> OpenStream:
        """The pieces, which may be read as long as nobody has called `end`."""
        found = OpenStream(self, pieces)
        self._streams.add(found)
        return found

    async def end(self, longest_s: float) -> None:
        """Cancels all but its caller's own, and waits until they have stopped, at most so long."""
        own = asyncio.current_task()
        ending = [one for one in self.open if one.task is not own]
        for one in ending:
            one.end()
        if ending:
            await asyncio.wait([one.over for one in ending], timeout=longest_s)
        for stream in list(self._streams):
            await stream.end()


class OpenStream:
    """The pieces of a stream, each of which is a call of its own."""

    def __init__(self, calls: OpenCalls, pieces: AsyncGenerator[bytes]) -> None:
        """Nothing is begun."""
        self._calls = calls
        self._pieces = pieces
        self._is_read = self._is_over = False

    def __aiter__(self) -> OpenStream:
        """Itself."""
        return self

    async def __anext__(self) -> bytes:
        """The next piece.

        Raises:
            OperationCancelledError: What it is of is closed.
        """
        if self._is_over:
            raise OperationCancelledError("it was closed before the stream's end")
        self._is_read = True
        try:
            with self._calls.entered():
                return await anext(self._pieces)
        finally:
            self._is_read = False

    async def aclose(self) -> None:
        """Ends what makes them, unless one is being read."""
        if not self._is_read:
            await self._pieces.aclose()

    async def end(self) -> None:
        """The same for good: whoever reads on is told."""
        self._is_over = True
        await self.aclose()
