"""A real llama.cpp server as the upstream of a server and of `Local`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.chat_model import KEY, ChatModel, chat_model
from support.upstreams import gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import PolymuxServer

SAME: dict[str, Any] = {"max_completion_tokens": 12, "temperature": 0.0, "seed": 1}


@pytest.fixture(scope="module")
def model() -> Iterator[ChatModel]:
    with chat_model() as made:
        yield made


@pytest.fixture(scope="module")
def server(model: ChatModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("llama")
    upstreams = {
        "llama": upstream(folder, model.url, key=KEY, models={"small": "SmolLM2"}),
    }
    with gateway(folder, upstreams) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, server.key, timeout=120, retry=0) as made:
        yield made


def test_whole_and_in_pieces(client: polymux.Client) -> None:
    whole = client.chat("Say hello.", model="small", **SAME)
    assert whole.text.strip()
    assert whole.usage is not None
    assert whole.usage.completion_time is not None
    assert whole.usage.completion_time > 0
    assert whole.extra["timings"]["predicted_n"] == whole.usage.completion_tokens
    counts = {"include_usage": True}
    with client.chat(
        "Say hello.", model="small", stream=True, stream_options=counts, **SAME
    ) as stream:
        text = "".join(stream.texts())
        assert stream.usage is not None
        assert stream.usage.completion_tokens == whole.usage.completion_tokens
    assert text == whole.text


def test_who_leaves_frees_its_place(client: polymux.Client, model: ChatModel) -> None:
    """The slot becomes free on a server that is generating (C33 in docs/development/testing.md)."""
    stream = client.chat("Count to a thousand.", model="small", stream=True, temperature=0.0)
    next(stream)
    assert any(one["is_processing"] for one in model.slots())
    stream.close()
    until = time.monotonic() + 2
    while any(one["is_processing"] for one in model.slots()):
        assert time.monotonic() < until
