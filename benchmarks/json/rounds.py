"""Run functions in turn on new objects and measure the CPU time of this thread."""

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

Rounds = dict[str, list[float]]


def measure(
    functions: Mapping[str, Callable[[Any], Any]], make: Callable[[], Any], calls: int, rounds: int
) -> Rounds:
    """Return the seconds per call for each function and round. The first round is discarded.

    Args:
        functions: Functions by name; each call gets a new object.
        make: Creates an object.
        calls: Calls of each function per round.
        rounds: Number of rounds that count.
    """
    seconds: Rounds = {name: [] for name in functions}
    names = list(functions)
    for number in range(rounds + 1):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            function = functions[name]
            objects = [make() for _ in range(calls)]
            gc.collect()
            gc.disable()
            started = time.thread_time_ns()
            for one in objects:
                function(one)
            ended = time.thread_time_ns()
            gc.enable()
            if number > 0:
                seconds[name].append((ended - started) / 1e9 / calls)
    return seconds
