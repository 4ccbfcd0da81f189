"""Small requests: the latency that a gateway adds to the upstream's."""

from __future__ import annotations

import http.client
import json
import statistics
from typing import TYPE_CHECKING, Any

from benchmarks.gateway.sides import in_front, upstream
from benchmarks.server.conversation import CHAT, COMPLETION, body, request
from benchmarks.server.overhead import CONNECTIONS, WARM_UP
from benchmarks.server.sides import expect, load

if TYPE_CHECKING:
    from benchmarks.server.sides import Running

SLOTS = 64
SLICES = 4
_QUANTILES = ("latency_p50_s", "latency_p99_s", "late_p99_s")


def paced(side: str, count: int, rate: int) -> dict[str, Any]:
    """Send requests at random intervals, alternately through the gateway and directly to the
    upstream.

    The runs alternate every few seconds, so both meet the same load of the machine. A quantile is
    the median of the quantiles of all runs.

    Raises:
        SystemExit: An answer is missing or differs from the upstream's.
    """
    part = count // SLICES
    found: dict[str, list[dict[str, Any]]] = {"direct": [], "through": []}
    with upstream() as fake, in_front(side, fake, SLOTS) as server:
        sides = {"direct": fake, "through": server}
        for one in sides.values():
            compare(one)
            asked = request(one.key, body())
            expect(load(one, "closed", WARM_UP, CONNECTIONS, asked), 200, WARM_UP)
        for number in range(SLICES):
            for name, one in sorted(sides.items(), reverse=number % 2 == 1):
                asked = request(one.key, body())
                measured = load(one, "paced", part, CONNECTIONS, rate, asked)
                expect(measured, 200, part)
                found[name].append(measured)
    through, direct = found["through"], found["direct"]
    quantiles = {one: _median(through, one) for one in _QUANTILES}
    floors = {f"direct_{one}": _median(direct, one) for one in _QUANTILES}
    return {
        "count": part * SLICES,
        "cpu_s": sum(one["cpu_s"] for one in through),
        **quantiles,
        **floors,
        "overhead_p50_s": quantiles["latency_p50_s"] - floors["direct_latency_p50_s"],
        "overhead_p99_s": quantiles["latency_p99_s"] - floors["direct_latency_p99_s"],
    }


def _median(turns: list[dict[str, Any]], name: str) -> float:
    found: float = statistics.median(one[name] for one in turns)
    return found


def compare(server: Running) -> None:
    """Check that an answer equals the upstream's, field by field.

    Raises:
        SystemExit: The answer differs.
    """
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    fields = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
    connection.request("POST", CHAT, json.dumps(body()).encode(), fields)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != 200 or json.loads(content) != COMPLETION:
        raise SystemExit(f"answer differs from the upstream's: {answer.status} {content!r}")
