"""Responses, errors, health, quotas, streams and jobs. Case IDs: docs/development/testing.md."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from polymux.runtime.settings import Limits
from polymux.service.errors import engine_failed
from polymux.service.model import OperationResult
from support.polymux_server import (
    CHAT,
    CONVERT,
    HELLO,
    Answer,
    Box,
    PolymuxServer,
    form,
    parsed,
    read_all,
    read_until,
)
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path


def test_a_chat_and_its_request_id(server: PolymuxServer, box: Box) -> None:
    answer = server.json(CHAT, HELLO, [("X-Request-ID", "mine-1")])
    assert (answer.status, answer.json()) == (200, {"text": "read"})
    assert answer.headers["x-request-id"] == "mine-1"
    assert answer.headers["polymux-version"]
    assert box.backend.began[0].request_id == "mine-1"
    assert box.backend.began[0].values["messages"] == HELLO["messages"]
    answer = server.json(CHAT, HELLO, [("X-Request-ID", "bad id")])
    assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}"])
def test_bodies_that_are_no_request(server: PolymuxServer, body: bytes) -> None:
    """Cases J01 to J03 and J17. `test_contract_json.py` has more."""
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    answer = server.ask("POST", CHAT, body, headers)
    assert answer.status == 400
    assert answer.json()["code"] == "invalid_request"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_bodies_that_are_too_long(tmp_path: Path) -> None:
    """Case J13: the limit and one byte more, with Content-Length and in chunks."""
    limits = Limits(chat_bytes=1000)
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()], limits=limits) as server:
        for size, status in ((1000, 200), (1001, 413)):
            body = json.dumps(HELLO).encode().ljust(size)
            assert server.json(CHAT, body).status == status
            chunks = [("Transfer-Encoding", "chunked")]
            chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            assert server.json(CHAT, chunked, chunks).status == status


@pytest.mark.parametrize(
    ("query", "status"),
    [("?model=nightmareai/real-esrgan", 501), ("?model=nothing/x", 400), ("?model=", 400),
     ("", 400), ("?model=a&model=b", 400), ("?model=%ff", 400),
     ("?model=../nightmareai/real-esrgan", 400), ("?model=nightmareai%2f..%2freal-esrgan", 400)],
)  # fmt: skip
def test_model_selectors(server: PolymuxServer, query: str, status: int) -> None:
    """Case I14."""
    body, headers = form(("image", ("a.png", b"x")), ("scale", "2"))
    path = f"/api/v1/modelhost/imageupscale{query}"
    assert server.ask("POST", path, body, headers).status == status


def test_failures_have_their_status_and_say_no_more_than_they_should(
    server: PolymuxServer, box: Box
) -> None:
    box.backend.failure = engine_failed("the engine broke")
    answer = server.json(CHAT, HELLO)
    assert (answer.status, answer.json()["code"]) == (500, "engine_failed")
    server.expect_defects()
    box.backend.failure = ZeroDivisionError("secret-canary")
    answer = server.json(CHAT, HELLO)
    assert (answer.status, answer.json()["code"]) == (500, "internal")
    assert "canary" not in answer.body.decode()


#: Header fields that proxies add for the original client.
FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
             "X-Forwarded-Port", "X-Forwarded-Server", "X-Real-IP", "X-Client-IP",
             "CF-Connecting-IP", "True-Client-IP")  # fmt: skip


def test_facts(server: PolymuxServer) -> None:
    """Case A17."""
    ready = server.ask("GET", "/readyz", key=None).json()
    assert ready["status"] == "ready"
    assert ready["backends"] == {"scripted": {"state": "ready"}}
    operations = server.ask("GET", "/api/v1/operations").json()
    assert len(operations) == 14
    for path in ("/metrics", "/openapi.json", "/docs"):
        # Requests from this machine need no key.
        assert server.ask("GET", path, key=None).status == 200
        for name in FORWARDED:
            outside = [(name, "192.0.2.1")]
            assert server.ask("GET", path, headers=outside, key=None).status == 401, name
        rebound = [("Host", "evil.example")]
        assert server.ask("GET", path, headers=rebound, key=None).status == 421
    server.json(CHAT, HELLO)
    text = server.ask("GET", "/metrics").body.decode()
    assert 'polymux_requests_total{operation="chat",status="200"}' in text
    assert server.key not in text
    page = server.ask("GET", "/docs").body.decode()
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=.?(?:https?:)?//|url\(|@import", page)


def test_an_event_that_is_too_long(tmp_path: Path) -> None:
    """A chunk within the limit is sent. A longer one ends the stream with an error."""
    made = Scripted()
    with PolymuxServer(tmp_path / "s", lambda: [made], limits=Limits(event_bytes=2000)) as server:
        made.chunks = [{"choices": [], "x": "y" * size} for size in (1900, 2000)]
        found = values_of(server.json(CHAT, {**HELLO, "stream": True}))
        assert len(found) == 2
        assert len(found[0]) < 2000
        error = json.loads(found[1])["error"]
        assert error["code"] == "engine_failed"
        assert "2000" in error["message"]


def test_what_each_key_has_used(server: PolymuxServer, box: Box) -> None:
    """Requests, tokens and working time per key ID. The keys themselves never appear."""
    own, other = (server.keys.add(name) for name in ("own", "idle"))
    usage = {"prompt_tokens": 3, "completion_tokens": 9}
    box.backend.chunks = [{"choices": []}, {"choices": [], "usage": usage}]
    for _ in range(2):
        assert server.json(CHAT, {**HELLO, "stream": True}, key=own[0]).status == 200
    assert server.convert(key=own[0]).status == 200
    metrics = server.ask("GET", "/metrics").body.decode()
    found = dict(re.findall(r"polymux_key_(\S+) (\S+)", metrics))
    of = f'{{key="{own[1].id}",operation="chat"'
    assert found[f"requests_total{of}}}"] == "2.0"
    assert found[f'tokens_total{{key="{own[1].id}",kind="input",operation="chat"}}'] == "6.0"
    assert found[f'tokens_total{{key="{own[1].id}",kind="output",operation="chat"}}'] == "18.0"
    assert float(found[f"work_seconds_total{of}}}"]) > 0
    assert f'work_seconds_total{{key="{own[1].id}",operation="convert_to_mp3"}}' in found
    assert other[1].id not in metrics
    assert own[0] not in metrics


def test_quotas(server: PolymuxServer) -> None:
    """Includes one request per two minutes, and a rate limit added to a used key."""
    limited, _ = server.keys.add("limited", requests_per_minute=2.0)
    seen = [server.json(CHAT, HELLO, key=limited) for _ in range(3)]
    assert [one.status for one in seen] == [200, 200, 429]
    assert 1 <= int(seen[2].headers["retry-after"]) <= 30
    assert server.json(CHAT, HELLO).status == 200
    slow, _ = server.keys.add("slow", requests_per_minute=0.5)
    seen = [server.json(CHAT, HELLO, key=slow) for _ in range(2)]
    assert [one.status for one in seen] == [200, 429]
    assert 100 < int(seen[1].headers["retry-after"]) <= 120
    used, _ = server.keys.add("used")
    assert server.json(CHAT, HELLO, key=used).status == 200
    server.keys.change("used", requests_per_minute=2.0)
    assert [server.json(CHAT, HELLO, key=used).status for _ in range(3)] == [200, 200, 429]
    server.keys.remove("used")


def test_jobs_that_outlive_their_request_have_a_place(server: PolymuxServer, box: Box) -> None:
    """They count toward the key's concurrency limit. Polling and repeated requests do not."""
    box.backend.gate.clear()
    limited, _ = server.keys.add("limited", concurrent=1)
    later = ("Prefer", "respond-async")

    def convert(name: str, key: str = limited) -> Answer:
        return server.convert(later, ("Idempotency-Key", name), key=key)

    first = convert("a")
    refused = convert("b")
    assert (first.status, refused.status) == (202, 429)
    assert refused.headers["retry-after"] == "1"
    assert server.convert(later, key=limited).status == 429
    assert server.json(CHAT, HELLO, key=limited).status == 429
    assert convert("b", key=server.key).status == 202
    again = convert("a")
    assert (again.status, again.json()["id"]) == (202, first.json()["id"])
    place = first.json()["urls"]["get"].removeprefix(server.url)
    assert server.ask("GET", place, key=limited).json()["status"] == "processing"
    server.loop.call_soon_threadsafe(box.backend.gate.set)
    until(lambda: server.ask("GET", place, key=limited).json()["status"] != "processing")
    assert convert("b").status == 202


