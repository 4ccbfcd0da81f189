"""`scripts/bench gateway`: polymux in front of another server, compared with a plain proxy."""

from __future__ import annotations

import sys
from typing import NamedTuple

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.environment import Environment
from benchmarks.gateway.sides import DIRECT, PROXY
from benchmarks.verdicts import CPU, Figure, Goal, plain

#: Published by LiteLLM; not measured here.
PUBLISHED = (
    "As published, and not measured here: the overhead of LiteLLM in front of a fake OpenAI "
    "endpoint, by an earlier version of its page of benchmarks (docs.litellm.ai/docs/benchmarks), "
    "is 12 ms at p50 and 43 ms at p99 with 2 instances and 1,036 requests a second, 2 ms and 13 ms "
    "with 4 instances and 1,170; each machine has 4 processors and 8 GB."
)


def ms(title: str, key: str, digits: int = 2) -> Figure:
    """Return a column in milliseconds."""
    return Figure(f"{title}, ms", plain(key, 1e3), digits)


OVER_P50, OVER_P99 = ms("overhead p50", "overhead_p50_s"), ms("overhead p99", "overhead_p99_s")
P50, P99 = ms("p50", "latency_p50_s"), ms("p99", "latency_p99_s")
DIRECT_P50 = ms("direct p50", "direct_latency_p50_s")
DIRECT_P99 = ms("direct p99", "direct_latency_p99_s")
LATE = ms("sent late, p99", "late_p99_s")
WRONG = Figure("streams with a wrong byte", plain("wrong"), 0)
GAP_P50, GAP_P99 = ms("gap p50", "gap_p50_s", 1), ms("gap p99", "gap_p99_s", 1)
JITTER = ms("gap off its period, p99", "jitter_p99_s", 1)
LAG, FIRST = ms("lag p99", "lag_p99_s", 1), ms("first token late, p99", "first_lag_p99_s", 1)
PEAK = Figure("peak RSS, MB", plain("peak_bytes", 1e-6))
IDLE = Figure("idle RSS, MB", plain("idle_bytes", 1e-6))
CORES = Figure("cores", lambda measured: measured["cpu_s"] / measured["wall_s"], 2)


class Sizes(NamedTuple):
    """Size of the runs: requests and their rate; streams, their tokens, tokens per second and
    ramp-up time."""

    paced: int
    streams: tuple[int, int, int, int]


FULL = Sizes(2_400, (1_000, 200, 10, 5_000))
SMALL = Sizes(80, (40, 10, 20, 200))


def variant(name: str, what: str, *numbers: int, ours: bool = False) -> Variant:
    """Return the command for one run of one server."""
    command = (sys.executable, "-m", "benchmarks.gateway.measure", what, name, *map(str, numbers))
    return Variant(name, command, ours=ours)


def at_most(wanted: float, figure: Figure, text: str = "") -> Goal:
    """Return a goal for polymux's own figure, without a peer."""
    return Goal(text or figure.title, wanted, figure=figure, at_most=True)


def overhead(count: int, rate: int, *notes: str) -> Case:
    """Small requests at a fixed rate."""
    numbers = (count, rate)
    return Case(
        f"{rate} requests a second",
        (variant(OURS, "paced", *numbers, ours=True), variant(PROXY, "paced", *numbers)),
        (CPU, OVER_P50, OVER_P99, P50, P99, DIRECT_P50, DIRECT_P99, LATE),
        (
            at_most(0.8, OVER_P50),
            at_most(4, OVER_P99),
            Goal("overhead p50 over the plain proxy's", 0.333, PROXY, OVER_P50, at_most=True),
            Goal("overhead p99 over the plain proxy's", 0.333, PROXY, OVER_P99, at_most=True),
        ),
        who="gateway",
        notes=notes,
    )


def streams(sizes: Sizes) -> Case:
    """Streams whose tokens arrive at a fixed rate."""
    count, _, rate, _ = sizes.streams
    return Case(
        f"{count:,} streams of {rate} tokens a second",
        (
            variant(OURS, "streams", *sizes.streams, ours=True),
            variant(PROXY, "streams", *sizes.streams),
            variant(DIRECT, "streams", *sizes.streams, ours=True),
        ),
        (CPU, CORES, WRONG, GAP_P50, GAP_P99, JITTER, LAG, FIRST, PEAK, IDLE),
        (at_most(0, WRONG), at_most(100, JITTER), at_most(250, PEAK)),
        who="gateway",
    )


def main() -> None:
    options = arguments("gateway", __doc__)
    environment = Environment("gateway")
    if options.with_peers:
        environment.prepare()
    sizes = SMALL if options.quick else FULL
    cases = [
        overhead(sizes.paced, 200),
        overhead(sizes.paced, 300, PUBLISHED),
        streams(sizes),
    ]
    compete(
        "gateway", cases, options, environment.versions() if options.with_peers else {}, waits=True
    )


if __name__ == "__main__":
    main()
