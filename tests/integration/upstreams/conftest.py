from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from servers.misbehaving import MisbehavingServer
from servers.reference import ReferenceServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def bad() -> Iterator[MisbehavingServer]:
    """An upstream whose responses each test scripts."""
    with MisbehavingServer() as server:
        yield server


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceServer]:
    """An upstream that implements the whole API without any polymux code."""
    with ReferenceServer() as server:
        server.predictions.job_s = 0.1
        yield server


@pytest.fixture(scope="module")
def ports() -> list[int]:
    """Ports at which each test of a module can start its own upstreams for one shared gateway."""
    with ExitStack() as running:
        return [running.enter_context(MisbehavingServer()).port for _ in range(3)]
