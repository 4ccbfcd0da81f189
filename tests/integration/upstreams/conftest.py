"""What tests of upstreams share."""

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
    """An upstream that does what a test has written for it."""
    with MisbehavingServer() as server:
        yield server


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceServer]:
    """An upstream that keeps the whole interface, with nothing of polymux in it."""
    with ReferenceServer() as server:
        server.predictions.job_s = 0.1
        yield server


@pytest.fixture(scope="module")
def ports() -> list[int]:
    """Where each test of a module has upstreams of its own, before one gateway."""
    with ExitStack() as running:
        return [running.enter_context(MisbehavingServer()).port for _ in range(3)]
