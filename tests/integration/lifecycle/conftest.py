"""`polymux serve` in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.serving import ServedProgram
from support.supervised import TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _tests_for_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines' processes find those of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture
def program(tmp_path: Path) -> Iterator[ServedProgram]:
    """Not started; whatever becomes of it, it is ended."""
    with ServedProgram(tmp_path) as made:
        yield made
