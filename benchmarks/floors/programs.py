"""Build and run the programs of this folder and the floor server."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.measure import BUILD, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLAGS = ("-std=c++20", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror")
SOURCES = {
    "floor_server": ("benchmarks/servers/floor_server.cpp", ()),
    "awake": ("benchmarks/floors/awake.cpp", ()),
    "curl_easy_loop": ("benchmarks/floors/curl_easy_loop.cpp", ("-lcurl",)),
    "curl_multi_loop": ("benchmarks/floors/curl_multi_loop.cpp", ("-lcurl",)),
    "curl_tls_loop": ("benchmarks/floors/curl_tls_loop.cpp", ("-lcurl",)),
    "epoll_client": ("benchmarks/floors/epoll_client.cpp", ()),
    "held_streams": ("benchmarks/floors/held_streams.cpp", ()),
    "load": ("benchmarks/server/load.cpp", ()),
    "upstream": ("benchmarks/gateway/upstream.cpp", ()),
    "streams": ("benchmarks/gateway/streams.cpp", ()),
}
TIMEOUT_S = 300


@dataclass
class FloorServer:
    """A running floor server; `counters` is set when it has ended."""

    port: int
    pid: int
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def built(name: str) -> Path:
    """Return the program, compiled if its source or a header of the benchmarks has changed."""
    source_name, libraries = SOURCES[name]
    source = ROOT / source_name
    known = hashlib.sha256(" ".join((*FLAGS, *libraries)).encode())
    for file in (source, *sorted((ROOT / "benchmarks").glob("*/*.hpp"))):
        known.update(file.read_bytes())
    program = BUILD / "floors" / f"{name}-{known.hexdigest()[:12]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_suffix(".new")
        command = ["g++", *FLAGS, "-o", str(unfinished), str(source), *libraries]
        subprocess.run(command, check=True, timeout=TIMEOUT_S)
        unfinished.rename(program)
    return program


@contextmanager
def floor_server() -> Iterator[FloorServer]:
    """Run `benchmarks/servers/floor_server.cpp` in another process."""
    with subprocess.Popen(
        [built("floor_server")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            server = FloorServer(int(process.stdout.readline()), process.pid)
            yield server
            output, _ = process.communicate(timeout=10)
            server.counters.update(json.loads(output))
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def awake_cores() -> Iterator[None]:
    """Keep every core from halting, without taking CPU time from other processes.

    The host takes about 100 µs to wake a halted virtual core, and its caches are cold then. This
    time counts for the process that waits. All contenders pay it equally, which hides the
    differences in their own CPU time.
    """
    program = str(built("awake"))
    with ExitStack() as stack:
        for core in sorted(os.sched_getaffinity(0)):
            process = stack.enter_context(subprocess.Popen([program, str(core)]))
            stack.callback(process.kill)
        yield


def floor(name: str, *arguments: object) -> dict[str, Any]:
    """Run a floor program and return its figures.

    Raises:
        RuntimeError: The program failed.
    """
    command = [str(built(name)), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured
