"""`scripts/bench threads`: chat beside processes that compute, compared with llama.cpp at a fixed
number of threads."""

from __future__ import annotations

import sys

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.verdicts import Figure, Goal, plain

SECONDS = Figure("48 tokens, s", plain("median_s"), 2)
ONE, TWO = "llama.cpp, one thread", "llama.cpp, two threads"


def contender(name: str, side: str, threads: int, others: int) -> Variant:
    command = (sys.executable, "-m", "benchmarks.threads.measure", side, str(threads), str(others))
    env = {"POLYMUX_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    return Variant(name, command, ours=side == "ours", env=env)


def case(title: str, others: int) -> Case:
    than = TWO if others == 0 else ONE
    most = 1.05 if others == 0 else 1.2
    goal = Goal(f"time over {than}", most, than, SECONDS, at_most=True)
    contenders = (
        contender(OURS, "ours", 2, others),
        contender(ONE, "plain", 1, others),
        contender(TWO, "plain", 2, others),
    )
    return Case(title, contenders, (SECONDS,), (goal,), reference=ONE, who="engine")


def main() -> None:
    options = arguments("threads", __doc__)
    cases = [
        case("chat on an idle machine", 0),
        case("chat beside one busy processor", 1),
        case("chat beside two busy processors", 2),
    ]
    compete("threads", cases, options, {})


if __name__ == "__main__":
    main()
