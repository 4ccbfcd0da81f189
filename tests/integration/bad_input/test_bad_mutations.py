"""Valid files of every container with flipped, missing and duplicated bytes.

No mutation may cause a crash, hang, leak or leftover file. A damaged file may convert or fail. The
seeds are fixed, so every run tests the same files.
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
    """Convert a clip with the damage of each seed and check the invariants each time."""
    data = clips.data(container)
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        source = place / f"{container}-{seed}.bin"
        source.write_bytes(mutate(data, seed))
        laboratory.check_file(source, place, allowed=ANYTHING)
        # Remains only if the test fails, for its message.
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
