"""Fixtures for `polymux serve` in a separate process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.serve_command import ServeCommand
from support.supervised_engine import TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _tests_for_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tests' engine importable in engine processes."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture
def program(tmp_path: Path) -> Iterator[ServeCommand]:
    """A server that is not started yet. It is stopped at the end in any case."""
    with ServeCommand(tmp_path) as made:
        yield made
