"""A server shared by a module's tests. Each test gets its own key and a reset backend."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from support.fake_clock import BEGIN, FakeClock
from support.polymux_server import Box, PolymuxServer
from support.served_songs import made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NUMBERS = count(1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of every store that a server opens."""
    found = FakeClock()
    found.now = BEGIN
    monkeypatch.setattr("polymux.service.store.SteadyClock", lambda: found)
    return found


@pytest.fixture(scope="session")
def song_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A song index of four songs. Tests must not change it."""
    return made(tmp_path_factory.mktemp("songs"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PolymuxServer, Box]]:
    box = Box()
    with PolymuxServer(tmp_path_factory.mktemp("server") / "s", box.makes()) as running:
        yield running, box


@pytest.fixture
def box(shared: tuple[PolymuxServer, Box]) -> Box:
    """Access to the backend, reset to its initial state."""
    _, box = shared
    vars(box.backend).update(vars(type(box.backend)(max_concurrency=4)))
    return box


@pytest.fixture
def server(shared: tuple[PolymuxServer, Box], box: Box) -> PolymuxServer:
    """The server with an unused API key. Resets the backend even without `box`."""
    server, _ = shared
    server.key, _ = server.keys.add(f"test{next(NUMBERS)}")
    return server
