from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.hostile import Clips
from support.hostile_check import Laboratory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.corpus import Corpus


@pytest.fixture(scope="session")
def clips(corpus: Corpus) -> Clips:
    """Small valid files of every container."""
    return Clips(corpus.cache)


@pytest.fixture(scope="session")
def laboratory(clips: Clips) -> Iterator[Laboratory]:
    """Runs hostile files in child processes and checks the invariants."""
    made = Laboratory(clips)
    yield made
    made.close()
