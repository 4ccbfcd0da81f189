"""kill -9 immediately before and after each step that stores a result."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from support.batch_kills import BATCH, BatchKills
from support.commands import call, environment
from support.warm_python import WarmPython

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Kills its own process at the n-th call of a function.
CHILD = """
import importlib, os, signal, sys

(module, owner, name, moment, left), words = {!r}
place = importlib.import_module("polymux.batches." + module)
place = getattr(place, owner) if owner else place
function, left = getattr(place, name), int(left)

def counted(*arguments, **named):
    global left
    left -= 1
    is_it = left == 0  # Other threads may decrease it further.
    if is_it and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = function(*arguments, **named)
    if is_it:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(place, name, counted)
from polymux.cli import main
sys.exit(main(words))
"""
STEPS = [
    ("database", "", "_make", 1),
    ("manifest", "Manifest", "add", 1),
    ("output_store", "OutputStore", "sealed", 3),
    ("manifest", "Manifest", "write_down", 3),
    ("output_store", "OutputStore", "publish", 2),
    ("output_store", "", "move_into_place", 3),
    ("output_store", "OutputStore", "sync", 3),
    ("output_store", "OutputStore", "leave", 1),
]


#: The moment after a step is also the moment before the next one, so these steps cover both.
BEFORE = {"move_into_place", "leave"}


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    with WarmPython(
        "import polymux.batches.api, polymux.cli.batch, polymux.local.sync_local"
    ) as made:
        yield made


@pytest.mark.parametrize(
    ("step", "moment"),
    [
        *((step, "after") for step in STEPS),
        *((step, "before") for step in STEPS if step[2] in BEFORE),
    ],
    ids=lambda one: one if isinstance(one, str) else f"{one[0]}-{one[2]}",
)
def test_killed_at_a_step(
    python: WarmPython, tmp_path: Path, step: tuple[str, str, str, int], moment: str
) -> None:
    rounds = BatchKills(tmp_path, 8)
    code = CHILD.format(((*step[:3], moment, step[3]), [*BATCH, "-q"]))
    output = tmp_path / "output"
    python.run(code, tmp_path, output, environment(tmp_path), status=-signal.SIGKILL)
    rounds.check()
    call(*BATCH, "--resume", "-q", cwd=tmp_path, code=1)
    rounds.check()
    rounds.check_complete()
