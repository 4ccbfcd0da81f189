"""Runs hostile cases one after another, each in its own fork; see `hostile_check`.

This program reads one JSON request per line and prints one JSON outcome per line. It imports
polymux once: a case then needs only a fork, and a crash ends only one case.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import polymux

#: After this time a case is killed and reported as a hang.
HANG_S = 20.0
_CORES = len(os.sched_getaffinity(0))


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def _settled(measure: Any, base: int, seconds: float = 2.0) -> int:
    """The measure when it is back at `base`, or its value after `seconds`."""
    deadline = time.monotonic() + seconds
    while (value := measure()) > base and time.monotonic() < deadline:
        time.sleep(0.01)
    return int(value)


def _describe(error: BaseException) -> dict[str, Any]:
    return {
        "outcome": type(error).__name__,
        "typed": isinstance(error, polymux.PolymuxError),
        "message": str(error),
        "representation": repr(error),
    }


def _attempt(action: Any) -> dict[str, Any]:
    try:
        made = action()
    except BaseException as error:  # Every exception is a finding.
        return _describe(error)
    return {"outcome": "ok", "typed": True, "made": made}


def _convert(request: dict[str, Any]) -> dict[str, Any]:
    limits = polymux.Limits(**request["limits"])
    converted = polymux.convert_to_mp3(
        request["source"],
        request["destination"],
        limits=limits,
        strict=request.get("strict", False),
    )
    report = converted.report
    return {
        "duration_s": report.duration_s,
        "frames": report.frames,
        "damaged_packets": report.damaged_packets,
        "warnings": [warning.message for warning in report.warnings],
    }


def _probe(request: dict[str, Any]) -> dict[str, Any]:
    info = polymux.probe(request["source"], limits=polymux.Limits(**request["limits"]))
    return {"container": info.container, "tags": info.tags}


def run(request: dict[str, Any]) -> dict[str, Any]:
    os.chdir(request["folder"])
    good = polymux.convert_to_mp3(request["good"]).read()
    # The pool starts all its threads when it has more conversions than cores.
    list(polymux.convert_many([request["good"]] * 2 * _CORES))
    descriptors, threads = _descriptors(), _threads()
    Path("/proc/self/clear_refs").write_text("5")  # Reset the peak.
    before = _memory("VmRSS")
    started = time.monotonic()
    outcome = _attempt(lambda: _convert(request))
    outcome["elapsed_s"] = time.monotonic() - started
    outcome["memory"] = _memory("VmHWM") - before
    outcome["probe"] = _attempt(lambda: _probe(request))
    outcome["alive"] = polymux.convert_to_mp3(request["good"]).read() == good
    outcome["descriptors"] = _settled(_descriptors, descriptors) - descriptors
    outcome["threads"] = _settled(_threads, threads) - threads
    return outcome


def _fork(request: dict[str, Any]) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            os.write(writer, json.dumps(run(request), ensure_ascii=True).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    answer = b""
    deadline = time.monotonic() + HANG_S * request.get("patience", 1)
    while time.monotonic() < deadline:
        ready, _, _ = select.select([reader], [], [], 0.1)
        if ready:
            piece = os.read(reader, 1 << 20)
            if not piece:
                break
            answer += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reader)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return {"outcome": "hang" if name == "SIGKILL" else f"crash ({name})"}
    if os.WEXITSTATUS(status) != 0:
        return {"outcome": f"exit status {os.WEXITSTATUS(status)}"}
    outcome: dict[str, Any] = json.loads(answer)
    return outcome


def main() -> None:
    # The first call loads the extension; it starts no thread before the fork.
    polymux.Limits()
    polymux.probe(sys.argv[1])
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_fork(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
