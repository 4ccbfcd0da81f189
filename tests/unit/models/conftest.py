"""A folder of models that nobody else has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.models.folder import ModelsFolder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> ModelsFolder:
    return ModelsFolder(tmp_path / "models")
