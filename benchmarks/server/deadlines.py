"""Connections that send little or nothing: when each is closed, and when it should be."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.server.conversation import CHAT, head
from benchmarks.server.processes import cpu_s
from benchmarks.server.sides import OURS, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.server.sides import Running

#: Seconds between two bytes, too short for any deadline that limits the gap between bytes.
_DRIP_S = 0.2
#: Connections still open this long after their deadline count as never closed.
GIVE_UP_S = 2


class Slow(NamedTuple):
    """A slow client.

    Attributes:
        name: What it does.
        first: Bytes that it sends at once.
        drips: Bytes that it sends one at a time, endlessly.
        answered: Whether the server answers first; the time then counts from the end of the answer.
    """

    name: str
    first: bytes
    drips: bool = False
    answered: bool = False


def peers(server: Running) -> list[Slow]:
    """Return a slow client of each kind."""
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


async def _lasted_s(server: Running, slow: Slow, max_s: float) -> float | None:
    """Return the seconds until the server closes the connection; None if it stays open for
    `max_s`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    began = time.monotonic()
    writer.write(slow.first)
    if slow.answered:
        await reader.readuntil(b"}")
        began = time.monotonic()
    dripping = asyncio.ensure_future(_dripping(writer)) if slow.drips else None
    try:
        async with asyncio.timeout(max_s):
            async for _ in _pieces(reader):
                pass  # Ignore the answer that precedes the close.
        return time.monotonic() - began
    except TimeoutError:
        return None
    finally:
        if dripping is not None:
            dripping.cancel()
        writer.close()


async def _all(server: Running, each: int, max_s: float) -> dict[str, list[float | None]]:
    kinds = [slow for slow in peers(server) for _ in range(each)]
    lasted = await asyncio.gather(*[_lasted_s(server, slow, max_s) for slow in kinds])
    found: dict[str, list[float | None]] = {}
    for slow, seconds in zip(kinds, lasted, strict=True):
        found.setdefault(slow.name, []).append(seconds)
    return found


def closing(side: str, each: int, seconds: int) -> dict[str, Any]:
    """Measure how far from its deadline each of many connections is closed, and count those
    never closed.

    uvicorn has such a deadline only between two requests. llama.cpp's server limits only the gaps
    between bytes, and uses a thread per connection.

    Args:
        side: Name of the server.
        each: Connections of each kind.
        seconds: Deadline of headers, bodies and idle connections.

    Raises:
        SystemExit: polymux never closed a connection.
    """
    names = ("header_s", "keep_alive_s", "body_first_s")
    # The deadline of a body grows with its bytes. The few bytes of a slow client hardly change it.
    limits = {name: float(seconds) for name in names} | {"body_bytes_per_s": 1e6}
    with running(side, limits=limits) as server:
        found = asyncio.run(_all(server, each, seconds + GIVE_UP_S))
        spent_s = cpu_s(server.pid)
    never = sorted({name for name, lasted in found.items() if None in lasted})
    if never and side == OURS:
        raise SystemExit(f"never closed: {', '.join(never)}")
    closed = [(one - seconds, name) for name, lasted in found.items() for one in lasted if one]
    figures = {
        "count": sum(map(len, found.values())),
        "cpu_s": spent_s,
        "open": sum(lasted.count(None) for lasted in found.values()),
        "open_of": never,
    }
    if closed:
        figures |= {
            "latest_s": max(closed)[0],
            "latest_of": max(closed)[1],
            "earliest_s": min(closed)[0],
        }
    return figures