def test_scopes_and_ends_of_keys(server: PolymuxServer) -> None:
    """Case A19. `test_keys_command.py` tests changes of keys."""
    scoped, _ = server.keys.add("scoped", scopes=("transcribe",))
    answer = server.json(CHAT, HELLO, key=scoped)
    assert (answer.status, answer.json()["code"]) == (403, "forbidden")
    old, _ = server.keys.add("old", expires_at=time.time() - 1)
    assert server.json(CHAT, HELLO, key=old).status == 401


def test_a_stream_outlives_its_key(server: PolymuxServer, box: Box) -> None:
    """A running stream continues after its key is revoked. New requests are rejected (A19)."""
    key, _ = server.keys.add("going")
    box.backend.chunks = [{"choices": [{"delta": {"content": "Hi"}}]}]
    server.loop.call_soon_threadsafe(box.backend.gate.clear)
    with server.connect() as stream:
        stream.sendall(server.written_json(CHAT, {**HELLO, "stream": True}, key=key))
        data = read_until(stream, b"data: ")
        server.keys.remove("going")
        assert server.json(CHAT, HELLO, key=key).status == 401
        assert server.ask("GET", "/api/v1/predictions", key=key).status == 401
        server.loop.call_soon_threadsafe(box.backend.gate.set)
        data += read_all(stream)
    assert values_of(parsed(data))[-1] == "[DONE]"
    assert box.backend.ended == ["closed"]


