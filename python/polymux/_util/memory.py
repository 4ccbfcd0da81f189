"""Memory usage of this computer and of processes (Linux), and garbage collection."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

#: Requests create few reference cycles. With the default thresholds (700, 10, 10), garbage
#: collection takes 15 % of the time of a small request.
_THRESHOLDS = (10_000, 20, 50)


def resident_bytes(pid: int | None) -> int:
    """Return the resident memory of a process; 0 if it does not exist."""
    with suppress(OSError, ValueError, IndexError):
        words = Path(f"/proc/{pid}/statm").read_text("ascii").split()
        return int(words[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_free_bytes() -> int | None:
    """Return the available memory of the machine or of the cgroup, whichever is less."""
    found = [_meminfo_available(), _control_group_free()]
    known = [one for one in found if one is not None]
    return min(known) if known else None


def machine_bytes() -> int:
    """Return the memory of the machine or the limit of the cgroup, whichever is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, IndexError):
        return min(total, int((_control_group() / "memory.max").read_text("ascii")))
    return total


def _control_group() -> Path:
    group = Path("/proc/self/cgroup").read_text("utf-8").strip().splitlines()[-1]
    return Path("/sys/fs/cgroup") / group.rpartition(":")[2].lstrip("/")


def _meminfo_available() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _control_group_free() -> int | None:
    """Return the free memory of a cgroup (version 2). Inactive file pages count as free."""
    with suppress(OSError, ValueError, IndexError):
        folder = _control_group()
        limit = (folder / "memory.max").read_text("ascii").strip()
        if limit == "max":
            return None
        used = int((folder / "memory.current").read_text("ascii"))
        for line in (folder / "memory.stat").read_text("ascii").splitlines():
            if line.startswith("inactive_file "):
                used -= int(line.split()[1])
        return max(0, int(limit) - used)
    return None


def freeze_gc() -> None:
    """Exclude all current objects from garbage collection, and collect less often.

    Call it in processes of polymux after they have loaded everything they need.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
