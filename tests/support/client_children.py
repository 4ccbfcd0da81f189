"""Processes of their own for tests of the client: what forks, exits, is interrupted or measured.

The code of a child finds the address of the test's server in `url`, and what else it needs in
`sys.argv[2:]`.
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

#: What every child begins with.
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
    # How many descriptors are TCP connections.
    ours = {line.split()[9] for line in read("/proc/self/net/tcp").splitlines()[1:]}
    found = 0
    for one in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{one}")
        except OSError:
            continue  # Of the listing itself.
        found += link.removeprefix("socket:[").rstrip("]") in ours
    return found

def settled(seconds=5):
    # Once nothing changes any more: threads and sockets end a little after their call.
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
    """A Python process that runs `code`; `before` is a command that runs it."""
    # To load asyncio takes as long as all the rest.
    code = (PRELUDE if "asyncio" in code else PRELUDE.replace("asyncio, ", "")) + code
    command = [*before, sys.executable, *options, "-c", code, url, *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, **(environment or {})},
    )  # fmt: skip


def finish(child: subprocess.Popen[str], timeout_s: float = TIMEOUT_S) -> str:
    """What it wrote, once it has ended well; one that does not end is ended and is a failure."""
    try:
        out, errors = child.communicate(timeout=timeout_s * PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        out, errors = child.communicate()
        raise AssertionError(f"hangs for {timeout_s} s; it wrote:\n{out}\n{errors}") from None
    assert child.returncode == 0, f"exit {child.returncode}:\n{out}\n{errors[-4000:]}"
    # With -W error, what nobody could catch is told only there.
    assert "Traceback" not in errors, errors[-4000:]
    assert "never " not in errors, errors[-4000:]
    return out


def run(code: str, url: str, *arguments: object, timeout_s: float = TIMEOUT_S, **how: Any) -> str:
    return finish(start(code, url, *arguments, **how), timeout_s)


def run_json(code: str, url: str, *arguments: object, **how: Any) -> Any:
    """The same for a child whose last line is JSON."""
    return json.loads(run(code, url, *arguments, **how).splitlines()[-1])


def wait_for(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdout is not None
    said = child.stdout.readline().strip()
    if said != line:
        child.kill()
        out, errors = child.communicate()
        raise AssertionError(f"said {said!r} instead of {line!r}:\n{out}\n{errors[-4000:]}")


def check_flat(
    first: dict[str, int], last: dict[str, int], growth_mib: float, connections: int = 1
) -> None:
    """Descriptors and threads are as many as before, memory has grown by so much at most.

    Connections may be kept, or have been closed: a descriptor each, and no more of them than there
    were calls at once.
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
