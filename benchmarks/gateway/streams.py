"""Many concurrent streams: correct bytes, even timing and memory."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from benchmarks.floors.programs import TIMEOUT_S, built
from benchmarks.gateway.sides import in_front, upstream
from benchmarks.server.conversation import STREAM, body, request
from benchmarks.server.processes import cpu_s, reset_peak, rss_bytes

if TYPE_CHECKING:
    from benchmarks.server.sides import Running

_FIRST_STREAMS, _FIRST_TOKENS = 32, 3


def ordered(tokens: int, rate: int) -> dict[str, Any]:
    """Return a chat request that sets the number and rate of tokens, in the format of
    `content.hpp`. The client adds the stream's number and time."""
    return body(f"{STREAM} {0:06} {tokens:06} {rate:06} {0:020}", stream=True)


def load(server: Running, count: int, tokens: int, rate: int, ramp_ms: int) -> dict[str, Any]:
    """Run `streams.cpp` and return its figures.

    Raises:
        SystemExit: It failed.
    """
    path = server.folder / "order"
    path.write_bytes(request(server.key, ordered(tokens, rate)))
    command = [str(built("streams")), str(server.port), str(count), str(ramp_ms), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip() or f"streams ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def streams(side: str, count: int, tokens: int, rate: int, ramp_ms: int) -> dict[str, Any]:
    """Run streams of `tokens` tokens at `rate` tokens per second, started one after the other."""
    with upstream() as fake, in_front(side, fake, count) as server:
        load(server, _FIRST_STREAMS, _FIRST_TOKENS, rate, 0)
        reset_peak(server.pid)
        idle, before_s = rss_bytes(server.pid), cpu_s(server.pid)
        found = load(server, count, tokens, rate, ramp_ms)
        return {
            **found,
            "count": found["tokens"],
            "cpu_s": cpu_s(server.pid) - before_s,
            "idle_bytes": idle,
            "peak_bytes": rss_bytes(server.pid, "VmHWM"),
        }
