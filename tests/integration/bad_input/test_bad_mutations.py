"""Real files of every container with flipped, missing and doubled bytes.

Nothing crashes, hangs, leaks or leaves a file, whatever the bytes are; that a damaged file still
converts is welcome and not asked for. The seeds are fixed: every run tries the same files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.hostile import ENCRYPTED, LIMIT, OK, REFUSED, Clips, mutate

if TYPE_CHECKING:
    from pathlib import Path

    from support.hostile_check import Laboratory

CONTAINERS = sorted(name for name in Clips.FORMATS if not name.endswith("-short"))
ANYTHING = REFUSED | {OK, LIMIT, ENCRYPTED}
SEEDS = 2
LONG_SEEDS = 40


def convert_mutations(
    container: str, seeds: range, laboratory: Laboratory, clips: Clips, folder: Path
) -> None:
    """Converts one clip with each seed's damage, asserting the invariants after each."""
    data = clips.data(container)
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        source = place / f"{container}-{seed}.bin"
        source.write_bytes(mutate(data, seed))
        laboratory.check_file(source, place, allowed=ANYTHING)
        # Kept for the message of a failure, and only then.
        for path in (source, place / "results/out.mp3"):
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("container", CONTAINERS)
def test_mutations(container: str, laboratory: Laboratory, clips: Clips, tmp_path: Path) -> None:
    convert_mutations(container, range(SEEDS), laboratory, clips, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("container", CONTAINERS)
def test_many_mutations(
    container: str, laboratory: Laboratory, clips: Clips, tmp_path: Path
) -> None:
    convert_mutations(container, range(SEEDS, LONG_SEEDS), laboratory, clips, tmp_path)
