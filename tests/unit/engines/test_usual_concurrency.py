from __future__ import annotations

import pytest
from polymux.engines import registry
from polymux.runtime.settings import EngineSettings


@pytest.mark.parametrize(("memory_bytes", "wanted"), [(64 << 30, 2), (1 << 30, 1)])
def test_the_limit_of_a_container_counts(
    memory_bytes: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two requests at the same time need memory that a container may not have."""
    monkeypatch.setattr(registry, "machine_bytes", lambda: memory_bytes)
    assert EngineSettings("media").max_concurrency == wanted
