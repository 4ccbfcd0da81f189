"""`scripts/bench handover`: cost of a decoded chunk above a loop over a list, and of a token in
`Local`."""

from __future__ import annotations

import sys

import pybind11

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.handover.bound import module
from benchmarks.measure import ROOT
from benchmarks.verdicts import CPU, Figure, Goal, each

ABOVE = Figure("ns a chunk above a list's loop", each("above_ns", 1.0))
SPENT = Figure("ns a chunk", each("spent_ns", 1.0))
ASYNC, BOUND = "polymux, asyncio, ready", "an object of pybind11"
ASYNC_LOCAL = "polymux, asyncio"
COUNT, QUICK_COUNT = 20_000, 2_000
TOKENS, QUICK_TOKENS = 10_000, 200


def main() -> None:
    options = arguments("handover", __doc__)
    count = QUICK_COUNT if options.quick else COUNT
    module()  # Build before anything is measured.

    def contender(name: str, way: str) -> Variant:
        command = (sys.executable, "-m", "benchmarks.handover.measure", way, str(count))
        return Variant(name, command, ours=True)

    case = Case(
        "a chunk that is decoded already",
        (
            contender(OURS, "sync"),
            contender(ASYNC, "ready"),
            contender(BOUND, "bound"),
        ),
        (SPENT, ABOVE),
        (
            Goal("ns above a list's loop", 60, figure=ABOVE, at_most=True),
            Goal("asyncio, ns above it", 80, figure=ABOVE, at_most=True, ours=ASYNC),
            Goal("an object of pybind11", 15, BOUND, SPENT),
        ),
        who="way",
    )
    tokens = str(QUICK_TOKENS if options.quick else TOKENS)

    def local(name: str, way: str) -> Variant:
        command = (sys.executable, "-m", "benchmarks.handover.local", way, tokens)
        # The engine's process imports the benchmark's engine from ROOT.
        return Variant(name, command, ours=True, env={"PYTHONPATH": str(ROOT)})

    of_local = Case(
        "a token of Local, without the engine's process",
        (local(OURS, "sync"), local(ASYNC_LOCAL, "async")),
        (CPU,),
        who="way",
    )
    compete("handover", [case, of_local], options, {"pybind11": pybind11.__version__})


if __name__ == "__main__":
    main()
