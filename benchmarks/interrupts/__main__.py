"""`scripts/bench interrupts`: how long a call goes on after Ctrl-C."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from benchmarks.contest import Case, Variant, arguments, compete
from benchmarks.floors.programs import floor_server
from benchmarks.interrupts.waiting import CALLS
from benchmarks.verdicts import Figure, Goal, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

FLOOR = "time.sleep"
MEDIAN = Figure("p50, ms", plain("median_s", 1e3), 2)
WORST = Figure("worst of the round, ms", plain("worst_s", 1e3), 2)
COUNT, QUICK_COUNT = 10, 1
MOST_MS = 20


@contextmanager
def listener(*, backlog: int) -> Iterator[tuple[str, int]]:
    """A socket that listens, and that nobody ever looks at."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(backlog)
        yield listening.getsockname()


@contextmanager
def silent() -> Iterator[str]:
    """The address of a server that takes connections, and says and reads nothing."""
    with listener(backlog=1_000) as (host, port):
        yield f"http://{host}:{port}"


@contextmanager
def full() -> Iterator[str]:
    """The address of a server that takes no more connections."""
    with listener(backlog=0) as (host, port), ExitStack() as stack:
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.settimeout(0)
            one.connect_ex((host, port))
        yield f"http://{host}:{port}"


def main() -> None:
    """Starts the servers, measures."""
    options = arguments("interrupts", __doc__)
    count = QUICK_COUNT if options.quick else COUNT
    with floor_server() as streams, silent() as nothing, full() as nobody:
        urls = {"a stream between two chunks": streams.url, "connecting": nobody}

        def contender(name: str) -> Variant:
            url = urls.get(name, nothing)
            command = (sys.executable, "-m", "benchmarks.interrupts.measure", name, url, str(count))
            return Variant(name, command, ours=True)

        names = [*CALLS, FLOOR]
        case = Case(
            "Ctrl-C in what waits",
            tuple(contender(name) for name in names),
            (WORST, MEDIAN),
            tuple(
                Goal(f"{name}, worst, ms", MOST_MS, figure=WORST, at_most=True, ours=name)
                for name in CALLS
            ),
            reference=FLOOR,
            who="what waits",
        )
        compete("interrupts", [case], options, {})


if __name__ == "__main__":
    main()
