"""`scripts/bench upload`: cost of sending one large file, compared with other clients and
programs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.environment import Environment
from benchmarks.floors.programs import FloorServer, built, floor_server
from benchmarks.measure import BUILD, Usage, first_line, run
from benchmarks.verdicts import Figure, Goal, plain

if TYPE_CHECKING:
    from pathlib import Path

MODULE = "benchmarks.upload.clients"
LOOP = "libcurl in C, body read as it is sent"
PROGRAM = "curl program, -F"
PEERS = (
    "curl_cffi", "pycurl", "httpx", "httpx2", "aiohttp", "urllib3", "requests", "requests-toolbelt",
)  # fmt: skip
BLOCK_BYTES = 1 << 20

CPU = Figure("CPU, s a GiB", lambda measured: measured["cpu_s"] / measured["gibibytes"], 3)
WALL = Figure("wall, s a GiB", lambda measured: measured["wall_s"] / measured["gibibytes"], 2)
MEMORY = Figure("more memory, MiB", plain("rss_bytes", 2**-20))


def prepared(size_bytes: int) -> Path:
    """Return a file of this size, all of it in the page cache."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"upload-{size_bytes}"
    if not path.exists() or path.stat().st_size != size_bytes:
        block = bytes(range(256)) * (BLOCK_BYTES // 256)
        with path.open("wb") as file:
            for _ in range(size_bytes // BLOCK_BYTES):
                file.write(block)
    with path.open("rb") as file:
        while file.read(BLOCK_BYTES):
            pass
    return path


def with_size(variant: Variant, size_bytes: int, idle: Usage | None = None) -> Variant:
    """Add the file size to the figures of a program, which prints none. The whole process counts.

    Args:
        variant: The program.
        size_bytes: Size of the file.
        idle: Usage of the idle program, whose memory is subtracted.
    """

    def figures(usage: Usage) -> dict[str, Any]:
        found = {"cpu_s": usage.cpu_s, "wall_s": usage.wall_s, "gibibytes": size_bytes / 2**30}
        if idle is None:
            return found
        return {**found, "rss_bytes": max(0, usage.peak_rss_bytes - idle.peak_rss_bytes)}

    return Variant(variant.name, variant.command, ours=variant.ours, figures=figures)


def case(server: FloorServer, environment: Environment, path: Path) -> Case:
    """Return the case with all contenders."""
    size_bytes = path.stat().st_size
    sink = f"{server.url}/sink"
    idle = run(["curl", "--version"])
    loop = (str(built("curl_easy_loop")), sink, "1", str(path))
    program = (
        "curl",
        "-sS",
        "--noproxy",
        "*",
        "-F",
        "task=transcribe",
        "-F",
        f"audio=@{path}",
        sink,
    )
    variants = (
        Variant(OURS, (sys.executable, "-m", MODULE, OURS, server.url, str(path)), ours=True),
        with_size(Variant(LOOP, loop, ours=True), size_bytes),
        with_size(Variant(PROGRAM, program), size_bytes, idle),
        *[
            Variant(name, (environment.python, "-m", MODULE, name, server.url, str(path)))
            for name in PEERS
        ],
    )
    goals = (
        Goal("CPU over the curl program's", 0.8, PROGRAM, CPU, at_most=True),
        Goal("curl_cffi", 1.15, "curl_cffi", CPU),
        Goal("httpx", 1.8, "httpx", CPU),
        Goal("aiohttp", 2.3, "aiohttp", CPU),
        Goal("memory above idle, MiB", 1, figure=MEMORY, at_most=True),
    )
    return Case(f"{size_bytes >> 20:,} MiB in a form", variants, (CPU, WALL, MEMORY), goals)


def main() -> None:
    options = arguments("upload", __doc__)
    environment = Environment("upload")
    if options.with_peers:
        environment.prepare()
    path = prepared((8 if options.quick else 1024) * BLOCK_BYTES)
    with floor_server() as server:
        versions = environment.versions() if options.with_peers else {}
        versions["curl"] = first_line(["curl", "--version"]).split()[1]
        compete("upload", [case(server, environment, path)], options, versions)


if __name__ == "__main__":
    main()
