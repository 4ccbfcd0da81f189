"""What tests of upstreams share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from servers.misbehaving import MisbehavingServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def bad() -> Iterator[MisbehavingServer]:
    """An upstream that does what a test has written for it."""
    with MisbehavingServer() as server:
        yield server
