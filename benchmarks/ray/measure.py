"""`measure ROUNDS FILES REQUESTS`: measure both in turn in one network; prints medians and
ratios."""

from __future__ import annotations

import asyncio
import fcntl
import random
import shutil
import socket
import struct
import sys
import tempfile
import time
import wave
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import polymux
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.ray import cluster as ray_cluster
from polymux.ray.deployment import Cluster
from polymux.ray.messages import Plan
from polymux.ray.settings import RaySettings
from polymux.service.model import OperationRequest, ProgressSink

from benchmarks.measure import load_average, machine
from benchmarks.ray.echo import FAMILY

if TYPE_CHECKING:
    from polymux.service.backend import Backend

_AT_ONCE = 8
_WARM = 50


def loopback() -> None:
    """Enable the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 1))


def noise(folder: Path, count: int) -> None:
    """Write `count` different files of one second each."""
    folder.mkdir()
    for number in range(count):
        with wave.open(str(folder / f"{number}.wav"), "wb") as file:
            file.setparams((1, 2, 44_100, 0, "NONE", ""))
            file.writeframes(random.Random(number).randbytes(88_200))


def batch(inputs: Path, out: Path, ray: str | None) -> float:
    """Return files per second from the first finished file to the last, which excludes the
    start-up."""
    ends: list[float] = []
    polymux.batch(
        "convert_to_mp3", inputs, out=out, bitrate="128k", ray=ray,
        on_item=lambda _: ends.append(time.perf_counter()),
    )  # fmt: skip
    shutil.rmtree(out)
    return (len(ends) - 1) / (ends[-1] - ends[0])


def no_room(expected_bytes: int) -> Any:
    raise AssertionError(expected_bytes)


async def engine(backend: Backend, count: int) -> tuple[float, float]:
    """Return the median seconds of a request, and requests per second with eight concurrent
    ones."""
    work = OperationRequest("free_chat", "", "", {"messages": []}, frozenset())

    async def one() -> float:
        began = time.perf_counter()
        product = await backend.run(work, ProgressSink(lambda: None, no_room))
        took_s = time.perf_counter() - began
        assert product.output == {"response": "yes"}
        return took_s

    async def some() -> None:
        for _ in range(count // _AT_ONCE):
            await one()

    for _ in range(_WARM):
        await one()
    alone = [await one() for _ in range(count)]
    began = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(_AT_ONCE)))
    return median(alone), count // _AT_ONCE * _AT_ONCE / (time.perf_counter() - began)


async def engines(rounds: int, count: int) -> dict[str, list[tuple[float, float]]]:
    """Measure both in turn."""
    options = {"max_concurrency": _AT_ONCE}
    cluster = Cluster(RaySettings(ray_cluster.AUTO))
    supervision = Supervision(threads=1)
    plan = Plan("echo", FAMILY, ("free_chat",), options, _AT_ONCE, supervision._asdict())
    sides: dict[str, Backend] = {
        "child process": EngineBackend(
            "echo",
            FAMILY,
            ("free_chat",),
            options,
            max_concurrency=_AT_ONCE,
            supervision=supervision,
        ),
        "Ray Serve": cluster.deploy(plan),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            found[name].append(await engine(side, count))
    for side in sides.values():
        await side.close()
    return found


def main() -> None:
    rounds, files, requests = map(int, sys.argv[1:])
    loopback()
    print(machine(), load_average())
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as name:
        folder = Path(name)
        noise(folder / "in", files)
        ray_cluster.connect(ray_cluster.LOCAL)
        rates: dict[str, list[float]] = {"local runner": [], "Ray": []}
        for _ in range(rounds):
            for side, ray in zip(rates, (None, ray_cluster.AUTO), strict=True):
                rates[side].append(batch(folder / "in", folder / "out", ray))
        measured = asyncio.run(engines(rounds, requests))
        ray_cluster.disconnect()
    ours, theirs = (median(one) for one in rates.values())
    print(f"batch, files a second: {ours:.0f} here, {theirs:.0f} by Ray, {theirs / ours:.2f}x")
    for index, title, unit in ((0, "p50 of a request, ms", 1e3), (1, "requests a second", 1)):
        ours, theirs = (median(one[index] for one in side) * unit for side in measured.values())
        print(f"engine, {title}: {ours:.2f} child process, {theirs:.2f} Ray Serve, "
              f"{theirs / ours:.2f}x")  # fmt: skip
    print(load_average())


if __name__ == "__main__":
    main()
