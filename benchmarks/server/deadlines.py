"""Connections that do nothing, or next to nothing: when each is closed, and when it should be."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.server.conversation import CHAT, head
from benchmarks.server.processes import cpu_s
from benchmarks.server.sides import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.server.sides import Running

#: Slow enough that no deadline which counts gaps would end it.
_DRIP_S = 0.2
_LONGEST_S = 60


class Slow(NamedTuple):
    """A peer that takes its time.

    Attributes:
        name: What it does.
        first: What it sends at once.
        drips: What it goes on to send, a byte at a time, without end.
        answered: Whether an answer to that comes first, and the time counts from its end.
    """

    name: str
    first: bytes
    drips: bool = False
    answered: bool = False


def peers(server: Running) -> list[Slow]:
    """One of each kind."""
    whole = head(server.key, 1_000)
    healthy = head(server.key, 0, path="/healthz", method="GET")
    return [
        Slow("silent", b""),
        Slow("silent after an answer", healthy, answered=True),
        Slow("half a header", whole[: len(whole) // 2]),
        Slow(
            "a header in drips",
            f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ".encode(),
            drips=True,
        ),
        Slow("a header and no body", whole),
        Slow("a body in drips", whole, drips=True),
    ]


async def _dripping(writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while True:
            await asyncio.sleep(_DRIP_S)
            writer.write(b" ")


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    with suppress(ConnectionError):
        while piece := await reader.read(1 << 16):
            yield piece


async def _lasted_s(server: Running, slow: Slow) -> float:
    """How long the server puts up with it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    began = time.monotonic()
    writer.write(slow.first)
    if slow.answered:
        await reader.readuntil(b"}")
        began = time.monotonic()
    dripping = asyncio.ensure_future(_dripping(writer)) if slow.drips else None
    try:
        async with asyncio.timeout(_LONGEST_S):
            async for _ in _pieces(reader):
                pass  # What it is told before it is closed.
        return time.monotonic() - began
    finally:
        if dripping is not None:
            dripping.cancel()
        writer.close()


async def _all(server: Running, each: int) -> dict[str, list[float]]:
    kinds = [slow for slow in peers(server) for _ in range(each)]
    lasted = await asyncio.gather(*[_lasted_s(server, slow) for slow in kinds])
    found: dict[str, list[float]] = {}
    for slow, seconds in zip(kinds, lasted, strict=True):
        found.setdefault(slow.name, []).append(seconds)
    return found


def closing(side: str, each: int, seconds: int) -> dict[str, Any]:
    """How far from its deadline each is closed, all of them at once.

    Args:
        side: Ours.
        each: Connections of each kind.
        seconds: The deadline of headers, bodies and idle connections.
    """
    names = ("header_s", "keep_alive_s", "body_first_s")
    # A body may take as long as its bytes allow besides; those of a drip are next to none.
    limits = {name: float(seconds) for name in names} | {"body_bytes_per_s": 1e6}
    with running(side, limits=limits) as server:
        found = asyncio.run(_all(server, each))
        late = {name: max(one) - seconds for name, one in found.items()}
        return {
            "count": sum(map(len, found.values())),
            "cpu_s": cpu_s(server.pid),
            "latest_s": max(late.values()),
            "earliest_s": min(min(one) for one in found.values()) - seconds,
            "latest_of": max(late, key=lambda name: late[name]),
        }
