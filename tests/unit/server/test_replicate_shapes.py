"""Settings of Replicate's door, and what its requests say, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.errors import UnprocessableEntityError
from polymux.runtime.settings import StoreSettings
from polymux.server.app import create_app
from polymux.server.compat.replicate.chats import chat_body
from polymux.server.compat.replicate.errors import error_of
from polymux.server.compat.replicate.requests import creation, span_s, wait_s
from polymux.server.settings.settings import CompatSettings, ServerSettings, read_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("", True),
        ("[compat]\nreplicate = false\n", False),
        ("host = '0.0.0.0'\n", False),
        ("public_url = 'https://tools.example'\n", False),
        ("public_url = 'https://tools.example'\n[compat]\nreplicate = true\n", True),
    ],
)
def test_where_the_door_is_open(tmp_path: Path, text: str, there: bool) -> None:
    (tmp_path / "polymux.toml").write_text(text)
    assert read_settings(tmp_path / "polymux.toml").replicate_compat is there


@pytest.mark.parametrize(("wanted", "there"), [(None, False), (True, True)])
def test_the_door_on_other_addresses(tmp_path: Path, wanted: bool | None, there: bool) -> None:
    settings = ServerSettings(
        public_url="https://tools.example",
        compat=CompatSettings(replicate=wanted),
        store=StoreSettings(tmp_path / "s"),
    )
    paths = {route.path for route in create_app(settings).routes}  # type: ignore[attr-defined]
    assert ("/replicate/v1/predictions" in paths) is there


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        ("wait", 60), ("wait=1", 1), ("wait = 7", 7), ('wait="7"', 7), ("wait;x=1", 60),
        ("respond-async, wait=10", 10), ("wait=10, respond-async", 10), ("wait=61", 60),
        ("wait=999999", 60), ("wait=0", 0), ("", None), ("wait=", 60), ("wait=-1", None),
        ("wait=1e1", None), ("await", None), ("wait=99999999999", 60), ("WAIT=3", 3),
        ("no-wait", None), ("x-wait=5", None), ("handling=wait", None), ('x="a, wait=5"', None),
        ("wait=5, wait=9", 5), ("wait=\u0665", None), ('wait="5', None),
    ],
)  # fmt: skip
def test_how_long_to_wait(prefer: str, seconds: float | None) -> None:
    """As RFC 7240 has it: other preferences that have the word in them are others."""
    assert wait_s(prefer, 60.0) == seconds


@pytest.mark.parametrize("text", ["", "s", "5m5", "4s", "0m", "1h1h", "1 m", "9999999", "\u0665s"])
def test_spans_that_are_none(text: str) -> None:
    if text == "5m5":
        assert span_s(text) == 305
        return
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
    """It refuses them: they are not left out in silence."""
    for operation in ("chat", "free_chat"):
        for name in contract.describe(operation)[0]["refused_fields"]:
            body, _ = chat_body(operation, {"prompt": "Hi", name: "x"}, None)
            assert name in body


def test_a_named_chat_model_is_that_one() -> None:
    body, warnings = chat_body("chat", {"prompt": "Hi", "model": "other"}, "small")
    assert body["model"] == "small"
    assert warnings == ["model: is not known here and was left out"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 418, 422, 429, 500, 501, 502, 503])
def test_every_error_has_a_title(status: int) -> None:
    body = error_of({"status": status, "code": "x", "message": "words", "param": None}, "req_1")
    assert body["title"]
    assert (body["status"], body["detail"], body["request_id"]) == (status, "words", "req_1")
    assert "param" not in body


@pytest.mark.parametrize(("given", "sent"), [("", None), (",", None), ("a,,b", ["a", "b"])])
def test_texts_that_end_a_chat(given: str, sent: list[str] | None) -> None:
    """An empty text is what many models have for none, and servers refuse an empty list."""
    body, _ = chat_body("chat", {"prompt": "Hi", "stop_sequences": given}, None)
    assert body.get("stop") == sent
    assert ("stop" in body) is (sent is not None)
