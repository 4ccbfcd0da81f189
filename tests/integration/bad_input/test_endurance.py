"""Hundreds of conversions in one process: memory, descriptors and threads stay where they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from pathlib import Path

    from support.hostile import Clips

MIB = 1024 * 1024

MANY_CONVERSIONS = """
import json, os, sys
from pathlib import Path
import polymux

good, broken, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
data = good.read_bytes()

def status(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])

def refused(*arguments, **options):
    try:
        polymux.convert_to_mp3(*arguments, **options)
    except (polymux.PolymuxError, ZeroDivisionError):
        return
    raise SystemExit("a conversion that should fail did not")

def stop(progress):
    1 / 0

def measure():
    return {
        "memory": status("VmRSS") * 1024,
        "threads": status("Threads"),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }

figures = []
for number in range(count):
    polymux.convert_to_mp3(good, "out.mp3")
    if number % 4 == 0:
        polymux.convert_to_mp3(data).read()
        refused(broken, "out.mp3")
        refused(good, "out.mp3", on_progress=stop)
        polymux.probe(good)
        list(polymux.convert_many([good, broken]))
    if number + 1 in (count // 4, count):
        figures.append(measure())
print(json.dumps(figures))
"""


def run_conversions(count: int, clips: Clips, folder: Path) -> list[dict[str, Any]]:
    """Figures after a quarter of `count` conversions and after all of them."""
    broken = folder / "broken.m4a"
    broken.write_bytes(clips.data("m4a")[:2000])
    arguments = [str(clips.path("mp3-short")), str(broken), str(count)]
    # One arena: what is left of the growth is a leak and not the allocator's spread over threads.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", MANY_CONVERSIONS, *arguments],
        cwd=folder,
        env=dict(os.environ, MALLOC_ARENA_MAX="1"),
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["broken.m4a", "out.mp3"]
    figures: list[dict[str, Any]] = json.loads(done.stdout)
    return figures


def check_flat(figures: list[dict[str, Any]], growth_mib: float) -> None:
    first, last = figures
    assert last["threads"] == first["threads"], figures
    assert last["descriptors"] == first["descriptors"], figures
    if not SANITIZED:
        assert last["memory"] - first["memory"] <= growth_mib * MIB, figures


def test_200_conversions(clips: Clips, tmp_path: Path) -> None:
    check_flat(run_conversions(200, clips, tmp_path), growth_mib=4)


@pytest.mark.long
def test_1000_conversions(clips: Clips, tmp_path: Path) -> None:
    check_flat(run_conversions(1000, clips, tmp_path), growth_mib=6)
