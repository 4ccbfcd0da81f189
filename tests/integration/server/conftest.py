"""A server whose backend's every step a test decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.polymux_server import Box, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def server(tmp_path: Path, box: Box) -> Iterator[PolymuxServer]:
    def make() -> list[Scripted]:
        box.backend = Scripted(max_concurrency=4)
        return [box.backend]

    with PolymuxServer(tmp_path / "s", make) as running:
        yield running
