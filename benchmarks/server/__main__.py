"""`scripts/bench server`: polymux compared with plain applications, plain libraries and its
goals."""

from __future__ import annotations

import sys
from typing import NamedTuple

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.environment import Environment
from benchmarks.server.models import DIRECT, LLAMA
from benchmarks.server.sides import (
    FASTAPI,
    FLOOR,
    IN_PROCESS,
    ON_UVLOOP,
    QUIET,
    RAW,
    STARLETTE,
)
from benchmarks.verdicts import CPU, WALL, Figure, Goal, each, plain

#: Applications that offer most of what polymux's server offers.
APPLICATIONS = (FASTAPI, RAW)


def ms(title: str, key: str, digits: int = 2) -> Figure:
    """Return a column in milliseconds."""
    return Figure(f"{title}, ms", plain(key, 1e3), digits)


def per_second(title: str, key: str = "count", scale: float = 1.0) -> Figure:
    """Return a column of items per second of wall time."""
    return Figure(title, lambda measured: scale * measured[key] / measured["wall_s"], 0)


OWN_CPU = Figure("without the engine's process", each("own_cpu_s"))
P50, P99 = ms("p50", "latency_p50_s"), ms("p99", "latency_p99_s")
LATE = ms("sent late, p99", "late_p99_s")
RATE = per_second("requests a second")
IDEAL = Figure("wall over ideal", plain("wall_over_ideal"), 3)
LAG = ms("lag p99", "lag_p99_s")
ANSWERED = ms("answered, longest", "answered_max_s", 1)
READ = Figure("KiB read before", plain("read_bytes", 1 / 1024))
DROPPED = Figure("KiB dropped after", plain("dropped_bytes", 1 / 1024), 0)
MEMORY = Figure("more memory, MB", plain("rss_bytes", 1e-6))
MEGABYTES = per_second("MB a second", "bytes", 1e-6)
LATEST = Figure("closed late, most, s", plain("latest_s"), 3)
EARLIEST = Figure("least", plain("earliest_s"), 3)
QUEUED, STREAMING = ms("queued", "queued_max_s", 0), ms("in a stream", "streaming_max_s", 0)
WHOLE, DEAF = ms("at work", "whole_max_s", 0), ms("at an engine that is deaf", "deaf_s", 0)
KEPT = Figure("kept for 2 s and more", plain("kept"), 0)
PREFILL = ms("while a prompt is read", "prefill_max_s", 0)
IN_LOAD, IN_UPLOAD = ms("in load", "load_max_s", 0), ms("in an upload", "upload_max_s", 0)
CONVERSION = ms("in a conversion", "conversion_max_s", 0)
GROWTH = Figure("most over the first tenth's", plain("growth"), 3)
RSS = Figure("MB at the end", plain("last_bytes", 1e-6))
READY, READY_MAX = ms("ready", "ready_median_s", 0), ms("longest", "ready_max_s", 0)
OVER = Figure("s over the grace", plain("over_grace_s"), 3)
STREAMS_ENDED = ms("all streams ended", "ended_s", 0)
BY_EVENT = Figure("by an event", plain("by_event"), 0)
STATUS = Figure("exit code", plain("status"), 0)
REAL_TIME = Figure("seconds for a second", plain("real_time"), 3)


def open_of(count: int) -> Figure:
    """Return a column of connections that are still open long after their deadline."""
    return Figure(f"open 2 s later, of {count}", plain("open"), 0)


class Sizes(NamedTuple):
    """Size of the runs."""

    paced: int
    closed: int
    streams: tuple[int, int, int]
    bodies: int
    flood: int
    refused: int
    slow: int
    leaving: int
    engines: int
    uploads: tuple[int, int]
    mixed: int
    starts: int
    open: int
    chats: tuple[int, int]
    speech: tuple[int, int]


