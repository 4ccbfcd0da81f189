"""The OpenMP library of llama.cpp, and its number of threads, adapted to the machine's load."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

from polymux._native import _core

_INTERVAL_S = 0.2
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class OpenMpThreads:
    """Limits the threads to the processors that other processes leave free.

    The threads wait for each other many times per token. If one of them shares its processor, all
    wait: on two processors, of which one is busy, two threads are half as fast as one.

    The process must not load another library that uses another OpenMP, such as torch.

    Args:
        most: Maximum number of threads, for which the library is configured.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._processors = os.sched_getaffinity(0)
        self._openmp = _loaded() if most > 1 else None
        self._sample = (0.0, 0.0, 0.0)
        if self._openmp is not None:
            try:
                self._sample = self._sampled()
            except (OSError, ValueError):  # No /proc, or another format.
                self._openmp = None

    def attach(self, xllamacpp: Any) -> None:
        """Connect with the OpenMP that the package `xllamacpp` has loaded."""
        if self._openmp is None:
            return
        try:
            parallel = ctypes.CDLL(xllamacpp.xllamacpp.__file__).GOMP_parallel
        except AttributeError:
            self._openmp = None  # A build without GCC's OpenMP, which does not call ours either.
        else:
            self._openmp.polymux_openmp_forward(parallel)

    def adapt(self) -> None:
        """Set the number of threads for the next tokens. Call it often, from any thread."""
        if self._openmp is None or not self._lock.acquire(blocking=False):
            return
        try:
            before = self._sample
            if time.monotonic() - before[0] < _INTERVAL_S:
                return
            now = self._sample = self._sampled()
            passed_s = now[0] - before[0]
            others = (now[1] - before[1] - (now[2] - before[2])) / passed_s
            free = round(len(self._processors) - others)
            self._openmp.polymux_openmp_limit(max(1, min(free, self._most)))
        finally:
            self._lock.release()

    def _sampled(self) -> tuple[float, float, float]:
        """Return the time, and the CPU seconds of all processes and of this one."""
        names = {f"cpu{one}" for one in self._processors}
        ticks = 0
        for line in Path("/proc/stat").read_text("ascii").splitlines():
            name, *values = line.split()
            if name in names:
                user, nice, system, _, _, interrupts, soft_interrupts, stolen = values[:8]
                parts = (user, nice, system, interrupts, soft_interrupts, stolen)
                ticks += sum(map(int, parts))
        return time.monotonic(), ticks / _TICKS_PER_S, time.process_time()


def provide_libgomp() -> None:
    """Load polymux's own libgomp.so.1 if the system has none. Call it before importing xllamacpp.

    The dynamic linker then takes the loaded library for the one that xllamacpp needs.
    """
    for library in ("libgomp.so.1", _beside_core("_libgomp.so")):
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return


def _loaded() -> ctypes.CDLL | None:
    """Load our GOMP_parallel, which libraries that are loaded later call."""
    try:
        return ctypes.CDLL(_beside_core("_openmp.so"), ctypes.RTLD_GLOBAL)
    except OSError:
        return None


def _beside_core(name: str) -> str:
    return os.fspath(Path(_core.__file__).with_name(name))
