"""One wheel of this repository, and an environment with nothing else installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.native_build import new_environment, pip_install, wheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def built_wheel() -> Path:
    return wheel("test-wheel")


@pytest.fixture(scope="session")
def installed(built_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the environment ``venv``."""
    folder = tmp_path_factory.mktemp("installed")
    pip_install(new_environment(folder / "venv"), built_wheel)
    return folder