FULL = Sizes(
    2_000,
    10_000,
    (100, 500, 100),
    10,
    5_000,
    500,
    10,
    10,
    3,
    (50, 50),
    10_000,
    5,
    50,
    (6, 96),
    (2, 3),
)
SMALL = Sizes(150, 320, (20, 25, 50), 2, 100, 20, 1, 1, 1, (4, 4), 400, 1, 5, (1, 12), (1, 1))


def variant(name: str, what: str, *numbers: int, ours: bool = False) -> Variant:
    """Return the command for one run of one server."""
    command = (sys.executable, "-m", "benchmarks.server.measure", what, name, *map(str, numbers))
    return Variant(name, command, ours=ours)


def case(
    title: str,
    variants: tuple[Variant, ...],
    figures: tuple[Figure, ...],
    *goals: Goal,
    min_rounds: int = 0,
) -> Case:
    """Return a comparison of servers."""
    return Case(title, variants, figures, goals, who="server", min_rounds=min_rounds)


def beside(
    peers: tuple[str, ...],
    title: str,
    what: str,
    numbers: tuple[int, ...],
    figures: tuple[Figure, ...],
    *goals: Goal,
) -> Case:
    """Return a case whose goals apply to polymux alone, with the figures of peers for
    comparison."""
    variants = tuple(variant(one, what, *numbers, ours=one == OURS) for one in (OURS, *peers))
    return case(title, variants, figures, *goals)


def at_most(wanted: float, figure: Figure, text: str = "") -> Goal:
    """Return a goal for polymux's own figure, without a peer."""
    return Goal(text or figure.title, wanted, figure=figure, at_most=True)


def overhead(sizes: Sizes) -> list[Case]:
    def contenders(what: str, *numbers: int) -> tuple[Variant, ...]:
        own = [variant(one, what, *numbers, ours=True) for one in (OURS, IN_PROCESS, FLOOR)]
        peers = (QUIET, OURS + ON_UVLOOP, FASTAPI, FASTAPI + ON_UVLOOP, RAW)
        return (*own, *[variant(one, what, *numbers) for one in peers])

    return [
        case(
            "300 requests a second",
            contenders("paced", sizes.paced, 300),
            (CPU, OWN_CPU, P50, P99, LATE),
            at_most(0.6, P50),
            at_most(2, P99),
        ),
        case(
            "32 connections",
            contenders("closed", sizes.closed),
            (CPU, OWN_CPU, RATE),
            Goal("requests a second over FastAPI's", 1.2, FASTAPI, WALL),
        ),
    ]


def streams(sizes: Sizes) -> Case:
    """Streams whose tokens arrive at a fixed rate."""
    count, _, rate = sizes.streams
    variants = (
        variant(OURS, "streams", *sizes.streams, ours=True),
        variant(IN_PROCESS, "streams", *sizes.streams, ours=True),
        variant(STARLETTE, "streams", *sizes.streams),
        variant(RAW, "streams", *sizes.streams),
    )
    return case(
        f"{count} streams of {rate} tokens a second",
        variants,
        (CPU, OWN_CPU, IDEAL, LAG),
        Goal("CPU over StreamingResponse's", 1.1, STARLETTE, at_most=True),
        Goal("the same, the server's process", 1.1, STARLETTE, OWN_CPU, at_most=True),
        at_most(1.1, IDEAL),
    )


def refusals(sizes: Sizes) -> list[Case]:
    good = (ms("good p50", "good_p50_s"), ms("longest", "good_max_s"), ms("alone", "alone_p50_s"))
    return [
        beside(
            APPLICATIONS,
            "100 MB behind a wrong key",
            "large_bodies",
            (sizes.bodies,),
            (ANSWERED, READ, DROPPED, MEMORY),
            at_most(50, ANSWERED),
            at_most(64, READ),
        ),
        beside(
            APPLICATIONS,
            "a flood of wrong keys",
            "flood",
            (sizes.flood,),
            (per_second("401 a second"), *good),
        ),
        beside(
            (FASTAPI,), "a full queue", "queue_full", (sizes.refused,), (P50, P99), at_most(5, P99)
        ),
    ]


