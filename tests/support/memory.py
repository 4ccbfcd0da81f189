"""Leaks of calls: blocks of Python's memory, process memory, and descriptors."""

from __future__ import annotations

import gc
import os
import resource
import sys
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
    # Not tracemalloc: stopping it while another thread allocates crashes the process (gh-128679).
    return sys.getallocatedblocks(), resident_bytes(), descriptors


def leaves_nothing(use: Callable[[], object], times: int = 1000) -> None:
    """Fail if each call leaks an object or some KB of native memory."""
    for _ in range(max(times // 10, 20)):
        use()
    # Another thread, such as pytest-xdist's, may allocate something once.
    for _ in range(3):
        blocks, resident, descriptors = _grown(use, times)
        if descriptors <= 1 and (SANITIZED or (blocks < times // 2 and resident < 8 << 20)):
            return
    raise AssertionError((blocks, resident, descriptors))


def _grown(use: Callable[[], object], times: int) -> tuple[int, ...]:
    use()
    before = _figures()
    for _ in range(times):
        use()
    return tuple(after - one for after, one in zip(_figures(), before, strict=True))
