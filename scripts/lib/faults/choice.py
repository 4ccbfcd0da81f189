"""Chooses faults spread over the tree, the same ones for the same seed and tree."""

from __future__ import annotations

import subprocess
import sys
from bisect import bisect_right
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING

from faults import cpp_sites, python_sites
from faults.fault import Fault, Site, fault_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def generated_files(root: Path) -> set[str]:
    """Return the names of the files that scripts/generate writes."""
    command = [sys.executable, str(root / "scripts/generate"), "--list"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def choose(root: Path, seed: int, count: int, generated: set[str]) -> list[Fault]:
    """Choose `count` faults of the Python package and `count` of the C++ core."""
    python = [*(root / "python/polymux").rglob("*.py")]
    cpp = [*(root / "cpp/src").rglob("*.cpp"), *(root / "cpp/src").rglob("*.hpp")]
    faults = []
    for files, sites in ((python, python_sites.sites), (cpp, cpp_sites.sites)):
        names = sorted({file.relative_to(root).as_posix() for file in files} - generated)
        texts = {name: (root / name).read_text() for name in names}
        faults += _spread(texts, sites, seed, count)
    return faults


def _spread(
    texts: dict[str, str], sites: Callable[[str], list[Site]], seed: int, count: int
) -> list[Fault]:
    """Choose files at equal distances in lines of code; each folder gets its share."""
    names = list(texts)
    if not names:
        return []
    ends = list(accumulate(sum(map(bool, map(str.strip, t.split("\n")))) for t in texts.values()))
    step = ends[-1] / count
    start = Random(f"{seed}").uniform(0, step)
    left = dict(enumerate(names))
    faults: list[Fault] = []
    for number in range(count):
        first = bisect_right(ends, start + number * step)
        # If a file has no possible fault, the next file is used.
        for index in sorted(left, key=lambda index: (index - first) % len(names)):
            name = left.pop(index)
            if found := sites(texts[name]):
                faults.append(fault_at(name, texts[name], _pick(found, Random(f"{seed} {name}"))))
                break
    return faults


def _pick(sites: list[Site], random: Random) -> Site:
    """Choose a kind first: otherwise most faults would be of the most frequent kind."""
    kind = random.choice(sorted({site.kind for site in sites}))
    return random.choice([site for site in sites if site.kind == kind])
