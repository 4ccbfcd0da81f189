"""Resource usage of child processes, and statistics of the figures."""

import atexit
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"


@dataclass(frozen=True)
class Usage:
    """Resource usage of one command, including its children.

    `peak_rss_bytes` is never below the resident size of the process that started the command,
    because Linux carries that value over `exec`. The measuring process therefore stays small.
    """

    status: int
    wall_s: float
    cpu_s: float
    peak_rss_bytes: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The last line of the error output, or the exit status. Paths are relative to ROOT."""
        text = self.stderr.replace(f"{ROOT}/", "")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self.status}"


def run(command: Sequence[str], *, stdin: str = "", env: Mapping[str, str] | None = None) -> Usage:
    """Run a command in the repository's root until it ends.

    Args:
        command: Program and arguments.
        stdin: Text for its standard input.
        env: Changes to the environment.

    Returns:
        Exit status, CPU seconds of the whole process tree, wall seconds and peak memory.

    Raises:
        OSError: The program does not exist.
    """
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        given.write(stdin)
        given.seek(0)
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=given,
            stdout=out,
            stderr=err,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
        )
        _, wait_status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(wait_status)
        out.seek(0)
        err.seek(0)
        return Usage(
            status=process.returncode,
            wall_s=wall_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_rss_bytes=usage.ru_maxrss * 1024,
            stdout=out.read(),
            stderr=err.read(),
        )


@dataclass(frozen=True)
class Spread:
    """The median of repeated figures, with its quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.text(2)

    def text(self, digits: int) -> str:
        """Return the median and the quartiles with `digits` decimals."""
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles; of a single value, that value.

    Example:
        >>> spread([1.0, 2.0, 3.0, 4.0, 5.0])
        Spread(median=3.0, low=2.0, high=4.0)
    """
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def raise_priority(*, alone: bool = True) -> bool:
    """Request a higher scheduling priority.

    Returns whether the system grants it (usually only to root).

    If Linux groups processes by session (autogroup), niceness counts only inside the group. The
    priority of the group is therefore raised too until this process ends. Set `alone` to False if
    the measured program starts sessions: engines are separate sessions and would get less of a core
    than their clients.
    """
    group = Path("/proc/self/autogroup")
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
        # In some sandboxes the file exists but is empty: processes are not grouped.
        if alone and group.exists() and (words := group.read_text().split()):
            before = words[-1]
            group.write_text(str(min(int(before), -5)))
            atexit.register(group.write_text, before)
    except OSError:
        return False
    return True


def load_average() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def first_line(command: Sequence[str]) -> str:
    """Return the first line that a program prints, or the reason why it cannot run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"not available ({error.strerror})"
    return (done.stdout or done.stderr).strip().partition("\n")[0]


def machine() -> dict[str, object]:
    """Return processor, cores, memory and kernel, without anything that identifies this machine."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": model,
        "architecture": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_bytes / 2**30),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
    }
