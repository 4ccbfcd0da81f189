"""Functions that take turns on new objects, by CPU time of this thread."""

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

Rounds = dict[str, list[float]]


def measure(
    functions: Mapping[str, Callable[[Any], Any]], make: Callable[[], Any], calls: int, rounds: int
) -> Rounds:
    """Seconds of a call, for each function and round. The first round of all is thrown away.

    Args:
        functions: By name; each gets objects that nobody has seen before.
        make: Makes one.
        calls: In a round, of each function.
        rounds: How many count.
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
