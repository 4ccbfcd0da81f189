"""Fixtures shared by the integration tests. Case IDs such as K14: docs/development/testing.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from servers.reference import ReferenceServer
from support.long_sound import write_long_wave
from support.sounds import Sound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.corpus import Corpus


@pytest.fixture
def server() -> Iterator[ReferenceServer]:
    with ReferenceServer() as made:
        yield made


@pytest.fixture
def clip(corpus: Corpus) -> Path:
    return corpus.wave(Sound(samples=22_050))


@pytest.fixture(scope="session")
def long_wave(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hours of audio: the conversion never ends before the test does."""
    return write_long_wave(tmp_path_factory.mktemp("long") / "long.wav", 4 * 3600)
