"""Chats that are too long are refused before their text is processed."""

from __future__ import annotations

from typing import Any

import pytest
from polymux.engines.chat.backend import ChatBackend
from polymux.errors import BadRequestError
from support.services import Scripted, chat_of

BACKEND = ChatBackend(Scripted(), Scripted("media"), window_tokens=4096)
TEXT = {"role": "user", "content": "word " * 4096}


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "word " * 6_000_000}],
        [{"role": "user", "content": ""}] * 1_000_000,
        [{"role": "user", "content": [{"type": "text", "text": ""}] * 10_000}],
    ],
)
def test_what_cannot_fit(messages: list[Any]) -> None:
    with pytest.raises(BadRequestError) as refused:
        BACKEND.refuse(chat_of(messages=messages))
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "messages")


def test_too_many_biases() -> None:
    with pytest.raises(BadRequestError) as refused:
        BACKEND.refuse(chat_of(logit_bias={str(number): 1 for number in range(200_000)}))
    assert refused.value.param == "logit_bias"


@pytest.mark.parametrize("window_tokens", [4096, None])
def test_what_may_fit(window_tokens: int | None) -> None:
    """An image is no text."""
    backend = ChatBackend(Scripted(), Scripted("media"), window_tokens=window_tokens, sees=True)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 500_000}}
    picture = {"role": "user", "content": [{"type": "text", "text": "What?"}, image]}
    backend.refuse(chat_of(messages=[TEXT] * 5 + [picture], logit_bias={"1": 5}))
