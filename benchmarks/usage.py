"""Resource usage of a client, measured in its own process, and its report as a line of JSON."""

import json
import resource
import time
from pathlib import Path


def raise_file_limit() -> None:
    """Raise the limit of open files to the maximum: each connection needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def rss_bytes() -> int:
    """Return the current resident memory."""
    return _status("VmRSS")


def peak_rss_bytes() -> int:
    """Return the peak resident memory since `reset_peak` or the start of the program."""
    return _status("VmHWM")


def reset_peak() -> None:
    """Reset the peak memory."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


class Meter:
    """CPU and wall seconds since its creation: of all threads, and of the thread that created
    it."""

    def __init__(self) -> None:
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self._thread_s = time.thread_time()
        self._wall_s = time.perf_counter()

    def report(self, count: int, **more: object) -> None:
        """Print the figures for `count` items, and the additional values."""
        wall_s = time.perf_counter() - self._wall_s
        thread_s = time.thread_time() - self._thread_s
        usage = resource.getrusage(resource.RUSAGE_SELF)
        user_s = usage.ru_utime - self._usage.ru_utime
        system_s = usage.ru_stime - self._usage.ru_stime
        figures = {
            "count": count,
            "user_s": user_s,
            "system_s": system_s,
            "cpu_s": user_s + system_s,
            "thread_s": thread_s,
            "wall_s": wall_s,
            **more,
        }
        print(json.dumps(figures), flush=True)
