"""CPU time and memory of servers and their child processes, measured from outside."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                with suppress(OSError):
                    found += map(int, (thread / "children").read_text().split())
    return found


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants, including ended ones; resolution
    10 ms."""
    ticks = 0
    for one in tree(pid):
        with suppress(OSError):
            # The process name may contain any character, so parse what follows it: utime, stime,
            # and those of ended children.
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks * _TICK_S


def own_cpu_s(pid: int) -> float:
    """Return the CPU seconds of one process alone; resolution 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) * _TICK_S


def rss_bytes(pid: int, name: str = "VmRSS") -> int:
    """Return the resident memory of a process and its descendants; ``VmHWM`` is the peak."""
    total = 0
    for one in tree(pid):
        with suppress(OSError):
            for line in Path(f"/proc/{one}/status").read_text().splitlines():
                if line.startswith(f"{name}:"):
                    total += int(line.split()[1]) * 1024
    return total


def reset_peak(pid: int) -> None:
    """Reset the peak memory."""
    for one in tree(pid):
        with suppress(OSError):
            Path(f"/proc/{one}/clear_refs").write_text("5")
