"""The reference server answers every operation in the right shape, and keeps its other promises."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from polymux import contract
from polymux.client import responses
from polymux.client.request import build_request
from servers.chats import COMPLETION, FREE
from servers.operations import OPERATIONS
from servers.reference import API, ReferenceServer
from servers.replies import ERRORS, retry_after_forms
from support import raw_http
from support.requests import FILE, smallest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polymux.contract import Operation, Variant

VARIANTS = [(one, variant) for one in contract.operations() for variant in one.variants]
HELLO = {"role": "user", "content": "hello there"}
FORM = (
    b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nwaves \xe2\x82\xac\r\n'
    b'--b\r\nContent-Disposition: form-data; name="init_video"; filename="a.mp4"\r\n'
    b"Content-Type: video/mp4\r\n\r\nmovie\r\n--b--\r\n"
)


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@pytest.fixture
def server() -> Iterator[ReferenceServer]:
    with ReferenceServer() as server:
        yield server


def send(
    server: ReferenceServer,
    target: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "",
    token: str | None = "reference-token",
) -> Answer:
    given = {"Content-Type": "application/json", **(headers or {})}
    if token is not None:
        given["Authorization"] = f"Bearer {token}"
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    with contextlib.closing(connection):
        connection.request(method or ("GET" if body is None else "POST"), target, body, given)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


def call(
    server: ReferenceServer, path: str, headers: Mapping[str, str] | None = None, **fields: Any
) -> Answer:
    return send(server, API + path, json.dumps(fields).encode(), headers)


def get(server: ReferenceServer, url: str, **options: Any) -> Answer:
    assert url.startswith(server.url)
    parts = urlsplit(url)
    return send(server, f"{parts.path}?{parts.query}", **options)


def events(answer: Answer) -> list[Any]:
    lines = answer.body.decode().split("\n\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [one if one == "[DONE]" else json.loads(one) for one in data]


@pytest.mark.parametrize(
    ("operation", "variant"), VARIANTS, ids=[f"{one.name}{v.id}" for one, v in VARIANTS]
)
def test_every_variant_is_answered_in_its_shape(
    server: ReferenceServer, operation: Operation, variant: Variant
) -> None:
    values = smallest(variant)
    content = bytes(range(256)) * 40
    files = {name: ("a.bin", content) for name, value in values.items() if value is FILE}
    request = build_request(operation.name, values | files, model=variant.model)
    body = request.body if isinstance(request.body, bytes) else request.body.read(1 << 20)
    answer = send(server, request.target, body, {"Content-Type": request.content_type})
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    if operation.result == "MediaFile":
        assert get(server, responses.media_url(answer.body)).status == 200
    else:
        result = getattr(responses, operation.result).decode(answer.body)
        if isinstance(result, responses.Prediction):
            assert result.succeeded
            assert result.model == variant.model
    (seen,) = server.calls
    assert seen.body.encoding == variant.encoding
    assert {one.name for one in seen.body.files} == set(files)
    for file in seen.body.files:
        assert (file.content, file.size_bytes) == (content, len(content))
        assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert {name for name, _ in seen.body.fields} == set(values) - set(files)


def test_the_table_is_the_interface() -> None:
    """Written down twice by different hands, and the same."""
    written = {one.path.removeprefix(API): one for one in contract.operations()}
    assert set(written) == {*OPERATIONS, COMPLETION, FREE}
    for path, operation in OPERATIONS.items():
        accepted = {one.model or "": set(one.accepts) for one in written[path].variants}
        assert accepted == {name: set(one) for name, one in operation.models.items()}
        assert operation.is_job == (written[path].result == "Prediction")


def test_a_form_is_read_and_echoed(server: ReferenceServer) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = send(server, f"{API}modelhost/videogeneration", FORM, kind)
    given = answer.json()["input"]
    assert given["prompt"] == "waves €"
    assert given["init_video"] == {
        "file_name": "a.mp4", "content_type": "video/mp4", "size_bytes": 5,
        "sha256": hashlib.sha256(b"movie").hexdigest(),
    }  # fmt: skip
    for broken in (FORM[:-8], FORM.replace(b"--b", b"-b"), b""):
        assert send(server, f"{API}modelhost/videogeneration", broken, kind).status == 400


@pytest.mark.parametrize(
    ("target", "body", "headers", "status", "code"),
    [
        ("musicsearch", b"{", {}, 400, "invalid_request"),
        ("musicsearch", b"[]", {}, 400, "invalid_request"),
        ("musicsearch", b"{}", {}, 400, "invalid_request"),
        ("freellm", b'{"messages": []}', {}, 400, "invalid_request"),
        ("musicsearch", b"song=x", {"Content-Type": "text/plain"}, 415, "unsupported_media"),
        ("songid", b"{}", {}, 415, "unsupported_media"),
        ("modelhost/stt?model=no/such", FORM, {}, 400, "model_not_found"),
        ("modelhost/imageupscale", FORM, {"Content-Type": "multipart/form-data; boundary=b"},
         400, "invalid_request"),
        ("nothing", b"{}", {}, 404, "not_found"),
        ("musicsearch", None, {}, 405, "method_not_allowed"),
        ("predictions/none", None, {}, 404, "not_found"),
    ],
)  # fmt: skip
def test_bad_requests(
    server: ReferenceServer,
    target: str,
    body: bytes | None,
    headers: dict[str, str],
    status: int,
    code: str,
) -> None:
    answer = send(server, API + target, body, headers)
    assert (answer.status, answer.json()["code"]) == (status, code)
    assert server.calls == []


def test_the_token_is_checked_before_the_body(server: ReferenceServer) -> None:
    for token in (None, "wrong", "reference-token x"):
        answer = send(server, f"{API}musicsearch", b'{"song": "x"}', token=token)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post(target=f"{API}freellm")[:-2])
        assert raw_http.read_until(peer, b"}").startswith(b"HTTP/1.1 401 ")
        assert not server.requests[-1].body_complete
        peer.sendall(b"{}" + raw_http.post(target=f"{API}freellm"))
        assert raw_http.read_until(peer, b"}").startswith(b"HTTP/1.1 401 ")


def test_identity_and_version(server: ReferenceServer) -> None:
    answer = call(server, "musicsearch", {"X-Request-ID": "abc"}, song="x", limit="2")
    assert (answer.headers["X-Request-ID"], answer.headers["Polymux-Version"]) == ("abc", "0.1.0")
    assert len(answer.json()) == 2
    assert answer.json()[0]["received"] == {"song": "x", "limit": "2"}
    server.polymux_version = None
    answer = call(server, "musicsearch", song="nothing")
    assert "Polymux-Version" not in answer.headers
    assert len(answer.headers["X-Request-ID"]) == 32
    assert answer.json() == []


def test_chats_whole_and_as_streams(server: ReferenceServer) -> None:
    server.chats.text = "Größe: 你好 😀\n\ndata: [DONE]\n\n end"
    chat: dict[str, Any] = {
        "model": "default",
        "messages": [{"role": "user", "content": "hello"}],
        "unusual": 1,
    }
    whole = call(server, COMPLETION, **chat).json()
    assert whole["choices"][0]["message"]["content"] == server.chats.text
    assert whole["received"] == chat
    answer = call(server, COMPLETION, **chat, stream=True, n=2,
                  stream_options={"include_usage": True})  # fmt: skip
    assert answer.headers["Content-Type"] == "text/event-stream"
    *chunks, usage, done = events(answer)
    for index in (0, 1):
        mine = [one["choices"][0] for one in chunks if one["choices"][0]["index"] == index]
        assert "".join(one["delta"].get("content", "") for one in mine) == server.chats.text
        assert [one["finish_reason"] for one in mine][-2:] == [None, "stop"]
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 6)
    assert done == "[DONE]"
    *pieces, done = events(call(server, FREE, **chat, stream=True))
    assert "".join(one["response"] for one in pieces) == server.chats.text
    assert call(server, FREE, **chat).json()["response"] == server.chats.text


def test_tool_calls(server: ReferenceServer) -> None:
    tool = {"type": "function", "function": {"name": "weather"}}
    chat: dict[str, Any] = {
        "model": "m", "messages": [HELLO], "tools": [tool], "tool_choice": "required",
    }  # fmt: skip
    choice = call(server, COMPLETION, **chat).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    (whole,) = choice["message"]["tool_calls"]
    chunks = events(call(server, COMPLETION, **chat, stream=True))[:-1]
    deltas = [one["choices"][0]["delta"].get("tool_calls", [None])[0] for one in chunks]
    arguments = "".join(one["function"]["arguments"] for one in deltas if one)
    assert json.loads(arguments) == json.loads(whole["function"]["arguments"]) == {"city": "Kiel"}


def test_streams_that_fail(server: ReferenceServer) -> None:
    chat: dict[str, Any] = {
        "messages": [{"role": "user", "content": "one two three"}],
        "stream": True,
    }
    server.chats.fails_after = 2
    *pieces, error = events(call(server, FREE, **chat))
    assert (len(pieces), error["error"]["type"]) == (2, "server_error")
    server.chats.fails_after, server.chats.ends_after = None, 1
    assert len(events(call(server, FREE, **chat))) == 1


def test_a_stream_ends_when_its_reader_leaves(server: ReferenceServer) -> None:
    server.chats.pause_s = 30
    body = b'{"messages": [{"role": "user", "content": "x"}], "stream": true}'
    token = b"Authorization: Bearer reference-token\r\nContent-Type: application/json\r\n"
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post(body, API + FREE, token))
        assert b"text/event-stream" in raw_http.read_until(peer, b"\r\n\r\n")
    assert server.wait_closed(server.connections[0], 2).closed_by == "fin"


def test_jobs_take_their_time(server: ReferenceServer) -> None:
    server.predictions.job_s = 0.6
    path = "modelhost/imagegeneration"
    first = call(server, path, {"Prefer": "respond-async"}, prompt="a boat")
    job = first.json()
    assert (first.status, job["status"]) == (202, "starting")
    assert first.headers["Preference-Applied"] == "respond-async"
    assert first.headers["Location"] == job["urls"]["get"]
    assert "output" not in job
    second = call(server, path, {"Prefer": "wait=0.1"}, prompt="another")
    assert (second.status, second.headers["Preference-Applied"]) == (202, "wait=0.1")
    third = call(server, path, {"Prefer": "wait=5"}, prompt="third")
    assert (third.status, third.json()["status"]) == (200, "succeeded")
    assert get(server, job["urls"]["get"]).json()["status"] == "succeeded"
    started = time.monotonic()
    assert call(server, path, prompt="no preference").json()["status"] == "succeeded"
    assert time.monotonic() - started >= 0.59
    listed = send(server, f"{API}predictions?limit=3").json()
    assert [one["input"]["prompt"] for one in listed["results"]] == [
        "no preference", "third", "another",
    ]  # fmt: skip
    after = get(server, listed["next"]).json()
    assert ([one["id"] for one in after["results"]], after["next"]) == ([job["id"]], None)


def test_jobs_are_cancelled_and_fail(server: ReferenceServer) -> None:
    server.predictions.job_s = 30
    asynchronous = {"Prefer": "respond-async"}
    job = call(server, "modelhost/imagegeneration", asynchronous, prompt="x").json()
    canceled = get(server, job["urls"]["cancel"], method="POST").json()
    assert canceled["status"] == get(server, job["urls"]["get"]).json()["status"] == "canceled"
    server.predictions.job_s, server.predictions.failure = 0, "no memory"
    failed = call(server, "modelhost/imagegeneration", prompt="x")
    assert failed.status == 200
    assert (failed.json()["status"], failed.json()["error"]) == ("failed", "no memory")


def test_events_of_a_job(server: ReferenceServer) -> None:
    server.predictions.job_s = 1
    job = call(server, "modelhost/imagegeneration", {"Prefer": "respond-async"}, prompt="x").json()
    seen = [one["status"] for one in events(get(server, job["urls"]["stream"]))]
    assert len(seen) >= 2  # a busy machine may miss the start
    assert seen == ["starting", "processing", "succeeded"][-len(seen) :]


def test_the_same_key_is_the_same_job(server: ReferenceServer) -> None:
    key = {"Idempotency-Key": "k1"}
    path = "modelhost/imagegeneration"
    jobs = [call(server, path, key, prompt="x").json()["id"] for _ in range(2)]
    assert jobs[0] == jobs[1]
    conflict = call(server, path, key, prompt="y")
    assert (conflict.status, conflict.json()["code"]) == (409, "idempotency_conflict")
    assert call(server, path, prompt="x").json()["id"] != jobs[0]
    assert [one.replayed for one in server.calls] == [False, True, False]
    links = {call(server, "downloadmusic", {"Idempotency-Key": "k2"}, query="x").body
             for _ in range(2)}  # fmt: skip
    assert len(links) == 1


def test_the_key_holds_for_a_form_with_another_boundary(server: ReferenceServer) -> None:
    jobs = set()
    for boundary in (b"b", b"other"):
        kind = f"multipart/form-data; boundary={boundary.decode()}"
        answer = send(
            server, f"{API}modelhost/videogeneration", FORM.replace(b"--b", b"--" + boundary),
            {"Content-Type": kind, "Idempotency-Key": "k"},
        )  # fmt: skip
        jobs.add(answer.json()["id"])
    assert len(jobs) == 1


def test_media_is_counted_and_its_links_are_checked(server: ReferenceServer) -> None:
    link = server.media.add("a.bin", bytes(range(100)), "application/octet-stream")
    whole = get(server, link, token=None)
    assert (whole.status, whole.body) == (200, bytes(range(100)))
    part = get(server, link, token=None, headers={"Range": "bytes=90-"})
    assert (part.status, part.body) == (206, bytes(range(90, 100)))
    assert part.headers["Content-Range"] == "bytes 90-99/100"
    changed = {"Range": "bytes=90-", "If-Range": '"other"'}
    assert get(server, link, token=None, headers=changed).status == 200
    assert get(server, link, token=None, headers={"Range": "bytes=100-"}).status == 416
    for wrong in (link[:-1] + "x", server.media.link("a.bin", -5), server.media.link("b.bin")):
        assert get(server, wrong, token=None).status == 404
    assert get(server, link, token=None, method="HEAD").body == b""
    assert len(server.media.requests) == 8
    assert all(one.header("authorization") is None for one in server.media.requests)
    get(server, link)
    assert server.media.requests[-1].header("authorization") is not None


@pytest.mark.parametrize("status", sorted(ERRORS))
def test_every_error_by_each_switch(server: ReferenceServer, status: int) -> None:
    body = b'{"song": "x"}'
    server.fail(status, path=f"{API}musicsearch")
    answers = [
        send(server, f"{API}musicsearch", body),
        send(server, f"{API}musicsearch", body, {"Test-Status": str(status)}),
        send(server, f"/fail/{status}{API}musicsearch", body),
    ]
    for answer in answers:
        assert answer.status == status
        assert set(answer.json()) == {"error", "code"}
        assert ("Retry-After" in answer.headers) == (status in (429, 503))
    assert send(server, f"{API}musicsearch", body).status == 200


def test_faults_of_every_form(server: ReferenceServer) -> None:
    for values in retry_after_forms().values():
        server.fail(503, headers=[("Retry-After", value) for value in values])
        answer = call(server, "musicsearch", song="x")
        got_values = answer.headers.get_all("Retry-After")
        assert got_values is not None
        assert [value.strip() for value in got_values] == [value.strip() for value in values]
    server.fail(500, body=b"<html>", headers=[("Content-Type", "text/html")], times=2)
    server.fail(502, times=None)
    got = [call(server, "musicsearch", song="x") for _ in range(4)]
    assert [one.status for one in got] == [500, 500, 502, 502]
    assert got[0].body == b"<html>"
    server.forget_faults()
    assert call(server, "musicsearch", song="x").status == 200
    assert send(server, f"{API}readiness", token=None).json() == {"status": "ready"}