def test_a_broken_key_file_lets_nobody_in(server: PolymuxServer) -> None:
    whole = server.settings.key_file.read_text()
    server.settings.key_file.write_text("{")
    answer = server.json(CHAT, HELLO)
    assert answer.status == 503
    assert str(server.settings.key_file) not in answer.body.decode()
    assert server.ask("GET", "/healthz", key=None).status == 200
    server.settings.key_file.write_text(whole)


def values_of(answer: Any) -> list[Any]:
    events = answer.body.decode().split("\n\n")
    return [one.removeprefix("data: ") for one in events if one]


def test_what_was_left_out_is_reported(server: PolymuxServer, box: Box) -> None:
    """In a header field that has nothing else. This includes streams and any script of letters."""
    assert "polymux-warnings" not in server.json(CHAT, HELLO).headers
    box.backend.chunks = [{"choices": []}]
    warnings = server.json(CHAT, {**HELLO, "stream": True}).headers.get("polymux-warnings")
    assert warnings is None  # This stream caused no warnings.
    fields = [(f"unbekannt-\u00e4-{number}", "1") for number in range(30)]
    body, headers = form(("file", ("a.png", b"x")), *fields)
    warnings = server.ask("POST", "/api/v1/image2text", body, headers).headers["polymux-warnings"]
    assert warnings.isascii()
    assert warnings.count('", "') == 20
    assert "unbekannt-\\\\xe4-0" in warnings
    assert "10" in warnings.rpartition('", "')[2]


@pytest.mark.parametrize("fails", [False, True])
def test_jobs_report_what_was_left_out(server: PolymuxServer, box: Box, fails: bool) -> None:
    """The answers of a job have its ID and name the ignored field, also a failure."""
    if fails:
        box.backend.failure = engine_failed("it broke")
    body, headers = form(("file", ("a.wav", b"x")), ("volume", "9"))
    again = [*headers, ("Idempotency-Key", f"fails={fails}")]
    ended = server.ask("POST", CONVERT, body, again)
    assert ended.status == (500 if fails else 200)
    early = server.ask("POST", CONVERT, body, [*headers, ("Prefer", "respond-async")])
    for answer in (ended, early, server.ask("POST", CONVERT, body, again)):
        assert "volume" in answer.headers["polymux-warnings"]
        assert "begun" not in answer.headers["polymux-warnings"]
        path = f"/api/v1/predictions/{answer.headers['polymux-job-id']}"
        job = server.ask("GET", path).json()
        [warning] = job["warnings"]
        assert "volume" in warning
        assert warning in job["logs"]
    plain, headers = form(("file", ("a.wav", b"x")))
    assert "polymux-warnings" not in server.ask("POST", CONVERT, plain, headers).headers


def test_unknown_query_parameters_are_reported(server: PolymuxServer, box: Box) -> None:
    """In each response, beside other warnings; known parameters are not."""
    answer = server.json(f"{CHAT}?seed=5&s%C3%A4ed=%20&seed=6&", HELLO)
    assert answer.status == 200
    found = answer.headers["polymux-warnings"].split(", ")
    assert ["seed" in one for one in found] == [True, False]
    body, headers = form(("file", ("a.png", b"x")), ("volume", "9"))
    answer = server.ask("POST", "/api/v1/image2text?seed=5", body, headers)
    found = answer.headers["polymux-warnings"].split(", ")
    assert ["volume" in found[0], "seed" in found[1]] == [True, True]
    body, headers = form(("file", ("a.wav", b"x")))
    for given, status in ((body, 200), (form(("url", ""))[0], 400)):
        answer = server.ask("POST", "/api/v1/convert2mp3?bitrat=64k", given, headers)
        assert answer.status == status
        assert "bitrat" in answer.headers["polymux-warnings"]
    assert "cursr" in server.ask("GET", "/api/v1/predictions?cursr").headers["polymux-warnings"]
    link = server.link()
    for path in (link, "/page/?a=b", "/healthz", "/api/v1/predictions"):
        answer = server.ask("GET", path)
        assert answer.status == 200
        assert "polymux-warnings" not in answer.headers


