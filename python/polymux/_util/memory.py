"""Memory of this machine and of processes (Linux), and how Python collects it."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

#: Requests leave few cycles behind: by the defaults (700, 10, 10) it would look at all that they
#: hold for every few of them, 15 % of a small request's time.
_THRESHOLDS = (10_000, 20, 50)


def resident_bytes(pid: int | None) -> int:
    """What a process holds in memory; 0 where it is gone."""
    with suppress(OSError, ValueError, IndexError):
        words = Path(f"/proc/{pid}/statm").read_text("ascii").split()
        return int(words[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_free_bytes() -> int | None:
    """What programs may still take: of the machine, and of the control group if that is less."""
    found = [_meminfo_available(), _control_group_free()]
    known = [one for one in found if one is not None]
    return min(known) if known else None


def _meminfo_available() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _control_group_free() -> int | None:
    """Of version 2 of control groups; pages of files that are not in use count as free."""
    with suppress(OSError, ValueError, IndexError):
        group = Path("/proc/self/cgroup").read_text("utf-8").strip().splitlines()[-1]
        folder = Path("/sys/fs/cgroup") / group.rpartition(":")[2].lstrip("/")
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
    """Leaves out what is there now, which stays, and looks at the rest less often.

    For processes that belong to polymux, when they have loaded what they need.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
