"""What the page shows of the server itself, and to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux.runtime.upstream_settings import UpstreamSettings
from polymux.server.routes.admin import PATH
from support.polymux_server import CHAT, HELLO, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("POLYMUX_MODELS", str(folder))
    return folder


@pytest.fixture
def server(tmp_path: Path, models: Path) -> Iterator[PolymuxServer]:
    upstream = UpstreamSettings("openai", "https://someone:secret@models.example/v1")

    def make() -> list[Scripted]:
        return [Scripted(max_concurrency=4), Scripted("attic", ("chat",))]

    with PolymuxServer(tmp_path / "s", make, upstreams={"attic": upstream}) as running:
        yield running


def told(server: PolymuxServer) -> dict[str, Any]:
    answer = server.ask("GET", PATH)
    assert answer.status == 200
    found: dict[str, Any] = answer.json()
    return found


def test_engines_and_upstreams(server: PolymuxServer) -> None:
    found = told(server)
    [engine], [upstream] = found["engines"], found["upstreams"]
    assert engine["name"] == "scripted"
    assert (engine["max_concurrency"], engine["running"], engine["waiting"]) == (4, 0, 0)
    assert engine["operations"] == ["chat", "convert_to_mp3", "free_chat", "read_text"]
    assert engine["state"] == "ready"
    assert (upstream["name"], upstream["kind"], upstream["host"]) == (
        "attic", "openai", "models.example",
    )  # fmt: skip


def test_keys_are_told_by_what_they_may(server: PolymuxServer) -> None:
    text, _ = server.keys.add("site", scopes=("chat",), requests_per_minute=60.0, concurrent=2)
    for _ in range(2):
        server.json(CHAT, HELLO, key=text)
    answer = server.ask("GET", PATH)
    for secret in (text, server.key, "sha256", "someone", "secret", str(server.settings.store)):
        assert secret not in answer.body.decode()
    site = next(one for one in answer.json()["keys"] if one["name"] == "site")
    assert site["scopes"] == ["chat"]
    assert (site["requests_per_minute"], site["concurrent"]) == (60.0, 2)
    assert site["requests"] == 2
    assert site["created_at"].endswith("Z")
    assert site["expires_at"] is None


def test_requests_are_counted(server: PolymuxServer) -> None:
    server.json(CHAT, HELLO)
    server.json(CHAT, b"{")
    chats = next(one for one in told(server)["requests"] if one["operation"] == "chat")
    assert (chats["requests"], chats["failures"]) == (2, 1)
    assert chats["mean_s"] >= 0


def test_models_memory_and_store(server: PolymuxServer, models: Path) -> None:
    (models / "small.gguf").write_bytes(b"GGUF" + bytes(996))
    found = told(server)
    [model] = found["models"]
    assert (model["name"], model["family"], model["bytes"]) == ("small", "chat", 1000)
    assert found["memory"]["server_bytes"] > 1 << 20
    assert found["memory"]["free_bytes"] > 1 << 20
    assert found["memory"]["engines_limit_bytes"] is None
    assert found["store"]["used_bytes"] == 0
    assert found["store"]["limit_bytes"] == server.settings.store.bytes
    assert found["store"]["jobs_running"] == 0
