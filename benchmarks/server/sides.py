"""The servers to compare, each in its own process, and the load on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import Environment
from benchmarks.floors.programs import built, floor_server
from benchmarks.measure import ROOT
from benchmarks.server.processes import cpu_s, own_cpu_s

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS, IN_PROCESS, QUIET = "polymux", "polymux, engine in its process", "polymux --log warning"
FASTAPI, STARLETTE, RAW = "FastAPI + pydantic", "Starlette", "raw ASGI"
FLOOR = "sockets and epoll, no library"
ON_UVLOOP = " + uvloop"
_APPLICATIONS = {FASTAPI: "with_fastapi", STARLETTE: "with_starlette", RAW: "raw"}
_OPTIONS: dict[str, dict[str, Any]] = {
    OURS: {},
    QUIET: {"log": "warning"},
    IN_PROCESS: {"in_process": True},
}
STOP_S = 30


@dataclass(frozen=True)
class Running:
    """A running server.

    Attributes:
        port: Port on 127.0.0.1.
        pid: Process ID.
        key: API key.
        folder: Its folder, with its log in the file ``log``.
        process: The process object to wait for; None for a floor.
    """

    port: int
    pid: int
    key: str
    folder: Path
    process: subprocess.Popen[Any] | None = None


@contextmanager
def running(side: str, **options: Any) -> Iterator[Running]:
    """Start a server, and stop it at the end.

    Args:
        side: Name of the server.
        options: Options of `benchmarks.server.ours`, which peers follow as far as they can; `keys`
            makes peers require a key.
    """
    with tempfile.TemporaryDirectory(prefix="polymux-bench-") as name:
        folder = Path(name)
        if side == FLOOR:
            with floor_server() as floor:
                yield Running(floor.port, floor.pid, "none", folder)
            return
        with started(_command(side, folder, options), folder) as (process, line):
            ready = json.loads(line)
            yield Running(ready["port"], process.pid, ready["key"], folder, process)


def _command(side: str, folder: Path, options: dict[str, Any]) -> list[str]:
    name, plus, _ = side.partition(ON_UVLOOP)
    peers = Environment("server")
    if name in _APPLICATIONS:
        command = [peers.python, "-m", "benchmarks.server.peers", _APPLICATIONS[name]]
        return [*command, str(folder), json.dumps(options | {"uvloop": bool(plus)})]
    uvloop = {"uvloop": str(peers.packages)} if plus else {}
    options_json = json.dumps(_OPTIONS[name] | options | uvloop)
    return [sys.executable, "-m", "benchmarks.server.ours", str(folder), options_json]


@contextmanager
def started(
    command: list[str], folder: Path, **env: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server's process; yields it with its first line of output. It is stopped at the end.

    Raises:
        RuntimeError: It does not start; the message has the last line of its log.
    """
    # Engine processes do not import from the current folder. PYTHONPATH lets them find this
    # package.
    own = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), **env}
    log = folder / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=own
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError((log.read_text().splitlines() or ["no output"])[-1])
            yield process, line
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_S)
        finally:
            process.kill()


@contextmanager
def loading(
    server: Running, mode: str, count: int, connections: int, *rest: object
) -> Iterator[subprocess.Popen[str]]:
    """Run `load.cpp`; it is stopped at the end if the caller did not wait for it.

    Args:
        server: Server to send requests to.
        mode: ``"closed"`` or ``"paced"``.
        count: Number of requests.
        connections: Number of connections.
        rest: The rate for ``"paced"``, then requests: bytes, or files that contain them.
    """
    words = [str(built("load")), mode, str(server.port), str(count), str(connections)]
    for one in rest:
        if isinstance(one, bytes):
            with tempfile.NamedTemporaryFile(dir=server.folder, delete=False) as file:
                file.write(one)
            words.append(file.name)
        else:
            words.append(str(one))
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for `load.cpp` and return its figures.

    Raises:
        SystemExit: It failed.
    """
    output, complaint = process.communicate()
    if process.returncode != 0:
        raise SystemExit(complaint.strip() or f"load ended with {process.returncode}")
    found: dict[str, Any] = json.loads(output)
    return found


def load(server: Running, mode: str, count: int, connections: int, *rest: object) -> dict[str, Any]:
    """Run `load.cpp` and return its figures and the server's CPU seconds; arguments as for
    `loading`."""
    before_s, own_before_s = cpu_s(server.pid), own_cpu_s(server.pid)
    with loading(server, mode, count, connections, *rest) as process:
        found = result(process)
    found["cpu_s"] = cpu_s(server.pid) - before_s
    found["own_cpu_s"] = own_cpu_s(server.pid) - own_before_s
    return found


def expect(found: dict[str, Any], status: int, count: int) -> None:
    """Check that all requests were answered with `status`.

    Raises:
        SystemExit: Some were not.
    """
    if found["statuses"] != {str(status): count} or found["cut"]:
        raise SystemExit(f"not all were {status}: {found['statuses']}, {found['cut']} cut")
