from __future__ import annotations

from typing import Any

import pytest
from polymux import contract
from polymux.errors import UnprocessableEntityError
from polymux.server.compat.replicate.errors import error_of
from polymux.server.compat.replicate.inputs import chat_body
from polymux.server.compat.replicate.predictions import creation, span_s, wait_s


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        ("wait", 60), ("wait = 7", 7), ("respond-async, wait=10", 10), ("wait=61", 60),
        ("wait=0", 0), ("", None), ("wait=", 60), ("wait=-1", None), ("wait=1e1", None),
        ("wait=99999999999", 60), ("x-wait=5", None), ("wait=5, wait=9", 5), ("wait=\u0665", None),
    ],
)  # fmt: skip
def test_how_long_to_wait(prefer: str, seconds: float | None) -> None:
    """`test_preferences.py` tests the parsing of the header."""
    assert wait_s(prefer, 60.0) == seconds


@pytest.mark.parametrize("text", ["", "s", "4s", "0m", "1h1h", "1 m", "9999999", "\u0665s"])
def test_spans_that_are_none(text: str) -> None:
    assert span_s("5m5") == 305
    with pytest.raises(UnprocessableEntityError):
        span_s(text)


def test_null_is_as_good_as_absent() -> None:
    wanted = creation({"input": None, "stream": None, "webhook": None, "version": None})
    assert wanted == creation({})
    assert (wanted.input, wanted.stream, wanted.webhook) == ({}, False, None)


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        ({"prompt": "Hi"}, [("user", "Hi")]),
        ({"prompt": "Hi", "system_prompt": ""}, [("user", "Hi")]),
        ({"prompt": "Hi", "system_prompt": "Be brief."}, [("system", "Be brief."), ("user", "Hi")]),
        ({"messages": '[{"role": "user", "content": "Hi"}]'}, [("user", "Hi")]),
    ],
)
def test_conversations(given: dict[str, Any], messages: list[tuple[str, str]]) -> None:
    for operation in ("chat", "free_chat"):
        body, warnings = chat_body(operation, given, None)
        assert [(one["role"], one["content"]) for one in body["messages"]] == messages
        assert warnings == []


def test_names_that_steer_reach_the_contract() -> None:
    """The contract refuses them; they are not dropped silently."""
    for operation in ("chat", "free_chat"):
        for name in contract.describe(operation)[0]["refused_fields"]:
            body, _ = chat_body(operation, {"prompt": "Hi", name: "x"}, None)
            assert name in body


def test_a_named_chat_model_is_that_one() -> None:
    body, warnings = chat_body("chat", {"prompt": "Hi", "model": "other"}, "small")
    assert body["model"] == "small"
    assert ["model" in one for one in warnings] == [True]


@pytest.mark.parametrize("status", [400, 401, 404, 418, 429, 500, 503])
def test_every_error_has_a_title(status: int) -> None:
    body = error_of({"status": status, "code": "x", "message": "words", "param": None}, "req_1")
    assert body["title"]
    assert (body["status"], body["detail"], body["request_id"]) == (status, "words", "req_1")
    assert "param" not in body


@pytest.mark.parametrize(("given", "sent"), [("", None), (",", None), ("a,,b", ["a", "b"])])
def test_texts_that_end_a_chat(given: str, sent: list[str] | None) -> None:
    """Many models send an empty text for "no stop sequences", and servers refuse an empty list."""
    body, _ = chat_body("chat", {"prompt": "Hi", "stop_sequences": given}, None)
    assert body.get("stop") == sent
    assert ("stop" in body) is (sent is not None)
