"""The server's end of the socket pair that it shares with an engine's process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from polymux.engines.process.framing import FrameReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.engines.process.framing import Frame


class Connection(asyncio.Protocol):
    """Frames in and out; a stream's reader would wake a task for each of them.

    Args:
        take: Called with frames as they come.
    """

    def __init__(self, take: Callable[[list[Frame]], None]) -> None:
        self._take = take
        self._frames = FrameReader()
        self._words = ""
        self._writable = asyncio.Event()
        self._writable.set()
        #: What was wrong with what came, once the connection has ended; empty for nothing.
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        # Other event loops' are no subclasses.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Gives its frames on; what is no message ends the connection."""
        try:
            self._take(self._frames.feed(data))
        except Exception as error:  # Whatever it sends, those who wait must be told.
            self._words = f"sent what is no message ({error!r:.200})"
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Tells whoever waits for that."""
        self._writable.set()
        if not self.lost.done():
            self.lost.set_result(self._words)

    def pause_writing(self) -> None:
        """The process has enough to read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has read most of it."""
        self._writable.set()

    def write(self, data: bytes) -> None:
        """Sends; to a process that is gone, nothing."""
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Waits until the process has taken most of what was sent."""
        if not self._writable.is_set():
            await self._writable.wait()

    def close(self) -> None:
        """The process is told by it that nobody is there any more."""
        self._transport.close()
