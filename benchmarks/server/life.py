"""From the start to the first request that is taken, and from the wish to stop to the end."""

from __future__ import annotations

import os
import signal
import statistics
import time
from typing import Any

from benchmarks.server.conversation import HOLD, body
from benchmarks.server.processes import cpu_s
from benchmarks.server.program import serving
from benchmarks.server.sides import STOP_S, running
from benchmarks.server.wire import asked, places, read_until, until

GRACE_S = 2.0


def start(_: str, count: int) -> dict[str, Any]:
    """Started so many times; each with a store of its own."""
    taken, spent = [], 0.0
    for _ in range(count):
        with serving("") as (server, seconds):
            taken.append(seconds)
            spent += cpu_s(server.pid)
    return {
        "count": count,
        "cpu_s": spent,
        "ready_median_s": statistics.median(taken),
        "ready_max_s": max(taken),
    }


def drain(side: str, count: int) -> dict[str, Any]:
    """Told to stop while streams are open and one more request is at work.

    Raises:
        SystemExit: A stream was not ended by an event, or the exit code is not 0.
    """
    with running(side, slots=count + 1, grace_s=GRACE_S) as server:
        streams = [asked(server, body(HOLD, stream=True)) for _ in range(count)]
        for one in streams:
            read_until(one, b"data: ")
        whole = asked(server, body(HOLD))
        until(lambda: places(server, "noop") == (count + 1, 0))
        spent = cpu_s(server.pid)
        began = time.monotonic()
        os.kill(server.pid, signal.SIGTERM)
        ended = sum(b'"code":"draining"' in read_until(one, b"\r\n0\r\n") for one in streams)
        told_s = time.monotonic() - began
        assert server.process is not None
        answer = read_until(whole, b"}")
        status = server.process.wait(STOP_S)
        took = time.monotonic() - began
    if ended != count or status != 0:
        raise SystemExit(f"{ended} of {count} streams were ended by an event; exit code {status}")
    return {
        "count": count,
        "cpu_s": spent,
        "told_s": told_s,
        "wall_s": took,
        "over_grace_s": took - GRACE_S,
        "whole": answer[:12].decode(),
    }
