"""The router in somebody else's application: the same keys before the same bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.server.settings import ServerSettings, StoreSettings
from support.hosted import HostedServer
from support.polymux_server import CHAT, HELLO
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPENAI_CHAT = "/v1/chat/completions"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path / "s", lambda: [Scripted()]) as running:
        yield running


def test_the_router_in_a_foreign_application(server: HostedServer) -> None:
    """Its own routes beside ours, and the doors; keys are in `test_authentication.py`."""
    assert server.ask("GET", "/own", key=None).json() == {"it": "is mine"}
    assert server.json(CHAT, HELLO).json() == {"text": "read"}
    assert server.json(CHAT, {"messages": []}).status == 400
    assert server.ask("GET", "/healthz", key=None).status == 200
    assert server.json(OPENAI_CHAT, HELLO).json() == {"text": "read"}
    refused = server.json(OPENAI_CHAT, HELLO, key=None).json()["error"]
    assert refused["code"] == "invalid_api_key"
    refused = server.ask("GET", "/v1/models/no%2Fsuch").json()["error"]
    assert refused["code"] == "model_not_found"
    assert "no/such" in refused["message"]


def test_without_its_lifespan_it_says_what_is_missing(tmp_path: Path) -> None:
    from polymux.server.app import create_app

    app = create_app(ServerSettings(store=StoreSettings(tmp_path / "s")))
    with pytest.raises(RuntimeError, match="lifespan"):
        app.state.polymux.service  # noqa: B018 - looking is the test
