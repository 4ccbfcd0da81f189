"""Memory, file descriptors and threads stay constant over hundreds of conversions in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

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

def refused(*arguments, **options):
    try:
        polymux.convert_to_mp3(*arguments, **options)
    except (polymux.PolymuxError, ZeroDivisionError):
        return
    raise SystemExit("a conversion that should fail did not")

def stop(progress):
    1 / 0

def measure():
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return {
        "memory": int(status["VmRSS"].split()[0]) * 1024,
        "threads": int(status["Threads"]),
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


@pytest.mark.parametrize(
    ("count", "growth_mib"), [(120, 4), pytest.param(1000, 6, marks=pytest.mark.long)]
)
def test_many_conversions(clips: Clips, tmp_path: Path, count: int, growth_mib: float) -> None:
    """Compares resource usage after a quarter of the conversions and after all of them."""
    broken = tmp_path / "broken.m4a"
    broken.write_bytes(clips.data("m4a")[:2000])
    arguments = [str(clips.path("mp3-short")), str(broken), str(count)]
    # With one malloc arena, any remaining growth is a leak and not a per-thread arena.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", MANY_CONVERSIONS, *arguments],
        cwd=tmp_path, env=dict(os.environ, MALLOC_ARENA_MAX="1"),
        capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.m4a", "out.mp3"]
    first, last = json.loads(done.stdout)
    assert last["threads"] == first["threads"], done.stdout
    assert last["descriptors"] == first["descriptors"], done.stdout
    assert SANITIZED or last["memory"] - first["memory"] <= growth_mib * MIB, done.stdout
