from __future__ import annotations

import json
import logging
import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import InvalidRequestError
from polymux.runtime.upstream_settings import UpstreamSettings
from polymux.server.auth.api_keys import KeyFile
from polymux.server.routes.admin import PATH, quantile
from polymux.server.routes.api_keys import KEYS
from polymux.service.backend import Health
from support.polymux_server import CHAT, HELLO, Answer, PolymuxServer, read_answer
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_a_file_of_keys_that_others_can_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who can read it gets hashes of random keys; who can write to it gets in."""
    path = tmp_path / "keys.json"
    KeyFile(path).add("one")
    assert len(KeyFile(path).keys()) == 1
    assert not caplog.records
    path.chmod(0o644)
    assert len(KeyFile(path).keys()) == 1
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    path.chmod(0o620)
    with pytest.raises(InvalidRequestError, match="620"):
        KeyFile(path).keys()


JSON = [("Content-Type", "application/json")]


class Loaded(Scripted):
    """An engine that stays loaded until `unload`."""

    held = True

    @property
    def is_loaded(self) -> bool:
        return self.held

    async def unload(self) -> bool:
        self.held = False
        return True

    def health(self) -> Health:
        return Health("ready" if self.held else "idle")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PolymuxServer]:
    upstream = UpstreamSettings("openai", "https://someone:secret@models.example/v1")

    def make() -> list[Scripted]:
        return [Loaded(max_concurrency=4), Scripted("attic", ("chat",))]

    with PolymuxServer(tmp_path / "s", make, upstreams={"attic": upstream}) as running:
        yield running


def patch(server: PolymuxServer, id_: str, value: Any) -> Answer:
    return server.ask("PATCH", f"{KEYS}/{id_}", json.dumps(value).encode(), JSON)


def made(server: PolymuxServer, **values: Any) -> dict[str, Any]:
    answer = server.json(KEYS, {"name": "site", **values})
    assert answer.status == 201, answer.body
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json()
    return found


def listed(server: PolymuxServer) -> list[dict[str, Any]]:
    answer = server.ask("GET", KEYS)
    assert answer.status == 200
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


ROUTES = [
    ("GET", PATH, b""),
    ("GET", KEYS, b""),
    ("POST", KEYS, b'{"name": "x"}'),
    ("PATCH", f"{KEYS}/ID", b'{"name": "x"}'),
    ("DELETE", f"{KEYS}/ID", b""),
    ("POST", f"{KEYS}/ID/rotate", b""),
    ("POST", f"{PATH}/engines/scripted/unload", b""),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_who_may(server: PolymuxServer, method: str, path: str, body: bytes) -> None:
    """Requests fail without a key, without the scope, and from another origin."""
    some, key = server.keys.add("some", scopes=("chat", "predictions", "metrics"))
    target = path.replace("ID", key.id)
    before = server.keys.keys()
    assert server.ask(method, target, body, JSON, key=None).status == 401
    refused = server.ask(method, target, body, JSON, key=some)
    assert (refused.status, "administration" in refused.json()["error"]) == (403, True)
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        assert server.ask(method, target, body, [*JSON, ("Origin", origin)]).status == 403
    assert server.keys.keys() == before
    other, _ = server.keys.add("keeper", scopes=("administration",))
    assert server.ask(method, target, body, JSON, key=other).status in (200, 201, 204)


def test_a_key_is_shown_once(server: PolymuxServer, caplog: pytest.LogCaptureFixture) -> None:
    """Only the answer that creates or rotates a key contains it; no later answer or log does."""
    limits = {"requests_per_minute": 60, "concurrent": 2, "max_estimate_s": 1.5}
    [maker] = server.keys.keys()
    with caplog.at_level(logging.DEBUG):
        found = made(server, scopes=["chat", "chat"], expires_in_days=1, **limits)
        assert found["scopes"] == ["chat"]
        assert found | limits == found
        assert found["expires_at"] > found["created_at"]
        assert server.json(CHAT, HELLO, key=found["key"]).status == 200
        assert server.ask("GET", "/api/v1/predictions", key=found["key"]).status == 403
        rotated = server.ask("POST", f"{KEYS}/{found['id']}/rotate").json()
        assert rotated["key"] != found["key"]
        later = [server.ask("GET", path).body.decode() for path in (KEYS, PATH, "/metrics")]
        later.append(patch(server, found["id"], {"name": "other"}).body.decode())
    later += [server.settings.key_file.read_text(), caplog.text]
    for text in later:
        assert found["key"] not in text
        assert rotated["key"] not in text
    assert "sha256" not in later[0] + later[1] + later[3]
    messages = [one for one in caplog.messages if found["id"] in one and PATH not in one]
    assert sum(maker.id in one for one in messages) == 3


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 101}, "100"),
        ({"name": "a\x1b[2Jb"}, "name"),
        ({"name": "a", "scopes": []}, "scopes"),
        ({"name": "a", "scopes": "chat"}, "scopes"),
        ({"name": "a", "scopes": ["chta"]}, "'chta'"),
        ({"name": "a", "scopes": ["operations"]}, "known: chat, "),
        ({"name": "a", "scopes": [["chat"]]}, "scopes"),
        ({"name": "a", "concurrent": 0}, "concurrent"),
        ({"name": "a", "concurrent": True}, "concurrent"),
        ({"name": "a", "requests_per_minute": -1}, "requests_per_minute"),
        ({"name": "a", "requests_per_minute": "6"}, "requests_per_minute"),
        ({"name": "a", "expires_in_days": 1e300}, "expires_in_days"),
        ({"name": "a", "sha256": "00"}, "'sha256'"),
        (["a"], "JSON"),
        (b'{"name": NaN}', "JSON"),
    ],
)
def test_what_makes_no_key(server: PolymuxServer, value: Any, named: str) -> None:
    answer = server.json(KEYS, value)
    assert (answer.status, answer.json()["code"]) == (400, "invalid_request")
    assert named in answer.json()["error"]
    assert len(server.keys.keys()) == 1


def test_bodies_that_are_not_taken(server: PolymuxServer) -> None:
    """HTML forms cannot send JSON, so requiring JSON also stops cross-site forms."""
    body = b'{"name": "x"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert server.ask("POST", KEYS, body, [("Content-Type", kind)]).status == 415
    assert server.json(KEYS, {"name": "x" * (64 << 10)}).status == 413
    assert len(server.keys.keys()) == 1


def test_a_key_is_changed_and_stays_itself(server: PolymuxServer) -> None:
    found = made(server, concurrent=2, requests_per_minute=1)
    answer = patch(server, found["id"], {"requests_per_minute": None, "scopes": ["read_text"]})
    assert answer.status == 200
    assert answer.json()["scopes"] == ["read_text"]
    assert (answer.json()["requests_per_minute"], answer.json()["concurrent"]) == (None, 2)
    assert "key" not in answer.json()
    assert server.json(CHAT, HELLO, key=found["key"]).status == 403
    assert patch(server, found["id"], {"scopes": None}).status == 200
    for _ in range(3):
        assert server.json(CHAT, HELLO, key=found["key"]).status == 200
    assert patch(server, found["id"], {"requests_per_minute": 1}).status == 200
    statuses = [server.json(CHAT, HELLO, key=found["key"]).status for _ in range(3)]
    assert 429 in statuses
    assert patch(server, found["id"], {}).status == 400
    assert patch(server, found["id"], {"name": None}).status == 400
    assert patch(server, "00000000", {"name": "x"}).status == 404


def test_a_key_is_rotated_and_removed(server: PolymuxServer) -> None:
    found = made(server, scopes=["chat"], concurrent=3)
    rotated = server.ask("POST", f"{KEYS}/{found['id']}/rotate")
    assert rotated.status == 200
    assert rotated.headers["cache-control"] == "no-store"
    new = rotated.json()
    assert (new["id"], new["scopes"], new["concurrent"]) == (found["id"], ["chat"], 3)
    assert server.json(CHAT, HELLO, key=found["key"]).status == 401
    assert server.json(CHAT, HELLO, key=new["key"]).status == 200
    assert server.ask("DELETE", f"{KEYS}/{found['id']}").status == 204
    assert server.json(CHAT, HELLO, key=new["key"]).status == 401
    assert server.ask("DELETE", f"{KEYS}/{found['id']}").status == 404
    assert server.ask("POST", f"{KEYS}/{found['id']}/rotate").status == 404
    assert [one["name"] for one in listed(server)] == ["test"]


def test_nobody_locks_themselves_out(server: PolymuxServer) -> None:
    [own] = [one["id"] for one in listed(server) if one["own"]]
    for answer in (server.ask("DELETE", f"{KEYS}/{own}"), patch(server, own, {"scopes": ["chat"]})):
        assert (answer.status, answer.json()["code"]) == (409, "own_key")
    rotated = server.ask("POST", f"{KEYS}/{own}/rotate").json()
    assert server.ask("GET", KEYS).status == 401
    assert server.ask("GET", KEYS, key=rotated["key"]).status == 200


def test_beside_the_command(server: PolymuxServer) -> None:
    """Both change one file at once, and no change is lost."""
    file = KeyFile(server.settings.key_file)

    def add(name: str) -> None:
        for number in range(8):
            if name == "command":
                key, _ = file.add(f"{name} {number}")
            else:
                key = made(server, name=f"{name} {number}")["key"]
            assert server.json(CHAT, HELLO, key=key).status == 200

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add, ("command", "a", "b")))
    names = {one["name"] for one in listed(server)}
    assert names == {"test"} | {f"{one} {n}" for one in ("a", "b", "command") for n in range(8)}


def test_a_file_that_cannot_be_changed(
    server: PolymuxServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polymux.server.auth.api_keys.write_private", full)
    answer = server.json(KEYS, {"name": "x"})
    assert (answer.status, answer.headers["retry-after"]) == (503, "10")
    assert str(server.settings.key_file) not in answer.body.decode()
    assert "No space left" in caplog.text
    assert len(listed(server)) == 1


def test_a_key_counts_when_its_owner_has_it(tmp_path: Path) -> None:
    """A key that cannot be delivered is not stored. Leftovers of a killed process are removed."""
    file = KeyFile(tmp_path / "keys.json")
    left = tmp_path / ".keys.json.0123abcd.part"
    left.touch()

    def fail(text: str) -> None:
        assert file.keys() == ()
        raise OSError(text)

    with pytest.raises(OSError, match="pmx_"):
        file.add("local", before=fail)
    assert file.keys() == ()
    assert not left.exists()
    received: list[str] = []
    text, _ = file.add("local", before=received.append)
    assert received == [text]


def test_an_engine_is_unloaded_when_it_does_not_work(server: PolymuxServer) -> None:
    unload = f"{PATH}/engines/scripted/unload"
    [engine] = server.ask("GET", PATH).json()["engines"]
    assert (engine["state"], engine["loaded"]) == ("ready", True)
    backend = server.state.service.backends["scripted"]
    server.loop.call_soon_threadsafe(backend.gate.clear)
    server.answer_within_s = 120.0
    with server.connect() as asking:
        asking.sendall(server.written_json(CHAT, HELLO))
        until(lambda: backend.began, 60)
        answer = server.ask("POST", unload)
        assert (answer.status, answer.json()["code"]) == (409, "engine_at_work")
        assert backend.is_loaded
        server.loop.call_soon_threadsafe(backend.gate.set)
        assert read_answer(asking).status == 200
    answer = server.ask("POST", unload)
    assert (answer.status, answer.json()["state"], answer.json()["loaded"]) == (200, "idle", False)
    assert server.ask("POST", unload).status == 200
    for name in ("attic", "nothing", "%2e%2e"):
        assert server.ask("POST", f"{PATH}/engines/{name}/unload").status == 404


def state_of(server: PolymuxServer) -> dict[str, Any]:
    answer = server.ask("GET", PATH)
    assert answer.status == 200
    found: dict[str, Any] = answer.json()
    return found


def test_engines_and_upstreams(server: PolymuxServer) -> None:
    found = state_of(server)
    [engine], [upstream] = found["engines"], found["upstreams"]
    assert engine["name"] == "scripted"
    assert (engine["max_concurrency"], engine["running"], engine["waiting"]) == (4, 0, 0)
    assert engine["operations"] == ["chat", "convert_to_mp3", "free_chat", "read_text"]
    assert engine["state"] == "ready"
    assert (upstream["name"], upstream["kind"], upstream["host"]) == (
        "attic", "openai", "models.example",
    )  # fmt: skip


def test_keys_are_listed_without_secrets(server: PolymuxServer) -> None:
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


def test_the_use_of_keys_and_of_the_api(server: PolymuxServer) -> None:
    """Requests of the web UI's files count apart from those of the API."""
    text, _ = server.keys.add("site")
    for _ in range(3):
        server.json(CHAT, HELLO, key=text)
    for _ in range(5):
        server.ask("GET", "/page/", key=None)
    found = state_of(server)
    requests = {one["operation"]: one for one in found["requests"]}
    assert (requests["chat"]["kind"], requests["chat"]["requests"]) == ("api", 3)
    assert (requests["page"]["kind"], requests["page"]["requests"]) == ("web_ui", 5)
    assert 0 < requests["chat"]["p50_s"] <= requests["chat"]["p95_s"]
    site = next(one for one in found["keys"] if one["name"] == "site")
    assert (site["requests"], site["tokens"]) == (3, 0)
    assert site["work_s"] >= 0


@pytest.mark.parametrize(
    ("counts", "share", "wanted"),
    [
        ((0, 10, 10), 0.5, 1.5),
        ((10, 10, 10), 0.5, 0.5),
        ((5, 10, 10), 0.95, 1.9),
        # Above the highest bound, only the bound is known.
        ((0, 0, 10), 0.5, 2.0),
        ((0, 8, 10), 0.95, 2.0),
    ],
)
def test_a_quantile_of_a_histogram(
    counts: tuple[int, int, int], share: float, wanted: float
) -> None:
    buckets = list(zip((1.0, 2.0, math.inf), map(float, counts), strict=True))
    assert quantile(buckets, share) == pytest.approx(wanted)


def test_models_that_are_not_installed_are_offered(server: PolymuxServer) -> None:
    found = state_of(server)
    offered = {one["name"] for one in found["available_models"]}
    assert offered
    assert not offered & {one["name"] for one in found["models"]}
