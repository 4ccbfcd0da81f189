"""Child processes for tests of the client that fork, exit, are interrupted or measure memory.

The code of a child finds the URL of the test server in `url` and more arguments in `sys.argv[2:]`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.hostile_check import PATIENCE, SANITIZED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MIB = 1 << 20
KEY = "canary-key-5f2b7c"
TIMEOUT_S = 120

#: Runs before the code of every child.
PRELUDE = """
import asyncio, json, os, signal, sys, threading, time
import polymux
url, key = sys.argv[1], "canary-key-5f2b7c"

def say(*words):
    print(*words, flush=True)

def read(path):
    with open(path) as file:
        return file.read()

def status(field):
    return next(int(line.split()[1]) for line in read("/proc/self/status").splitlines()
                if line.startswith(field))

def figures():
    return {"memory": status("VmRSS") * 1024, "threads": status("Threads"),
            "descriptors": len(os.listdir("/proc/self/fd"))}

def sockets():
    # The number of descriptors that are TCP connections.
    ours = {line.split()[9] for line in read("/proc/self/net/tcp").splitlines()[1:]}
    found = 0
    for one in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{one}")
        except OSError:
            continue  # The descriptor of the listing itself.
        found += link.removeprefix("socket:[").rstrip("]") in ours
    return found

def settled(seconds=5):
    # Wait until nothing changes: threads and sockets end shortly after their call.
    before, end = figures(), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.1)
        now = figures()
        if (now["threads"], now["descriptors"]) == (before["threads"], before["descriptors"]):
            return now
        before = now
    return before
"""


def start(
    code: str,
    url: str,
    *arguments: object,
    options: tuple[str, ...] = ("-W", "error"),
    environment: Mapping[str, str] | None = None,
    before: tuple[str, ...] = (),
) -> subprocess.Popen[str]:
    """Start a Python process that runs `code`; `before` is a command that starts it."""
    # Importing asyncio takes as long as everything else.
    code = (PRELUDE if "asyncio" in code else PRELUDE.replace("asyncio, ", "")) + code
    command = [*before, sys.executable, *options, "-c", code, url, *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, **(environment or {})},
    )  # fmt: skip


def finish(child: subprocess.Popen[str], timeout_s: float = TIMEOUT_S) -> str:
    """The output of a child that exits with 0. A hanging child is killed, and the test fails."""
    try:
        out, errors = child.communicate(timeout=timeout_s * PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        out, errors = child.communicate()
        raise AssertionError(f"timed out after {timeout_s} s; output:\n{out}\n{errors}") from None
    assert child.returncode == 0, f"exit {child.returncode}:\n{out}\n{errors[-4000:]}"
    # With -W error, uncaught warnings appear only on standard error.
    assert "Traceback" not in errors, errors[-4000:]
    assert "never " not in errors, errors[-4000:]
    return out


def run(code: str, url: str, *arguments: object, timeout_s: float = TIMEOUT_S, **how: Any) -> str:
    return finish(start(code, url, *arguments, **how), timeout_s)


def run_json(code: str, url: str, *arguments: object, **how: Any) -> Any:
    """Run a child and parse the last line of its output as JSON."""
    return json.loads(run(code, url, *arguments, **how).splitlines()[-1])


def wait_for(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdout is not None
    printed = child.stdout.readline().strip()
    if printed != line:
        child.kill()
        out, errors = child.communicate()
        raise AssertionError(f"printed {printed!r} instead of {line!r}:\n{out}\n{errors[-4000:]}")


def check_flat(
    first: dict[str, int], last: dict[str, int], growth_mib: float, connections: int = 1
) -> None:
    """Check that descriptors and threads have not grown, and memory by `more_bytes` at most.

    A kept or closed connection may change the descriptors by one, for each of the simultaneous
    calls.
    """
    assert last["threads"] == first["threads"], (first, last)
    assert abs(last["descriptors"] - first["descriptors"]) <= connections, (first, last)
    if not SANITIZED:
        assert last["memory"] - first["memory"] <= growth_mib * MIB, (first, last)


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def eventually(holds: Callable[[], object], timeout_s: float = 5) -> bool:
    end = time.monotonic() + timeout_s * PATIENCE
    while not holds():
        if time.monotonic() >= end:
            return False
        time.sleep(0.01)
    return True
