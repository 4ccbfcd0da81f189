"""What tests of upstreams share."""

from __future__ import annotations

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