def connections(sizes: Sizes, *, quick: bool) -> list[Case]:
    """Slow clients, and clients that disconnect."""
    cases = [
        beside(
            (FASTAPI,),
            f"deadlines of {seconds} s",
            "closing",
            (sizes.slow, seconds),
            (LATEST, EARLIEST, open_of(6 * sizes.slow)),
            at_most(0.5, LATEST),
        )
        for seconds in ((1,) if quick else (1, 10))
    ]
    return [
        *cases,
        beside(
            (*APPLICATIONS, LLAMA),
            "callers who leave",
            "leaving",
            (sizes.leaving,),
            (QUEUED, STREAMING, WHOLE, DEAF, KEPT),
            at_most(200, QUEUED),
            at_most(200, STREAMING),
            at_most(2000, WHOLE),
            at_most(2000, DEAF),
        ),
        beside(
            (LLAMA,),
            "callers who leave real engines",
            "leaving_engines",
            (sizes.engines,),
            (IN_LOAD, IN_UPLOAD, PREFILL, CONVERSION),
            at_most(2000, IN_LOAD),
            at_most(2000, IN_UPLOAD),
            at_most(600, PREFILL),
            at_most(2000, CONVERSION),
        ),
    ]


def burdens(sizes: Sizes) -> list[Case]:
    """Many uploads at once, memory over many requests, start and stop."""
    count, mebibytes = sizes.uploads
    return [
        beside(
            APPLICATIONS,
            f"{count} uploads of {mebibytes} MiB",
            "uploads",
            sizes.uploads,
            (CPU, MEGABYTES, MEMORY),
            Goal("MB a second", 150, figure=MEGABYTES),
            at_most(150, MEMORY),
        ),
        beside(
            APPLICATIONS,
            f"{sizes.mixed:,} mixed requests",
            "mixed",
            (sizes.mixed,),
            (GROWTH, RSS),
            at_most(1.1, GROWTH),
        ),
        beside(
            (*APPLICATIONS, LLAMA),
            "start",
            "start",
            (sizes.starts,),
            (READY, READY_MAX),
            at_most(1500, READY),
        ),
        beside(
            APPLICATIONS,
            f"stopping with {sizes.open} open streams",
            "drain",
            (sizes.open,),
            (OVER, STREAMS_ENDED, BY_EVENT, STATUS),
            at_most(1, OVER),
        ),
    ]


def engines(sizes: Sizes) -> list[Case]:
    _, tokens = sizes.chats
    libraries = (OURS, DIRECT, LLAMA)
    return [
        case(
            f"chat, {tokens} tokens",
            tuple(variant(one, "chat", *sizes.chats, ours=one == OURS) for one in libraries),
            (CPU, per_second("tokens a second")),
            Goal("tokens for the library's CPU time", 0.95, DIRECT),
            Goal("tokens for llama.cpp's server's CPU time", 0.95, LLAMA),
            min_rounds=15,
        ),
        case(
            "speech",
            tuple(
                variant(one, "speech", *sizes.speech, ours=one == OURS) for one in (OURS, DIRECT)
            ),
            (Figure("CPU, s each", each("cpu_s", 1), 2), REAL_TIME),
            Goal("seconds for a second, over the library's", 1.05, DIRECT, REAL_TIME, at_most=True),
        ),
    ]


def main() -> None:
    options = arguments("server", __doc__)
    environment = Environment("server")
    if options.with_peers:
        environment.prepare()
    sizes = SMALL if options.quick else FULL
    cases = [
        *overhead(sizes),
        streams(sizes),
        *refusals(sizes),
        *connections(sizes, quick=options.quick),
        *burdens(sizes),
        *engines(sizes),
    ]
    compete(
        "server", cases, options, environment.versions() if options.with_peers else {}, waits=True
    )


if __name__ == "__main__":
    main()
