"""A server for all tests of a module; each has a key of its own and a backend as good as new."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import Box, PolymuxServer
from support.served_songs import made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NUMBERS = count(1)


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four songs; not to be changed."""
    return made(tmp_path_factory.mktemp("songs"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PolymuxServer, Box]]:
    box = Box()
    with PolymuxServer(tmp_path_factory.mktemp("server") / "s", box.makes()) as running:
        yield running, box


@pytest.fixture
def box(shared: tuple[PolymuxServer, Box]) -> Box:
    """Whose backend does what every new one does."""
    _, box = shared
    vars(box.backend).update(vars(type(box.backend)(max_concurrency=4)))
    return box


@pytest.fixture
def server(shared: tuple[PolymuxServer, Box], box: Box) -> PolymuxServer:
    """With a key that has done nothing yet; whoever asks for no box has a new backend too."""
    server, _ = shared
    server.key, _ = server.keys.add(f"test{next(NUMBERS)}")
    return server
