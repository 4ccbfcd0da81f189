"""`/v1/models` with an upstream whose settings list no models."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from servers import listeners, steps
from servers.misbehaving import MisbehavingServer
from support.lazy_imports import openai
from support.upstreams import CANARY, MESSAGES, WHOLE, gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.steps import Step
    from support.polymux_server import PolymuxServer

LISTED = "/v1/models"


@pytest.fixture
def ollama() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        yield server


@pytest.fixture
def server(ollama: MisbehavingServer, tmp_path: Path) -> Iterator[PolymuxServer]:
    with gateway(tmp_path, {"ollama": upstream(tmp_path, ollama.url)}) as running:
        yield running


def lists(*names: Any) -> steps.Step:
    models = {"object": "list", "data": [{"id": one, "object": "model"} for one in names]}
    return steps.answer(200, json.dumps(models).encode())


def listed(server: PolymuxServer) -> list[str]:
    answer = server.ask("GET", LISTED)
    assert answer.status == 200
    return [one["id"] for one in answer.json()["data"]]


def test_what_it_lists_can_be_asked_for(server: PolymuxServer, ollama: MisbehavingServer) -> None:
    """The list is requested at most once a minute, with the gateway's key, not the client's."""
    ollama.script(lists("llama3.2", "qwen/qwen3:8b"), path=LISTED)
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as client:
        names = [one.id for one in client.models.list()]
        assert names == ["llama3.2", "qwen/qwen3:8b"]
        assert client.models.retrieve("qwen/qwen3:8b").id == "qwen/qwen3:8b"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("other")
        ollama.script(steps.answer(200, json.dumps(WHOLE).encode()))
        client.chat.completions.create(model=names[1], messages=MESSAGES)  # type: ignore[arg-type]
    assert json.loads(ollama.requests[-1].body)["model"] == "qwen/qwen3:8b"
    asked = [one for one in ollama.requests if one.path == LISTED]
    assert [one.header("authorization") for one in asked] == [f"Bearer {CANARY}"]


@pytest.mark.parametrize(
    "play",
    [
        [steps.answer(404, b"404 page not found")], [steps.answer(401, b"{}")],
        [steps.answer(200, b"<html>")], [steps.answer(200, b"[]")], [steps.reset()],
        [steps.answer(200, b'{"data": {"a": 1}}')],
        [steps.answer(200, b'{"data": [1, {"id": 2}]}')],
        [lists("", "x" * 201, "a\nb", None)],
    ],
)  # fmt: skip
def test_what_is_no_list(
    server: PolymuxServer, ollama: MisbehavingServer, play: list[Step]
) -> None:
    """An invalid list shows no models and causes no error. It is not requested again at once."""
    ollama.script(*play, path=LISTED)
    assert listed(server) == listed(server) == []
    assert len(ollama.requests) == 1


def test_bounds(server: PolymuxServer, ollama: MisbehavingServer) -> None:
    ollama.script(lists(*range(3), *(f"model-{number}" for number in range(3000))), path=LISTED)
    names = listed(server)
    assert (len(names), names[0]) == (1000, "model-0")


def test_one_that_does_not_answer(tmp_path: Path) -> None:
    with listeners.full_port() as port:
        silent = upstream(tmp_path, f"http://127.0.0.1:{port}")
        with gateway(tmp_path, {"silent": silent}) as server:
            began = time.monotonic()
            assert listed(server) == []
            first_s = time.monotonic() - began
            assert first_s < 20
            began = time.monotonic()
            assert listed(server) == []
            assert time.monotonic() - began < first_s / 2


def test_settings_that_name_models(ollama: MisbehavingServer, tmp_path: Path) -> None:
    """They are the list. If several upstreams accept any name, the first gets unknown names."""
    ollama.script(lists("llama3.2"), path=LISTED, times=None)
    with MisbehavingServer() as other:
        other.script(lists("hidden"), path=LISTED, times=None)
        upstreams = {
            "named": upstream(tmp_path, other.url, models={"fast": "m"}),
            "ollama": upstream(tmp_path, ollama.url),
            "last": upstream(tmp_path, other.url),
        }
        with gateway(tmp_path, upstreams) as server:
            assert listed(server) == ["fast", "llama3.2"]
        assert other.requests == []


def test_another_polymux_lists_its_chat_models(ollama: MisbehavingServer, tmp_path: Path) -> None:
    """Lists only the other server's chat models, not those of other operations."""
    selector = "turian/insanely-fast-whisper-with-video"
    ollama.script(lists("fast", selector, "whisper-1"), path=LISTED)
    attic = upstream(tmp_path, ollama.url, kind="polymux", operations=("chat",))
    with gateway(tmp_path, {"attic": attic}) as server:
        assert listed(server) == listed(server) == ["fast"]
    (asked,) = ollama.requests
    assert (asked.path, asked.header("authorization")) == (LISTED, f"Bearer {CANARY}")
