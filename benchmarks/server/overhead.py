"""Small requests and streams: server cost and latency."""

from __future__ import annotations

from typing import Any

from benchmarks.server.conversation import body, request, streamed
from benchmarks.server.sides import expect, load, running

CONNECTIONS = 32
WARM_UP = 320


def paced(side: str, count: int, rate: int) -> dict[str, Any]:
    """Send requests at random intervals, as independent clients do."""
    with running(side) as server:
        asked = request(server.key, body())
        expect(load(server, "closed", WARM_UP, CONNECTIONS, asked), 200, WARM_UP)
        found = load(server, "paced", count, CONNECTIONS, rate, asked)
        expect(found, 200, count)
    return found


def closed(side: str, count: int) -> dict[str, Any]:
    """Send the next request when an answer arrives, on several connections."""
    with running(side) as server:
        asked = request(server.key, body())
        expect(load(server, "closed", WARM_UP, CONNECTIONS, asked), 200, WARM_UP)
        found = load(server, "closed", count, CONNECTIONS, asked)
        expect(found, 200, count)
    return found


def streams(side: str, count: int, tokens: int, rate: int) -> dict[str, Any]:
    """Run concurrent streams of `tokens` tokens each at `rate` tokens per second.

    Raises:
        SystemExit: Tokens are missing.
    """
    with running(side, max_concurrency=count) as server:
        expect(
            load(server, "closed", count, count, request(server.key, streamed(2, rate))), 200, count
        )
        found = load(server, "closed", count, count, request(server.key, streamed(tokens, rate)))
        expect(found, 200, count)
    if found["tokens"] != count * tokens:
        raise SystemExit(f"{found['tokens']} tokens received, expected {count * tokens}")
    # Measured from the first request, including connecting and the wait for the first token.
    return {**found, "count": found["tokens"], "wall_over_ideal": found["wall_s"] * rate / tokens}
