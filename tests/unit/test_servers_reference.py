"""The reference server answers every operation in the right shape, and keeps its other promises."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from polymux import contract
from polymux.client import responses
from polymux.client.request import build_request
from servers.chats import COMPLETION, FREE
from servers.operations import OPERATIONS
from servers.reference import API, ReferenceServer
from servers.replies import ERRORS
from support.requests import EACH_VARIANT, FILE, smallest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polymux.contract import Operation, Variant

IMAGES = "modelhost/imagegeneration"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "unusual": 1}
FORM = (
    b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nwaves \xe2\x82\xac\r\n'
    b'--b\r\nContent-Disposition: form-data; name="init_video"; filename="a.mp4"\r\n'
    b"Content-Type: video/mp4\r\n\r\nmovie\r\n--b--\r\n"
)
FORM_TYPE = {"Content-Type": "multipart/form-data; boundary=b"}


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


@EACH_VARIANT
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
        getattr(responses, operation.result).decode(answer.body)
    (seen,) = server.calls
    assert seen.body.encoding == variant.encoding
    assert {file.name: file.content for file in seen.body.files} == dict.fromkeys(files, content)
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
    given = send(server, f"{API}modelhost/videogeneration", FORM, FORM_TYPE).json()["input"]
    assert given["prompt"] == "waves €"
    assert given["init_video"] == {
        "file_name": "a.mp4", "content_type": "video/mp4", "size_bytes": 5,
        "sha256": hashlib.sha256(b"movie").hexdigest(),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("target", "body", "headers", "status", "code"),
    [
        ("musicsearch", b"{", {}, 400, "invalid_request"),
        ("musicsearch", b"{}", {}, 400, "invalid_request"),
        ("songid", b"{}", {}, 415, "unsupported_media"),
        ("modelhost/stt?model=no/such", FORM, {}, 400, "model_not_found"),
        ("modelhost/imageupscale", FORM, FORM_TYPE, 400, "invalid_request"),
        ("nothing", b"{}", {}, 404, "not_found"),
        ("musicsearch", None, {}, 405, "method_not_allowed"),
    ],
)
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
    refused = send(server, API + target, body, headers, token="wrong")
    assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert server.calls == []


def test_chats_whole_and_as_streams(server: ReferenceServer) -> None:
    server.chats.text = "Größe: 你好 😀\n\ndata: [DONE]\n\n end"
    whole = call(server, COMPLETION, **CHAT).json()
    assert whole["choices"][0]["message"]["content"] == server.chats.text
    assert whole["received"] == CHAT
    options = {"stream": True, "n": 2, "stream_options": {"include_usage": True}}
    *chunks, usage, done = events(call(server, COMPLETION, **CHAT, **options))
    for index in (0, 1):
        mine = [one["choices"][0] for one in chunks if one["choices"][0]["index"] == index]
        assert "".join(one["delta"].get("content", "") for one in mine) == server.chats.text
        assert [one["finish_reason"] for one in mine][-2:] == [None, "stop"]
    assert (usage["choices"], usage["usage"]["completion_tokens"], done) == ([], 6, "[DONE]")
    *pieces, done = events(call(server, FREE, **CHAT, stream=True))
    assert "".join(one["response"] for one in pieces) == server.chats.text
    server.chats.fails_after = 2
    *pieces, error = events(call(server, FREE, **CHAT, stream=True))
    assert (len(pieces), error["error"]["type"]) == (2, "server_error")


def test_jobs_take_their_time_fail_and_are_cancelled(server: ReferenceServer) -> None:
    server.predictions.job_s = 0.6
    first = call(server, IMAGES, {"Prefer": "respond-async"}, prompt="a boat")
    job = first.json()
    assert (first.status, job["status"]) == (202, "starting")
    assert first.headers["Location"] == job["urls"]["get"]
    second = call(server, IMAGES, {"Prefer": "wait=0.1"}, prompt="x")
    assert (second.status, second.headers["Preference-Applied"]) == (202, "wait=0.1")
    assert call(server, IMAGES, {"Prefer": "wait=5"}, prompt="x").json()["status"] == "succeeded"
    assert events(get(server, job["urls"]["stream"]))[-1]["status"] == "succeeded"
    listed = send(server, f"{API}predictions?limit=2").json()
    after = get(server, listed["next"]).json()
    assert ([one["id"] for one in after["results"]], after["next"]) == ([job["id"]], None)
    server.predictions.job_s = 30
    job = call(server, IMAGES, {"Prefer": "respond-async"}, prompt="x").json()
    assert get(server, job["urls"]["cancel"], method="POST").json()["status"] == "canceled"
    server.predictions.job_s, server.predictions.failure = 0, "no memory"
    failed = call(server, IMAGES, prompt="x").json()
    assert (failed["status"], failed["error"]) == ("failed", "no memory")


def test_the_same_key_is_the_same_job(server: ReferenceServer) -> None:
    key = {"Idempotency-Key": "k1"}
    jobs = [call(server, IMAGES, key, prompt="x").json()["id"] for _ in range(2)]
    assert jobs[0] == jobs[1]
    assert call(server, IMAGES, key, prompt="y").json()["code"] == "idempotency_conflict"
    assert call(server, IMAGES, prompt="x").json()["id"] != jobs[0]
    assert [one.replayed for one in server.calls] == [False, True, False]


def test_links_of_media_are_checked(server: ReferenceServer) -> None:
    link = server.media.add("a.bin", bytes(range(100)), "application/octet-stream")
    assert get(server, link, token=None).body == bytes(range(100))
    for field, status in [
        ({"Range": "bytes=90-"}, 206),
        ({"Range": "bytes=90-", "If-Range": '"other"'}, 200),
        ({"Range": "bytes=100-"}, 416),
    ]:
        assert get(server, link, token=None, headers=field).status == status
    for wrong in (link[:-1] + "x", server.media.link("a.bin", -5), server.media.link("b.bin")):
        assert get(server, wrong, token=None).status == 404
    assert len(server.media.requests) == 7


@pytest.mark.parametrize("status", sorted(ERRORS))
def test_every_error_by_each_switch(server: ReferenceServer, status: int) -> None:
    body = b'{"song": "x"}'
    server.fail(status, path=f"{API}musicsearch")
    for answer in [
        send(server, f"{API}musicsearch", body),
        send(server, f"{API}musicsearch", body, {"Test-Status": str(status)}),
        send(server, f"/fail/{status}{API}musicsearch", body),
    ]:
        assert answer.status == status
        assert set(answer.json()) == {"error", "code"}
        assert ("Retry-After" in answer.headers) == (status in (429, 503))
    assert send(server, f"{API}musicsearch", body).status == 200
