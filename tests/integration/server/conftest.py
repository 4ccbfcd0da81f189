"""A server whose backend's every step a test decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.polymux_server import Box, PolymuxServer
from support.served_songs import made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four songs; not to be changed."""
    return made(tmp_path_factory.mktemp("songs"))


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def server(tmp_path: Path, box: Box) -> Iterator[PolymuxServer]:
    with PolymuxServer(tmp_path / "s", box.makes()) as running:
        yield running
