"""The polymux client against llama.cpp's own server.

The model has 135 million parameters and answers in 20 tokens: the tests check the protocol, not the
text.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from support.chat_model import CONTEXT_TOKENS, KEY, ChatModel, chat_model

if TYPE_CHECKING:
    from collections.abc import Iterator


TOKENS = 20
#: Makes the model's answers deterministic.
SAME: dict[str, Any] = {"max_completion_tokens": TOKENS, "temperature": 0, "seed": 1}
PATIENCE_S = 30


@pytest.fixture(scope="module")
def model() -> Iterator[ChatModel]:
    with chat_model() as made:
        yield made


@pytest.fixture
def client(model: ChatModel) -> Iterator[polymux.Client]:
    paths = {"chat": "/v1/chat/completions"}
    with polymux.Client(model.url, KEY, paths=paths, timeout=120, retry=0) as made:
        yield made


def test_llama_cpp_answers_and_streams_the_same(client: polymux.Client) -> None:
    """The joined chunks equal the full answer. The token counts arrive last."""
    whole = client.chat("Say hello.", **SAME)
    assert whole.text.strip()
    assert whole.finish_reason in ("length", "stop")
    assert whole.usage is not None
    tokens = whole.usage.completion_tokens or 0
    assert 0 < tokens <= TOKENS
    assert whole.usage.total_tokens == (whole.usage.prompt_tokens or 0) + tokens
    assert whole.extra["timings"]["predicted_n"] == tokens
    counts = {"include_usage": True}
    with client.chat("Say hello.", **SAME, stream=True, stream_options=counts) as stream:
        assert stream.response is not None
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        pieces = [chunk.content or "" for chunk in stream]
    assert stream.finished
    assert "".join(pieces) == stream.text == whole.text
    assert sum(map(bool, pieces)) > 5
    assert stream.finish_reason == whole.finish_reason
    assert stream.usage.completion_tokens == tokens  # type: ignore[union-attr]


def test_llama_cpp_refuses(client: polymux.Client, model: ChatModel) -> None:
    """llama.cpp's message, type and status: an invalid schema, a long prompt, a wrong API key."""
    schema = {"name": "answer", "schema": {"type": "no such type"}}
    form = {"type": "json_schema", "json_schema": schema}
    with pytest.raises(errors.BadRequestError, match="no such type") as refused:
        client.chat("Say hello.", **SAME, response_format=form)
    assert refused.value.type == "invalid_request_error"
    with pytest.raises(errors.BadRequestError, match="context") as too_long:
        client.chat("word " * 5 * CONTEXT_TOKENS, **SAME, stream=True)
    assert too_long.value.type == "exceed_context_size_error"
    assert too_long.value.body["error"]["n_ctx"] == CONTEXT_TOKENS
    with (
        polymux.Client(model.url, "no-key-of-this-server", paths={"chat": "/v1/chat/completions"})
        as stranger,
        pytest.raises(errors.AuthenticationError) as unknown,
    ):  # fmt: skip
        stranger.chat("Say hello.")
    assert unknown.value.status == 401


def test_llama_cpp_stops_when_a_stream_is_closed(client: polymux.Client, model: ChatModel) -> None:
    """The model would generate 900 tokens, but its slot must become free much earlier."""
    endless = {"ignore_eos": True}
    stream = client.chat(
        "Tell a very long story.", max_completion_tokens=900, stream=True, extra_body=endless
    )
    for _ in range(5):
        next(stream)
    working = [one for one in model.slots() if one["is_processing"]]
    assert len(working) == 1
    before = working[0]["next_token"][0]["n_remain"]
    stream.close()
    until = time.monotonic() + PATIENCE_S
    remaining = before
    while working and time.monotonic() < until:
        remaining = working[0]["next_token"][0]["n_remain"]
        time.sleep(0.02)
        working = [one for one in model.slots() if one["is_processing"]]
    assert not working
    assert remaining > before / 2, "it went on without a reader"
    assert client.chat("Say hello.", **SAME).text
