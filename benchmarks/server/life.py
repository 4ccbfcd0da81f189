"""Time from the start to the first accepted request, and from the stop signal to the exit."""

from __future__ import annotations

import os
import signal
import statistics
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import HOLD, body
from benchmarks.server.models import LLAMA, llama, weights
from benchmarks.server.processes import cpu_s
from benchmarks.server.program import serving
from benchmarks.server.sides import OURS, STOP_S, running
from benchmarks.server.wire import asked, get, places, read_until, until

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from benchmarks.server.sides import Running

GRACE_S = 2.0


@contextmanager
def _ready(side: str) -> Iterator[tuple[Running, float]]:
    """Start a server; yields it with the seconds until its first answer.

    llama.cpp's has then loaded its model.
    """
    if side == OURS:
        with serving("") as both:
            yield both
        return
    weights()  # Find the weights before timing starts.
    began = time.monotonic()
    path = "/health" if side == LLAMA else "/healthz"
    with llama() if side == LLAMA else running(side) as server:
        until(lambda: b'"ok"' in get(server, path))
        yield server, time.monotonic() - began


def start(side: str, count: int) -> dict[str, Any]:
    """Start the server `count` times, each time with a new store."""
    taken, spent = [], 0.0
    for _ in range(count):
        with _ready(side) as (server, seconds):
            taken.append(seconds)
            spent += cpu_s(server.pid)
    return {
        "count": count,
        "cpu_s": spent,
        "ready_median_s": statistics.median(taken),
        "ready_max_s": max(taken),
    }


def _ended(stream: socket.socket) -> bool:
    """Return whether the stream ended with an event, not only with a closed connection."""
    try:
        return b'"code":"draining"' in read_until(stream, b"\r\n0\r\n")
    except ConnectionError:
        return False


def drain(side: str, count: int) -> dict[str, Any]:
    """Stop the server while streams are open and one more request is running.

    uvicorn has no shutdown timeout by default, so it is configured with the same one. It ends
    streams by closing them, and itself with the signal that it received.

    Raises:
        SystemExit: polymux ended a stream without an event, or with an exit code other than 0.
    """
    with (
        running(side, max_concurrency=count + 1, shutdown_timeout_s=GRACE_S) as server,
        ExitStack() as open_ones,
    ):
        streams = [
            open_ones.enter_context(asked(server, body(HOLD, stream=True))) for _ in range(count)
        ]
        for one in streams:
            read_until(one, b"data: ")
        whole = open_ones.enter_context(asked(server, body(HOLD)))
        until(lambda: places(server, "noop") == (count + 1, 0))
        spent = cpu_s(server.pid)
        began = time.monotonic()
        os.kill(server.pid, signal.SIGTERM)
        ended = sum([_ended(one) for one in streams])
        ended_s = time.monotonic() - began
        assert server.process is not None
        answer = read_until(whole, b"}")
        status = server.process.wait(STOP_S)
        took = time.monotonic() - began
    if side == OURS and (ended != count or status != 0):
        raise SystemExit(f"{ended} of {count} streams were ended by an event; exit code {status}")
    return {
        "count": count,
        "cpu_s": spent,
        "ended_s": ended_s,
        "by_event": ended,
        "status": status,
        "wall_s": took,
        "over_grace_s": took - GRACE_S,
        "whole": answer[:12].decode(),
    }
