"""The reference server answers every operation in the right shape, and keeps its other promises."""

from __future__ import annotations

import contextlib
import http.client
import json
from typing import TYPE_CHECKING, Any, NamedTuple

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
    token: str = "reference-token",
) -> Answer:
    given = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    with contextlib.closing(connection):
        method = "GET" if body is None else "POST"
        connection.request(method, target, body, given | dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


def get(server: ReferenceServer, url: str) -> Answer:
    return send(server, url.removeprefix(server.url))


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


def test_what_is_wrong_is_refused(server: ReferenceServer) -> None:
    for target, body, token, status in [
        ("musicsearch", b"{", "reference-token", 400),
        ("songid", b"{}", "reference-token", 415),
        ("nothing", b"{}", "reference-token", 404),
        ("musicsearch", b'{"song": "x"}', "wrong", 401),
    ]:
        assert send(server, API + target, body, token=token).status == status
    assert server.calls == []


def test_links_of_media_are_checked(server: ReferenceServer) -> None:
    link = server.media.add("a.bin", bytes(100), "application/octet-stream")
    assert get(server, link).body == bytes(100)
    for wrong in (link[:-1] + "x", server.media.link("a.bin", -5), server.media.link("b.bin")):
        assert get(server, wrong).status == 404


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
