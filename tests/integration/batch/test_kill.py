"""kill -9 at any moment: nothing that was done is lost, nothing that was finished is done again."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from support.batch_kills import BatchKills

if TYPE_CHECKING:
    from pathlib import Path


def test_killed_three_times(tmp_path: Path) -> None:
    rounds = BatchKills(tmp_path, 60, 3)
    rounds.run(3)
    assert rounds.kills == 3


@pytest.mark.long
def test_killed_a_hundred_times(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    rounds = BatchKills(tmp_path, 400, seed)
    try:
        rounds.run(100)
    except BaseException:
        print(f"seed {seed}, after {rounds.kills} kills")
        raise
    # Some kills must have come between the name of a file and the word that it is done.
    assert rounds.cut_short > 0, f"seed {seed}: the moments were too kind"
