from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from typing import TYPE_CHECKING, Any

from polymux import errors

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 8


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """Run `work` in threads that start together; return the results or raise the first error."""
    barrier = threading.Barrier(threads)

    def begin(number: int) -> Any:
        barrier.wait(60)
        return work(number)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def use_in_turns(*ways: Callable[[], Any], times: int) -> None:
    """Run each function in a thread; errors of polymux are ignored."""

    def work(thread: int) -> None:
        for _ in range(times):
            with contextlib.suppress(RuntimeError, errors.PolymuxError):
                ways[thread % len(ways)]()

    at_once(work)
