"""Unusual but valid requests, such as those sent with curl. Case IDs: testing.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import CHAT, CONVERT, HELLO, Box, PolymuxServer, form, read_all
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = "/api/v1/predictions"
BODY, FORM = form(("file", ("a.wav", b"x")))
DATA = b"ID3 and frames"


@pytest.fixture(scope="module")
def box() -> Box:
    return Box()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, box: Box) -> Iterator[PolymuxServer]:
    def make() -> list[Scripted]:
        box.backend = Scripted(max_concurrency=8)
        return [box.backend]

    with PolymuxServer(tmp_path_factory.mktemp("odd") / "s", make) as running:
        yield running


@pytest.fixture
def held(server: PolymuxServer, box: Box) -> Iterator[None]:
    """The backend starts work and does not finish it before the test ends."""
    server.loop.call_soon_threadsafe(box.backend.gate.clear)
    yield
    server.loop.call_soon_threadsafe(box.backend.gate.set)


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    "lines",
    [["wait=0"], ["return=minimal", "respond-async"]],
)
def test_preferences_that_are_kept(server: PolymuxServer, lines: list[str]) -> None:
    """Several header lines are combined (RFC 7240, 2). `test_preferences.py` tests the syntax."""
    answer = server.convert(*(("Prefer", one) for one in lines))
    assert answer.status == 202
    assert server.ask("POST", f"{JOBS}/{answer.json()['id']}/cancel").status == 200


@pytest.mark.parametrize(
    "preference",
    ["wait", "wait=-1", "wait=\u0661", "foo; wait=0"],
)
def test_preferences_that_change_nothing(server: PolymuxServer, preference: str) -> None:
    """Unknown preferences are ignored (RFC 7240, 2), so the response has the result."""
    value = preference.encode().decode("latin-1")
    assert server.convert(("Prefer", value)).status == 200


def test_a_key_is_for_one_request(server: PolymuxServer, box: Box) -> None:
    """An equal request returns the same job. A different one returns 409."""
    key = ("Idempotency-Key", "k-1")
    first = server.convert(key)
    count = len(box.backend.began)
    again = server.convert(key)
    assert first.json()["response"].partition("?")[0] == again.json()["response"].partition("?")[0]
    other_boundary, other_form = form(("file", ("a.wav", b"x")), boundary="another")
    same = server.ask("POST", CONVERT, other_boundary, [*other_form, key])
    assert (same.status, len(box.backend.began)) == (200, count)
    for fields in (
        [("file", ("a.wav", b"y"))],
        [("file", ("b.wav", b"x"))],
        [("file", ("a.wav", b"x")), ("bitrate", "64k")],
        [("url", "http://files.example/a.wav")],
    ):
        body, own = form(*fields)
        answer = server.ask("POST", CONVERT, body, [*own, key])
        assert (answer.status, answer.json()["code"]) == (409, "conflict"), fields
    other, _ = server.keys.add("other")
    mine = server.ask("POST", CONVERT, BODY, [*FORM, key], key=other)
    assert mine.status == 200
    assert len(box.backend.began) == count + 1


@pytest.mark.parametrize("keys", [[""], [" "], ["x" * 256], ["\xe4"], ["a b"], ["a", "b"]])
def test_names_of_requests_that_are_none(server: PolymuxServer, keys: list[str]) -> None:
    assert server.convert(*(("Idempotency-Key", one) for one in keys)).status == 400


@pytest.mark.parametrize(
    ("query", "status"),
    [("x=%zz", 200), ("cursor=", 200), ("cursor=%ff", 400), ("cursor=" + "9" * 4000, 400),
     ("cursor=a&cursor=b", 400)],
)  # fmt: skip
def test_queries_of_a_list(server: PolymuxServer, query: str, status: int) -> None:
    assert server.ask("GET", f"{JOBS}?{query}").status == status


@pytest.mark.usefixtures("held")
def test_cancelled_twice_and_deleted_twice(server: PolymuxServer) -> None:
    job = server.convert(("Prefer", "respond-async")).json()["id"]
    for _ in range(2):
        answer = server.ask("POST", f"{JOBS}/{job}/cancel")
        assert (answer.status, answer.json()["status"]) == (200, "canceled")
    events = server.ask("GET", f"{JOBS}/{job}/events")
    assert (events.status, events.body.count(b"event: prediction\n")) == (200, 1)
    assert b'"status":"canceled"' in events.body
    assert server.ask("DELETE", f"{JOBS}/{job}").status == 204
    for method, path in (("DELETE", job), ("GET", job), ("POST", f"{job}/cancel"),
                         ("GET", f"{job}/events")):  # fmt: skip
        assert server.ask(method, f"{JOBS}/{path}").status == 404
    running = server.convert(("Prefer", "respond-async")).json()["id"]
    assert server.ask("DELETE", f"{JOBS}/{running}").status == 204
    assert server.ask("GET", f"{JOBS}/{running}").status == 404


def test_what_has_ended_stays_as_it_is(server: PolymuxServer) -> None:
    job = server.link()
    (newest, *_) = server.ask("GET", JOBS).json()["results"]
    assert newest["output"].partition("?")[0] == server.url + job.partition("?")[0]
    for _ in range(2):
        answer = server.ask("POST", f"{JOBS}/{newest['id']}/cancel", b"{}")
        assert (answer.status, answer.json()["status"]) == (200, "succeeded")
    events = server.ask("GET", f"{JOBS}/{newest['id']}/events")
    assert events.body.count(b"event: prediction\n") == 1
    assert b'"status":"succeeded"' in events.body


@pytest.mark.parametrize(
    ("wanted", "status", "body"),
    [("BYTES=0-0 ", 206, b"I"), ("bytes=13-", 206, b"s"), ("bytes=-14", 206, DATA),
     ("bytes=14-", 416, b""), ("bytes=1-1,2-2", 200, DATA), ("bytes=+1-2", 200, DATA),
     ("bytes=0-" + "9" * 60, 206, DATA), ("", 200, DATA)],
)  # fmt: skip
def test_ranges_of_many_kinds(server: PolymuxServer, wanted: str, status: int, body: bytes) -> None:
    """Returns one part or the whole file, as in `test_ranges.py`. HEAD ignores Range (S05)."""
    link = server.link()
    answer = server.ask("GET", link, headers=[("Range", wanted)], key=None)
    assert answer.status == status
    if status == 416:
        assert answer.headers["content-range"] == "bytes */14"
    else:
        assert answer.body == body
    head = server.ask("HEAD", link, headers=[("Range", wanted)], key=None)
    assert (head.status, head.headers["content-length"], head.body) == (200, "14", b"")


def test_files_that_the_caller_has_already(server: PolymuxServer) -> None:
    """ETags in lists, in several lines, and weak ones (RFC 9110, 13.1.2; S06)."""
    link = server.link()
    tag = server.ask("GET", link, key=None).headers["etag"]
    for lines in ([tag], [f"W/{tag}"], [f'"x", {tag}'], ['"x"', tag], [f'"x",W/{tag} ,"y"'], ["*"]):
        headers = [("If-None-Match", one) for one in lines]
        assert server.ask("GET", link, headers=headers, key=None).status == 304, lines
    for wanted, status in ((tag, 206), ('"x"', 200)):
        headers = [("Range", "bytes=0-1"), ("If-Range", wanted)]
        assert server.ask("GET", link, headers=headers, key=None).status == status
    for other in ('"x"', 'W/"x"', tag.strip('"'), "", ",", f"{tag}x"):
        answer = server.ask("GET", link, headers=[("If-None-Match", other)], key=None)
        assert (answer.status, answer.body) == (200, DATA), other


def chunked(data: bytes, size: int, end: bytes = b"0\r\n\r\n", extension: bytes = b"") -> bytes:
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    return b"".join(b"%x%s\r\n%s\r\n" % (len(one), extension, one) for one in pieces) + end


@pytest.mark.parametrize(("size", "extension"), [(1, b""), (7, b';a="b;c"'), (1 << 20, b";a=b")])
def test_bodies_in_chunks(server: PolymuxServer, size: int, extension: bytes) -> None:
    """Chunk extensions and trailers are ignored, for JSON and forms."""
    coding = ("Transfer-Encoding", "chunked")
    trailers = b"0\r\nX: y\r\nAuthorization: Bearer x\r\n\r\n"
    for end in (b"0\r\n\r\n", trailers):
        data = chunked(json.dumps(HELLO).encode(), size, end, extension)
        assert server.json(CHAT, data, [coding]).json() == {"text": "read"}
        data = chunked(BODY, size, end, extension)
        assert server.ask("POST", CONVERT, data, [*FORM, coding]).status == 200
    assert server.ask("GET", JOBS, chunked(b"hello", size), [coding]).status == 200


@pytest.mark.parametrize("name", ["Authorization", "Host", "Origin"])
def test_trailers_are_no_header(server: PolymuxServer, name: str) -> None:
    """Trailers neither authenticate nor change the request (RFC 9110, 6.5.1)."""
    value = f"Bearer {server.key}" if name == "Authorization" else "evil.example"
    end = f"0\r\n{name}: {value}\r\n\r\n".encode()
    data = chunked(json.dumps(HELLO).encode(), 7, end)
    coding = ("Transfer-Encoding", "chunked")
    assert server.json(CHAT, data, [coding], key=None).status == 401
    assert server.json(CHAT, data, [coding]).json() == {"text": "read"}


@pytest.mark.parametrize(
    ("coding", "pieces", "offer"),
    [("length", 1, "h2c"), ("chunks", 400, "h2c"), ("length", 400, "websocket")],
)
def test_an_offer_of_another_protocol_hides_no_request(
    server: PolymuxServer, box: Box, coding: str, pieces: int, offer: str
) -> None:
    """Text in the body that looks like a request is body. The next request works (H01)."""
    inner = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = json.dumps({**HELLO, "messages": [{"role": "user", "content": inner.decode()}]}).encode()
    framing = f"Content-Length: {len(body)}"
    if coding == "chunks":
        body, framing = chunked(body, 20), "Transfer-Encoding: chunked"
    lines = [f"POST {CHAT} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {server.key}",
             "Content-Type: application/json", f"Upgrade: {offer}", "Connection: Upgrade", framing,
             "", ""]  # fmt: skip
    follows = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    data = "\r\n".join(lines).encode() + body + follows
    size = -(-len(data) // pieces)
    with server.connect() as connection:
        for at in range(0, len(data), size):
            connection.sendall(data[at : at + size])
        found = read_all(connection)
    assert found.count(b"HTTP/1.1 200") == 2, found
    assert found.index(b'{"text":"read"}') < found.index(b'{"status":"ok"}')
    assert box.backend.began[-1].values["messages"][0]["content"] == inner.decode()


@pytest.mark.parametrize(
    "target",
    ["/healthz/", "/./healthz", "/healthz%3F", "/media/", "/api/v1/predictions/a%2Fb", "/%2e%2e/"],
)
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_addresses_that_are_none(server: PolymuxServer, method: str, target: str) -> None:
    """Unknown paths return 404 even with a key, and never a redirect."""
    answer = server.ask(method, target)
    assert answer.status == 404
    assert "location" not in answer.headers
