"""Timed streams and the commands for the no-op servers.

This module does not import polymux, because peers use it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import DEAF, HOLD, STREAM, chunk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


def wanted(values: Mapping[str, Any]) -> list[str]:
    """Return the command in the last message; empty for most messages."""
    messages = values.get("messages") or ({"content": ""},)
    words = str(messages[-1]["content"]).split()
    return words if words and words[0] in (STREAM, HOLD, DEAF) else []


def stamped() -> dict[str, Any]:
    """Return a chunk whose text is the time of its creation."""
    return chunk(str(time.monotonic_ns()))


async def beats(count: int, rate: int) -> AsyncIterator[int]:
    """Yield `count` times, `rate` per second, at the same moments for all streams."""
    period_s = 1 / rate
    for number in range(count):
        await asyncio.sleep(period_s - time.monotonic() % period_s)
        yield number
