"""Errors of /v1 have OpenAI's format and are sent before the body is read if possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.runtime.settings import Limits
from polymux.server.app import create_app
from polymux.server.auth.api_keys import KeyFile
from polymux.server.settings.settings import CompatSettings
from polymux.service.errors import status_error
from support.lazy_imports import openai
from support.openai_compat import ScriptedModels, of
from support.polymux_server import CHAT, HELLO, Answer, PolymuxServer, form

if TYPE_CHECKING:
    from pathlib import Path

POSTS = (
    "/v1/chat/completions",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/images/generations",
    "/v1/images/edits",
)
GETS = ("/v1/models", "/v1/models/default")
SITE = "https://site.example"
FILE = ("talk.wav", b"RIFF")


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    limits = Limits(json_bytes=2000, chat_bytes=2000, upload_bytes=4000, queue=0)
    return {"limits": limits, "allowed_origins": (SITE,)}


def error_of(answer: Answer, status: int) -> dict[str, Any]:
    """Return the error after checking its status and format."""
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    body = answer.json()
    assert body.keys() == {"error"}
    error: dict[str, Any] = body["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str)
    assert error["message"]
    return error


def test_every_address_wants_a_key(server: PolymuxServer) -> None:
    app = create_app(server.settings)
    routes = {route.path for route in app.routes}  # type: ignore[attr-defined]
    own = {path for path in routes if path.startswith("/v1/")}
    assert own == {*POSTS, "/v1/models", "/v1/models/{model:path}"}
    for method, paths in (("POST", POSTS), ("GET", GETS)):
        for path in paths:
            for key in (None, "wrong"):
                answer = server.ask(method, path, key=key)
                error = error_of(answer, 401)
                assert error["code"] == "invalid_api_key"
                assert error["type"] == "invalid_request_error"
                assert answer.headers["www-authenticate"].startswith("Bearer")


def test_the_package_raises_what_it_should(server: PolymuxServer, backend: ScriptedModels) -> None:
    for key in ("wrong key", "pmx_", "x" * 5000):
        with (
            of(server, api_key=key) as wrong_client,
            pytest.raises(openai.AuthenticationError) as refused,
        ):
            wrong_client.models.list()
        assert refused.value.code == "invalid_api_key"
        assert key not in refused.value.message or key == "pmx_"
    with of(server) as client:
        with pytest.raises(openai.NotFoundError) as unknown:
            client.embeddings.create(model="default", input="x")
        assert unknown.value.code == "not_found"
        backend.failure = status_error(
            polymux.errors.RateLimitError, "the upstream is busy", retry_after_s=7
        )
        with pytest.raises(openai.RateLimitError) as busy:
            client.chat.completions.create(**HELLO)
        assert busy.value.code == "rate_limit_exceeded"
        assert busy.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    "path", ["/v1/nothing", "/v1/", "/v1/chat/completions/", "/v1/chat%2fcompletions"]
)
def test_addresses_that_are_none(server: PolymuxServer, path: str) -> None:
    for method in ("GET", "POST"):
        error = error_of(server.ask(method, path, key=None), 404)
        assert (error["type"], error["code"]) == ("invalid_request_error", "not_found")
    assert error_of(server.ask("GET", "/v1/models/"), 404)["code"] == "model_not_found"
    for method, known, allowed in (("GET", POSTS[0], "POST"), ("POST", GETS[0], "GET")):
        answer = server.ask(method, known)
        assert error_of(answer, 405)["code"] == "wrong_method"
        assert answer.headers["allow"] == allowed


def test_bodies_that_are_refused(server: PolymuxServer) -> None:
    body, headers = form(("file", ("a.wav", b"x" * 5000)), ("model", "whisper-1"))
    answer = server.ask("POST", "/v1/audio/transcriptions", body, headers)
    assert error_of(answer, 413)["code"] == "too_large"
    long = {**HELLO, "user": "x" * 3000}
    assert error_of(server.json(POSTS[0], long), 413)["code"] == "too_large"
    assert error_of(server.json("/v1/images/generations", long), 413)["code"] == "too_large"
    for path in POSTS:
        answer = server.ask("POST", path, b"x", [("Content-Type", "text/plain")])
        assert error_of(answer, 415)["code"] == "unsupported_media"
    assert error_of(server.json(POSTS[0], b"{"), 400)["code"] == "invalid_request"
    two = [("Authorization", "Bearer x"), ("Authorization", f"Bearer {server.key}")]
    assert error_of(server.json(POSTS[0], HELLO, two), 400)["type"] == "invalid_request_error"


def test_scopes_are_those_of_the_operations(server: PolymuxServer) -> None:
    """A key with the scope chat may use chats and list their models, as in the polymux API."""
    keys = KeyFile(server.settings.key_file)
    key, _ = keys.add("chats", scopes=("chat",))
    assert server.json(POSTS[0], HELLO, key=key).status == 200
    body, headers = form(("file", FILE), ("model", "whisper-1"))
    error = error_of(server.ask("POST", POSTS[1], body, headers, key=key), 403)
    assert (error["type"], error["code"]) == ("permission_error", "forbidden")
    assert "transcribe" in error["message"]
    assert error_of(server.json(POSTS[3], {"prompt": "x"}, key=key), 403)
    models = server.ask("GET", "/v1/models", key=key).json()["data"]
    assert [one["id"] for one in models] == ["default"]
    assert error_of(server.ask("GET", "/v1/models/whisper-1", key=key), 404)
    other, _ = keys.add("speech", scopes=("transcribe",))
    assert server.ask("POST", POSTS[1], body, headers, key=other).status == 200
    assert server.ask("GET", "/v1/models/whisper-1", key=other).status == 200
    error_of(server.json(POSTS[0], HELLO, key=other), 403)


def test_an_api_that_is_disabled(tmp_path: Path) -> None:
    shut = CompatSettings(openai=False)
    with PolymuxServer(tmp_path / "s", lambda: [ScriptedModels()], compat=shut) as server:
        answer = server.json("/v1/chat/completions", HELLO)
        assert (answer.status, answer.json()["code"]) == (404, "not_found")
        assert server.json(CHAT, HELLO).status == 200
