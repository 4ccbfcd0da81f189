"""Work that an engine never comes to the end of, though its process lives: a decoder in a loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from polymux.service.model import Upload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from polymux.engines.process.framing import Frame
    from polymux.engines.process.process import CrashError
    from polymux.service.model import Work
    from polymux.service.temporary_files import Draft

#: Slower than anything is read and decoded that can be.
_READ_BYTES_PER_S = 1e6


class StalledError(Exception):
    """Work has neither told nor written anything for too long.

    Attributes:
        seconds: For how long.
    """

    def __init__(self, seconds: float) -> None:
        """Keeps them."""
        super().__init__(f"nothing for {seconds:.0f} s")
        self.seconds = seconds


async def next_frame(
    frames: asyncio.Queue[Frame | CrashError],
    work: Work,
    drafts: Sequence[Draft],
    begun: Callable[[], bool],
    stalled_s: float | None,
) -> Frame | CrashError:
    """The next frame of work that goes on.

    Args:
        frames: Where they come.
        work: What is done.
        drafts: What it was given to write to.
        begun: Whether it is its turn in the process: what waits there may take its time.
        stalled_s: How long it may neither tell nor write anything, and a second more for each
            megabyte that it was given: what reads a file to its end tells nothing before.
            None: for ever.

    Raises:
        StalledError: It does neither.
    """
    if stalled_s is None or not frames.empty():
        return await frames.get()
    sizes = [one.size_bytes for one in work.values.values() if isinstance(one, Upload)]
    longest_s = stalled_s + sum(sizes) / _READ_BYTES_PER_S
    before = None
    while True:
        written = _written_bytes(drafts) if begun() else None
        if written is not None and written == before:
            raise StalledError(longest_s)
        before = written
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                return await frames.get()


def _written_bytes(drafts: Sequence[Draft]) -> int:
    """What is in drafts so far, and beside them in what becomes them."""
    found = 0
    for draft in drafts:
        for path in (draft.path, *_beside(draft.path)):
            with suppress(OSError):
                found += path.stat().st_size
    return found


def _beside(path: Path) -> list[Path]:
    """What becomes a draft; nothing where its folder cannot be looked into, for now or for ever."""
    with suppress(OSError):
        return list(path.parent.glob(f".{path.name[:32]}*"))
    return []
