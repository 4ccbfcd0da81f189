"""What a client has cost so far, measured in its own process, and its report as a line of JSON."""

import json
import resource
import time
from pathlib import Path


def raise_file_limit() -> None:
    """As many open files as the system lets this process have: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def rss_bytes() -> int:
    """Resident memory now."""
    return _status("VmRSS")


def peak_rss_bytes() -> int:
    """The most that was resident since `reset_peak`, or since the program began."""
    return _status("VmHWM")


def reset_peak() -> None:
    """Lets the peak begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


class Meter:
    """CPU and wall seconds since it was made: of all threads, and of the one that made it."""

    def __init__(self) -> None:
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self._thread_s = time.thread_time()
        self._wall_s = time.perf_counter()

    def report(self, count: int, **more: object) -> None:
        """Prints the figures of `count` things done, and what else is given."""
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
