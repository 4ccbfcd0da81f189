"""What the applications have in common: events of streams, work without end, and who is at it."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import HOLD
from benchmarks.server.pacing import beats, stamped, wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_at_work = 0


@contextmanager
def place() -> Iterator[None]:
    """Taken as long as somebody is at work."""
    global _at_work
    _at_work += 1
    try:
        yield
    finally:
        _at_work -= 1


def metrics() -> str:
    """How many are at work, in the words of our own server."""
    return f'polymux_running{{backend="noop"}} {_at_work}\n'


async def held() -> None:
    """Work that only a caller who leaves would end."""
    with place():
        await asyncio.Event().wait()


async def events(values: dict[str, Any]) -> AsyncIterator[bytes]:
    """The events of a stream."""
    words = wanted(values)
    if words[0] == HOLD:
        with place():
            yield _event()
            await asyncio.Event().wait()
    _, tokens, rate = words
    async for _ in beats(int(tokens), int(rate)):
        yield _event()
    yield b"data: [DONE]\n\n"


def _event() -> bytes:
    return b"data: " + json.dumps(stamped(), separators=(",", ":")).encode() + b"\n\n"
