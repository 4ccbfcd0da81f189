"""Children of the supervisor find the tests' engine."""

from __future__ import annotations

import pytest
from support.supervised import TESTS


@pytest.fixture(autouse=True)
def _tests_for_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
