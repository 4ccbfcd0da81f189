"""Code shared by the applications: stream events, endless work, and the number of running
requests."""

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
    """Count a running request."""
    global _at_work
    _at_work += 1
    try:
        yield
    finally:
        _at_work -= 1


def metrics() -> str:
    """Return the number of running requests, in the format of polymux's metrics."""
    return f'polymux_running{{backend="noop"}} {_at_work}\n'


async def held() -> None:
    """Work until the client disconnects."""
    with place():
        await asyncio.Event().wait()


async def events(values: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yield the events of a stream."""
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
