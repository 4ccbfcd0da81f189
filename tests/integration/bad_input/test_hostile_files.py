"""Containers, streams and references with false metadata must not break any invariant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import hostile_cases

if TYPE_CHECKING:
    from pathlib import Path

    from support.hostile import Case
    from support.hostile_check import Laboratory


@pytest.mark.parametrize("case", hostile_cases.cases(), ids=str)
def test_invariants(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)
