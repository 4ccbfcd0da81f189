from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux.service.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Open the store of the test's folder; the fixture closes it, even if the test did."""
    stores: list[Store] = []

    def open_one(**options: Any) -> Store:
        stores.append(Store(tmp_path / "s", **options))
        return stores[-1]

    yield open_one
    for one in stores:
        one.close()