def test_unknown_query_parameters_are_refused(server: PolymuxServer) -> None:
    """Where unknown fields of the body are, too."""
    path = "/api/v1/administration/keys"
    answer = server.json(f"{path}?scope=chat", {"name": "a"})
    assert (answer.status, answer.json()["param"]) == (400, "scope")
    answer = server.json("/v1/images/generations?seed=1", {"prompt": "a hill"})
    assert (answer.status, answer.json()["error"]["param"]) == (400, "seed")
    answer = server.json("/replicate/v1/predictions?stream=1", {"input": {}})
    assert (answer.status, answer.json()["param"]) == (400, "stream")
    assert "scope" in server.ask("GET", f"{path}?scope=chat").headers["polymux-warnings"]


def test_a_stream_that_fails(server: PolymuxServer, box: Box) -> None:
    """Before the first chunk, the error is a status; after it, an event without [DONE] (C22)."""
    box.backend.failure = engine_failed("broke")
    assert server.json(CHAT, {**HELLO, "stream": True}).status == 500
    box.backend.chunks = [{"choices": [{"delta": {"content": "H\u00e9"}}]}]
    answer = server.json(CHAT, {**HELLO, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = values_of(answer)
    assert json.loads(found[0]) == box.backend.chunks[0]
    assert (answer.status, len(found)) == (200, 2)
    assert json.loads(found[1])["error"]["code"] == "engine_failed"


def test_jobs_over_http(server: PolymuxServer, box: Box) -> None:
    answer = server.convert(name="../a\u00e4.wav")
    assert answer.status == 200, answer.body
    path = answer.json()["response"].removeprefix(server.url)
    got = server.ask("GET", path, key=None)
    assert (got.status, got.body) == (200, box.backend.data)
    assert got.headers["content-type"] == "audio/mpeg"
    assert got.headers["x-content-type-options"] == "nosniff"
    listed = server.ask("GET", "/api/v1/predictions").json()["results"]
    assert [one["status"] for one in listed] == ["succeeded"]
    other, _ = server.keys.add("other")
    assert server.ask("GET", "/api/v1/predictions", key=other).json()["results"] == []
    one = f"/api/v1/predictions/{listed[0]['id']}"
    for method, route in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/events")):
        assert server.ask(method, one + route, key=other).status == 404, (method, route)
    assert server.ask("GET", path, key=None).status == 200  # The file still exists.
    assert server.ask("DELETE", one).status == 204
    assert server.ask("GET", one).status == 404
    assert server.ask("GET", path, key=None).status == 404


def test_lists_cut_what_is_long(tmp_path: Path) -> None:
    """Job lists truncate long fields. A single job has the full values."""
    made = Scripted(operations=("generate_image",))
    made.data = b""
    with PolymuxServer(tmp_path / "s", lambda: [made]) as server:
        value = {"prompt": "é" * 10_000, "negative_prompt": "x" * 2_000}
        answer = server.json("/api/v1/modelhost/imagegeneration", value)
        assert answer.status == 200
        [listed] = server.ask("GET", "/api/v1/predictions").json()["results"]
        assert listed["input"]["prompt"] == "é" * 2_000 + "…"
        assert listed["input"]["negative_prompt"] == "x" * 2_000
        alone = server.ask("GET", f"/api/v1/predictions/{listed['id']}").json()
        assert alone["input"]["prompt"] == "é" * 10_000


class Painter(Scripted):
    async def run(self, work: object, sink: object) -> OperationResult:
        return OperationResult([], "a version")


def test_names_and_versions_of_models(tmp_path: Path) -> None:
    """Unknown names are rejected. A version is accepted with a warning that it is ignored."""
    path, model = "/api/v1/modelhost/imagegeneration", "bytedance/sdxl-lightning-4step"
    made = Painter("painter", ["generate_image"])
    with PolymuxServer(tmp_path / "s", lambda: [made]) as server:
        for name in ("foo/bar", "foo/bar:1", "", "%00"):
            answer = server.json(f"{path}?model={name}", {"prompt": "x"})
            assert (answer.status, answer.json()["code"]) == (400, "model_not_found")
            assert answer.json()["param"] == "model"
            assert model in answer.json()["error"]
        plain = server.json(f"{path}?model={model}", {"prompt": "x"}).json()
        assert plain["logs"] == ""
        named = server.json(f"{path}?model={model}:6f7a773a", {"prompt": "x"}).json()
        assert "6f7a773a" in named["logs"]
        assert named["model"] == plain["model"]
