"""`scripts/bench streams`: cost of a token, compared with other clients and plain sockets."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.environment import Environment
from benchmarks.floors.programs import FloorServer, built, floor_server
from benchmarks.measure import ROOT, first_line
from benchmarks.verdicts import CPU, LOOP, USER, Figure, Goal, each, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULE = "benchmarks.streams.measure"
EPOLL = "sockets and epoll, no library"
AIOHTTP = "aiohttp"
WALL_S = Figure("wall, s", plain("wall_s"), 2)
LAG_50 = Figure("lag p50, ms", plain("lag_p50_s", 1e3))
LAG_99 = Figure("lag p99, ms", plain("lag_p99_s", 1e3))
MEMORY = Figure("KiB a stream", each("rss_bytes", 1 / 1024))
CLOSED_50 = Figure("closed p50, ms", plain("closed_p50_s", 1e3), 2)
CLOSED_99 = Figure("closed p99, ms", plain("closed_p99_s", 1e3), 2)


class Sizes(NamedTuple):
    """Size of the runs."""

    many: int
    some: int
    open: int
    cancelled: int
    seconds: int
    fast_tokens: int


FULL = Sizes(1_000, 200, 4_000, 200, 10, 200_000)
SMALL = Sizes(40, 20, 50, 10, 1, 2_000)


@contextmanager
def closing_server() -> Iterator[str]:
    """Run the server that records when connections close; yields its URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.servers.closing_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def port_of(url: str) -> str:
    """Return the port at the end of a URL."""
    return url.rpartition(":")[2]


class Contenders:
    """The asyncio clients, each in its environment."""

    def __init__(self, environment: Environment) -> None:
        self._peers = environment

    def ours(self, url: str, *rest: object) -> Variant:
        command = (sys.executable, "-m", MODULE, OURS, url, *map(str, rest))
        return Variant(OURS, command, ours=True)

    def peer(self, name: str, url: str, *rest: object) -> Variant:
        return Variant(name, (self._peers.python, "-m", MODULE, name, url, *map(str, rest)))

    def on_uvloop(self, variant: Variant) -> Variant:
        env = {"PEERS_PACKAGES": str(self._peers.packages)}
        return Variant(f"{variant.name} + uvloop", (*variant.command, "uvloop"), env=env)


def together(server: FloorServer, of: Contenders, sizes: Sizes, rate: int) -> Case:
    """A thousand concurrent streams, slow or fast."""
    tokens = sizes.seconds * rate
    stamped = ("stamped",) if rate > 10 else ()
    rest = ("together", sizes.many, tokens, rate, *stamped)
    ours, aiohttp = of.ours(server.url, *rest), of.peer(AIOHTTP, server.url, *rest)
    floor = bare("epoll_client", "streams", server.port, sizes.many, tokens, rate)
    on_uvloop = {"other": f"{AIOHTTP} + uvloop", "ours": f"{OURS} + uvloop"}
    goals = [
        Goal("CPU over bare sockets'", 2.5, EPOLL, at_most=True),
        Goal("aiohttp with orjson", 3, AIOHTTP),
        Goal("the same, the loop's thread", 9, AIOHTTP, LOOP),
        Goal("the same, both on uvloop", 1.8, **on_uvloop),
        Goal("the loop's thread, both on uvloop", 5, figure=LOOP, **on_uvloop),
    ]
    return Case(
        f"{sizes.many:,} streams of {rate} tokens a second",
        (
            ours,
            of.on_uvloop(ours),
            floor,
            aiohttp,
            of.on_uvloop(aiohttp),
        ),
        (CPU, LOOP, WALL_S, *((LAG_50, LAG_99) if stamped else ())),
        tuple(goals) if rate == 10 else lag_goals(),
    )


def lag_goals() -> tuple[Goal, ...]:
    """Return goals for tokens that arrive faster than they are read: less delay than with
    aiohttp."""
    return tuple(
        Goal(f"aiohttp's {figure.title.split(',')[0]}", 1, AIOHTTP, figure)
        for figure in (LAG_50, LAG_99)
    )


def bare(program: str, *rest: object) -> Variant:
    """Return the same work with plain sockets, without a library."""
    return Variant(EPOLL, (str(built(program)), *map(str, rest)), ours=True)


def against_sdks(server: FloorServer, of: Contenders, sizes: Sizes) -> Case:
    """Fewer streams, because the SDKs cannot keep up with more."""
    tokens = sizes.seconds * 10
    rest = ("together", sizes.some, tokens, 10)
    variants = (
        of.ours(server.url, *rest),
        bare("epoll_client", "streams", server.port, sizes.some, tokens, 10),
        *[of.peer(name, server.url, *rest) for name in ("openai", "groq", "httpx2", AIOHTTP)],
    )
    title = f"{sizes.some} streams of 10 tokens a second"
    return Case(title, variants, (CPU, LOOP, WALL_S), (Goal("AsyncOpenAI", 20, "openai"),))


def memory(url: str, of: Contenders, sizes: Sizes) -> Case:
    """Memory of open streams."""
    rest = ("open", sizes.open)
    goal = Goal("KiB a stream", 24, figure=MEMORY, at_most=True)
    floor = bare("held_streams", "open", port_of(url), sizes.open)
    variants = (of.ours(url, *rest), floor, of.peer(AIOHTTP, url, *rest))
    return Case(f"{sizes.open:,} open streams", variants, (MEMORY,), (goal,))


def cancelling(url: str, of: Contenders, sizes: Sizes) -> Case:
    """Time from the cancellation to the closed socket."""
    rest = ("cancel", sizes.many, sizes.cancelled)
    goal = Goal("cancelled to closed, p99, ms", 5, figure=CLOSED_99, at_most=True)
    floor = bare("held_streams", "cancel", port_of(url), sizes.many, sizes.cancelled)
    variants = (of.ours(url, *rest), floor, of.peer(AIOHTTP, url, *rest))
    title = f"{sizes.cancelled} cancelled of {sizes.many:,} streams"
    return Case(title, variants, (CLOSED_99, CLOSED_50), (goal,))


def one(server: FloorServer, environment: Environment, sizes: Sizes) -> Case:
    """One stream at the server's full speed, without an event loop."""
    module, tokens = "benchmarks.streams.one", sizes.fast_tokens
    variants = (
        Variant(OURS, (sys.executable, "-m", module, OURS, server.url, str(tokens)), ours=True),
        bare("epoll_client", "streams", server.port, 1, tokens, 0),
        *[
            Variant(name, (environment.python, "-m", module, name, server.url, str(count)))
            for name, count in (("requests + orjson", tokens), ("openai", tokens // 10))
        ],
    )
    figures = (Figure(CPU.title, CPU.of, 2), Figure(USER.title, USER.of, 2))
    return Case("one stream at full speed", variants, figures)


def main() -> None:
    options = arguments("streams", __doc__)
    environment = Environment("streams")
    if options.with_peers:
        environment.prepare()
    sizes = SMALL if options.quick else FULL
    of = Contenders(environment)
    with floor_server() as server, closing_server() as closing_url:
        cases = [
            together(server, of, sizes, 10),
            together(server, of, sizes, 50),
            against_sdks(server, of, sizes),
            memory(closing_url, of, sizes),
            cancelling(closing_url, of, sizes),
            one(server, environment, sizes),
        ]
        versions = environment.versions() if options.with_peers else {}
        versions["libcurl"] = first_line(["curl-config", "--version"])
        compete("streams", cases, options, versions, waits=True)


if __name__ == "__main__":
    main()
