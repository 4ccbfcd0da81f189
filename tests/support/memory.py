"""What calls leave behind: memory that Python traces, the process's own, and descriptors."""

from __future__ import annotations

import gc
import os
import resource
import tracemalloc
from typing import TYPE_CHECKING

from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from collections.abc import Callable


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * resource.getpagesize()


def _figures() -> tuple[int, int, int]:
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    return tracemalloc.get_traced_memory()[0], resident_bytes(), descriptors


def leaves_nothing(use: Callable[[], object], times: int = 500) -> None:
    """Fails if each call leaves an object behind, or some KB of native memory."""
    for _ in range(max(times // 10, 20)):
        use()
    tracemalloc.start()
    try:
        use()
        before = _figures()
        for _ in range(times):
            use()
        after = _figures()
    finally:
        tracemalloc.stop()
    if not SANITIZED:
        # An object is 48 bytes at the least.
        assert after[0] - before[0] < times * 40, (before, after)
        assert after[1] - before[1] < 8 << 20, (before, after)
    assert after[2] - before[2] <= 1, (before, after)
