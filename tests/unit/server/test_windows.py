"""How much a chat engine reads at once, as its settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux.runtime.build import backends_of
from polymux.runtime.settings import EngineSettings, StoreSettings
from polymux.server.settings.settings import ServerSettings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("options", "tokens"), [({"context": 1234}, 1234), ({}, 4096)])
def test_the_window_is_the_engines_context(
    tmp_path: Path, options: dict[str, Any], tokens: int
) -> None:
    model = tmp_path / "small.gguf"
    model.write_bytes(b"GGUF")
    engines = {"chat": EngineSettings("chat", {"model": str(model), **options})}
    settings = ServerSettings(store=StoreSettings(tmp_path / "s"), engines=engines)
    made = {one.name: one for one in backends_of(settings)}
    assert made["chat"].window_tokens() == tokens
    assert {one.window_tokens() for name, one in made.items() if name != "chat"} <= {None}
