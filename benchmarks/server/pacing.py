"""Streams by the clock, and what the no-op servers are told to do; without polymux, for peers."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import DEAF, HOLD, STREAM, chunk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


def wanted(values: Mapping[str, Any]) -> list[str]:
    """What the last message tells the engine to do; most tell nothing."""
    messages = values.get("messages") or ({"content": ""},)
    words = str(messages[-1]["content"]).split()
    return words if words and words[0] in (STREAM, HOLD, DEAF) else []


def stamped() -> dict[str, Any]:
    """A piece whose text is the time at which it was made."""
    return chunk(str(time.monotonic_ns()))


async def beats(count: int, rate: int) -> AsyncIterator[int]:
    """So many, so many a second, at the same moments for all who ask."""
    period_s = 1 / rate
    for number in range(count):
        await asyncio.sleep(period_s - time.monotonic() % period_s)
        yield number
