"""Errors of /replicate/v1: their format, and hostile requests."""

from __future__ import annotations

from typing import Any

import pytest
from polymux.runtime.settings import Limits
from replicate.exceptions import ReplicateError
from support.polymux_server import PolymuxServer, form
from support.replicate_compat import ScriptedModels, of

BASE = "/replicate/v1"
CONVERT = "polymux/convert-to-mp3"
IMAGE = "bytedance/sdxl-lightning-4step"


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return {"limits": Limits(chat_bytes=2 << 20, json_bytes=64 << 10, upload_bytes=1 << 20)}


def refused(server: PolymuxServer, body: Any, path: str = "predictions") -> tuple[int, str]:
    """Return the status and detail of an error. Checks that nothing was started or stored."""
    answer = server.json(f"{BASE}/{path}", body)
    error = answer.json()
    assert 400 <= answer.status < 500, error
    assert (error["status"], bool(error["title"])) == (answer.status, True)
    assert error["request_id"] == answer.headers["x-request-id"]
    assert len(error["detail"]) < 3000
    assert not any((server.settings.store.folder / "drafts").iterdir())
    return answer.status, error["detail"]


def test_keys(server: PolymuxServer) -> None:
    for wrong in (None, "pmx_wrong"):
        answer = server.ask("GET", f"{BASE}/predictions", key=wrong)
        assert (answer.status, answer.json()["title"]) == (401, "Unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    with pytest.raises(ReplicateError) as unauthenticated:
        of(server, key="pmx_wrong").run("polymux/chat", input={"prompt": "Hi"})
    assert (unauthenticated.value.status, unauthenticated.value.title) == (401, "Unauthenticated")
    for scheme in ("Token", "bearer"):
        field = [("Authorization", f"{scheme} {server.key}")]
        assert server.ask("GET", f"{BASE}/predictions", headers=field).status == 200
    for scheme in ("Basic", "Tokens", "Token\t"):
        field = [("Authorization", f"{scheme} {server.key}")]
        assert server.ask("GET", f"{BASE}/predictions", headers=field).status == 401
    # Other paths accept only "Bearer".
    field = [("Authorization", f"Token {server.key}")]
    assert server.ask("GET", "/api/v1/predictions", headers=field).status == 401


def test_every_address_wants_a_key(server: PolymuxServer) -> None:
    """The paths are enumerated from the application."""
    from polymux.server.app import create_app

    routes = [one for one in create_app(server.settings).routes if one.path.startswith(BASE)]  # type: ignore[attr-defined]
    assert len(routes) == 13
    for route in routes:
        path = route.path.replace("{owner}/{name}", CONVERT).replace("{id}", "x")  # type: ignore[attr-defined]
        for method in ("GET", "POST", "DELETE"):
            answer = server.ask(method, path, key=None)
            assert answer.status in (401, 405), (method, path)
            assert "detail" in answer.json()
        assert server.ask("OPTIONS", path).status == 405


def test_addresses_that_are_none(server: PolymuxServer) -> None:
    for path in ("", "accounts", "models/a", "predictions/x/y", "trainings", "models/a/b/c"):
        for key in (None, server.key):
            answer = server.ask("GET", f"{BASE}/{path}", key=key)
            assert (answer.status, answer.json()["title"]) == (404, "Not found")
    answer = server.ask("PUT", f"{BASE}/predictions")
    assert (answer.status, answer.json()["title"]) == (405, "Method not allowed")
    assert answer.headers["allow"] == "GET, POST"
    body, headers = form(("version", "polymux/chat"))
    answer = server.ask("POST", f"{BASE}/predictions", body, headers)
    assert (answer.status, answer.json()["title"]) == (415, "Unsupported media type")


@pytest.mark.parametrize(
    "version",
    [
        None, "x", "polymux/no-such", f"{CONVERT}:{'0' * 64}", "../../etc/passwd", 5, "f" * 100_000,
        "polymux/chat\n",
    ],
)  # fmt: skip
def test_versions_that_are_none(server: PolymuxServer, version: Any) -> None:
    status, _ = refused(server, {"version": version, "input": {}})
    assert status == 422


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (CONVERT, {}),
        (CONVERT, {"file": "data:,x", "url": "http://files.example/a"}),
        (CONVERT, {"file": "data:,x", "bitrate": [1]}),
        (CONVERT, {"file": "data:audio/wav;base64,@@@"}),
        (CONVERT, {"file": "file:///etc/passwd"}),
        (IMAGE, {"prompt": "x", "width": "wide"}),
        ("polymux/chat", {"prompt": "x", "messages": []}),
        ("polymux/chat", {"messages": [{"role": "user", "content": "x"}], "system_prompt": "y"}),
        ("polymux/chat", {"prompt": "x", "base_url": "http://127.0.0.1"}),
    ],
)
def test_inputs_that_are_wrong(
    server: PolymuxServer, backend: ScriptedModels, model: str, given: dict[str, Any]
) -> None:
    began = len(backend.began)
    status, detail = refused(server, {"input": given}, f"models/{model}/predictions")
    assert status == 422, detail
    assert server.json(f"{BASE}/predictions", {"version": model, "input": given}).status == 422
    assert len(backend.began) == began


@pytest.mark.parametrize(
    ("given", "field", "other"),
    [
        ({"prompt": "x", "max_tokens": 0}, "max_tokens", "max_completion_tokens"),
        ({"prompt": "x", "stop_sequences": "a,b,c,d,e"}, "stop_sequences", "stop:"),
    ],
)
def test_refusals_name_what_was_sent(
    server: PolymuxServer, given: dict[str, Any], field: str, other: str
) -> None:
    """The field's name in this API, not in the operation's own API."""
    answer = server.json(f"{BASE}/models/polymux/chat/predictions", {"input": given}).json()
    assert answer["param"] == field
    assert f"{field}" in answer["detail"]
    assert other not in answer["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {"input": "text"},
        {"input": {"prompt": "x"}, "stream": "yes"},
        {"input": {"prompt": "x"}, "webhook": "https://hooks.example/" + "x" * 3000},
        {"input": {"prompt": "x"}, "webhook_events_filter": ["finished"]},
        {"input": {"prompt": "x"}, "\u202e" + "x" * 5000: 1},
        {"input": {"prompt": "x"}, "version": "polymux/chat"},
    ],
)
def test_bodies_that_are_wrong(server: PolymuxServer, body: dict[str, Any]) -> None:
    assert refused(server, body, "models/polymux/chat/predictions")[0] == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400), (b"[]", 400), (b"{", 400), (b"\xff\xfe", 400), (b"x" * (3 << 20), 413),
        (b'{"version": "polymux/chat", "input": {"prompt": "' + b"x" * 70_000 + b'"}}', 413),
        (b'{"version": "polymux/chat", "input": {"prompt": "x", "n": 1e999}}', 422),
        (b'{"version": "polymux/chat", "input": ' + b'{"a":' * 70 + b"1" + b"}" * 71, 422),
    ],
)  # fmt: skip
def test_bodies_that_are_none(server: PolymuxServer, body: bytes, status: int) -> None:
    assert refused(server, body)[0] == status


def test_unknown_inputs_are_left_out_and_logged(server: PolymuxServer) -> None:
    for model, given in ((CONVERT, {"file": "data:,x"}), ("polymux/chat", {"prompt": "x"})):
        job = of(server).predictions.create(version=model, input={**given, "top_k": 5}, wait=True)
        assert job.status == "succeeded"
        assert job.logs is not None
        assert "top_k" in job.logs
        assert job.input == {**given, "top_k": 5}
