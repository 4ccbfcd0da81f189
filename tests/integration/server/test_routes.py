"""The routes: who may, what is refused before a byte of the body, what comes back."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.service.failures import engine_failed
from support.polymux_server import PolymuxServer, form, read_answer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHAT = "/api/v1/fastllm/chatcompletion"
HELLO = {"model": "default", "messages": [{"role": "user", "content": "Hi"}]}
PUBLIC = {"/healthz", "/readyz", "/api/v1/readiness"}


class Box:
    """The backend that the server's thread made."""

    backend: Scripted


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def server(tmp_path: Path, box: Box) -> Iterator[PolymuxServer]:
    def make() -> list[Scripted]:
        box.backend = Scripted(slots=4)
        return [box.backend]

    with PolymuxServer(tmp_path / "s", make) as running:
        yield running


def paths() -> list[tuple[str, str]]:
    found = [("POST", one.path) for one in contract.operations()]
    found += [
        ("GET", one)
        for one in (
            "/api/v1/predictions",
            "/api/v1/predictions/x",
            "/api/v1/predictions/x/events",
            "/api/v1/operations",
        )
    ]
    return [*found, ("POST", "/api/v1/predictions/x/cancel"), ("DELETE", "/api/v1/predictions/x")]


def test_every_route_is_in_the_list_and_wants_a_key(server: PolymuxServer) -> None:
    """A22: enumerated from the application."""
    from polymux.server.app import create_app

    listed = {path.replace("/x", "/{id}") for _, path in paths()}
    app = create_app(server.settings)
    own = {route.path for route in app.routes}  # type: ignore[attr-defined]
    assert own == listed | PUBLIC | {"/media/{name}", "/metrics", "/openapi.json", "/docs"}
    for method, path in paths():
        answer = server.ask(method, path, key=None)
        assert answer.status == 401, (method, path)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["code"] == "unauthorized"
    for path in PUBLIC:
        assert server.ask("GET", path, key=None).status == 200


@pytest.mark.parametrize(
    "value",
    [
        "Basic dTpw",
        "Token x",
        "Digest x",
        "Bearer",
        "Bearer ",
        "Bearer\t",
        "Bearer  KEY",
        "Bearer KEY x",
        'Bearer "KEY"',
        "Bearer KEYx",
        "Bearer KE",
        "Bearer \xff\xfe",
        "KEY",
    ],
)
def test_what_is_no_key(server: PolymuxServer, value: str) -> None:
    """A03 to A05, A08, A09."""
    shown = value.replace("KEY", server.key)
    if "KE" in value and "KEY" not in value:
        shown = f"Bearer {server.key[:-1]}"
    answer = server.json(CHAT, HELLO, [("Authorization", shown)])
    assert answer.status == 401
    assert server.key not in answer.body.decode()


def test_the_scheme_s_case_does_not_matter(server: PolymuxServer) -> None:
    """A02."""
    assert server.json(CHAT, HELLO, [("authorization", f"bearer {server.key}")]).status == 200


def test_a_key_elsewhere_is_none(server: PolymuxServer) -> None:
    """A06, A07, A10."""
    assert server.json(f"{CHAT}?token={server.key}", HELLO, key=None).status == 401
    two = [("Authorization", "Bearer x"), ("Authorization", f"Bearer {server.key}")]
    assert server.json(CHAT, HELLO, two).status == 400
    assert server.json(CHAT, HELLO, [("Authorization", "Bearer " + "x" * 60_000)]).status == 401
    assert server.json(CHAT, HELLO, [("Authorization", "Bearer " + "x" * 80_000)]).status == 431


@pytest.mark.parametrize(
    ("kind", "body"),
    [("application/json", b"{"), ("application/json", b"[" * 100_000),
     ("multipart/form-data", b"x"),
     ("text/plain", b"x")],
)  # fmt: skip
def test_no_parser_is_entered_without_a_key(server: PolymuxServer, kind: str, body: bytes) -> None:
    """A12."""
    assert server.ask("POST", CHAT, body, [("Content-Type", kind)], key=None).status == 401


def test_a_large_body_without_a_key_is_not_read(server: PolymuxServer) -> None:
    """A11, H21: answered at once, and the answer can be read while the client still sends."""
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: {server.address[0]}:{server.address[1]}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n"
    )
    with server.connect() as connection:
        began = time.monotonic()
        connection.sendall(head.encode() + b"x" * 1000)
        answer = read_answer(connection)
        assert time.monotonic() - began < 1
    assert answer.status == 401
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize(
    "target",
    ["//api/v1/freellm", "/api/v1/./freellm", "/api/v1/%66reellm", "/api/v1/freellm;x",
     "/api/v1/freellm/", "/api%2fv1/freellm", "/api/v1/freellm%00", "/API/v1/freellm"],
)  # fmt: skip
def test_other_spellings_lead_nowhere(server: PolymuxServer, target: str) -> None:
    """A14."""
    for key in (None, ""):
        answer = server.json(target, HELLO, key=key)
        assert answer.status == 404
        assert answer.json()["code"] == "not_found"


def test_a_proxy_s_target_is_refused(server: PolymuxServer) -> None:
    """A14."""
    data = f"POST http://evil.example{CHAT} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
    assert server.raw(data.encode()).status == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "TRACE", "post", "OPTIONS"])
def test_other_methods(server: PolymuxServer, method: str) -> None:
    """A15, A16."""
    answer = server.ask(method, CHAT)
    if answer.status == 405:
        assert answer.headers["allow"] == "POST"
        assert method == "HEAD" or answer.json()["code"] == "wrong_method"
    assert answer.status in (400, 405)
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["a/b?c#d", "", "a b", "a\tb"])
def test_what_is_no_host(server: PolymuxServer, host: str) -> None:
    """A13."""
    assert server.json(CHAT, HELLO, [("Host", host)]).status == 400


def test_missing_and_doubled_hosts(server: PolymuxServer) -> None:
    """A13, H18."""
    lines = f"POST {CHAT} HTTP/1.1\r\nAuthorization: Bearer {server.key}\r\nContent-Length: 0\r\n"
    assert server.raw(f"{lines}\r\n".encode()).status == 400
    assert server.raw(f"{lines}Host: a\r\nHost: a\r\n\r\n".encode()).status == 400
    assert server.raw(b"GET /healthz HTTP/1.0\r\n\r\n").status == 200


def test_a_page_of_another_site_may_not_ask(server: PolymuxServer) -> None:
    """A16: and a rebound name does not help it either."""
    for origin in ("https://evil.example", "null"):
        answer = server.json(CHAT, HELLO, [("Origin", origin)])
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
    own = f"http://{server.address[0]}:{server.address[1]}"
    assert server.json(CHAT, HELLO, [("Origin", own)]).status == 200


def test_an_allowed_origin(tmp_path: Path) -> None:
    origin = "https://site.example"
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()], allowed_origins=(origin,)) as server:
        asked = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
        answer = server.ask("OPTIONS", CHAT, headers=asked, key=None)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == origin
        answer = server.json(CHAT, HELLO, [("Origin", origin)])
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, origin)
        assert server.ask("OPTIONS", CHAT, headers=[("Origin", "https://x.example")]).status in (
            403,
            405,
        )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("Content-Type", "text/plain")], 415),
        ([], 415),
        ([("Content-Type", "application/json; charset=utf-7")], 415),
        ([("Content-Type", "application/JSON")], 200),
        ([("Content-Type", "application/json"), ("Content-Encoding", "gzip")], 415),
        ([("Content-Type", "multipart/form-data; boundary=x")], 415),
    ],
)
def test_types_of_bodies(
    server: PolymuxServer, headers: list[tuple[str, str]], status: int
) -> None:
    """J18, J19, H16."""
    body = json.dumps(HELLO).encode()
    answer = server.ask("POST", CHAT, body, headers)
    assert answer.status == status
    if status == 415:
        assert answer.json()["code"] == "unsupported_media"


@pytest.mark.parametrize("value", ["-1", "+5", "5, 5", "0x10", "1" * 20, ""])
def test_lengths_that_are_none(server: PolymuxServer, value: str) -> None:
    """H03."""
    headers = [("Content-Type", "application/json"), ("Content-Length", value)]
    assert server.ask("POST", CHAT, b"{}", headers).status in (400, 413)


@pytest.mark.parametrize(
    "fields",
    ["Content-Length: 2\r\nTransfer-Encoding: chunked", "Content-Length: 2\r\nContent-Length: 3",
     "Transfer-Encoding: xchunked", "Transfer-Encoding: gzip, chunked",
     "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "X: a\r\n folded", "X\0: a",
     "X: a\0b", "X y: a", "X: a\rb"],
)  # fmt: skip
def test_framing_that_two_servers_would_read_differently(
    server: PolymuxServer, fields: str
) -> None:
    """H01, H02, H05, H06: refused and closed; what follows is no second request."""
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Type: application/json\r\n{fields}\r\n\r\n"
    )
    body = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(head.encode("latin-1") + body)
        connection.settimeout(5)
        data = b""
        while piece := connection.recv(65536):
            data += piece
    assert data.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
    assert data.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (400, 0)),
        (b"\0" * 1000, (400,)),
        (b"GET /\r\n\r\n", (400, 0)),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400,)),
    ],
)
def test_what_is_no_http(server: PolymuxServer, data: bytes, statuses: tuple[int, ...]) -> None:
    """H17."""
    assert server.raw(data, half_close=True).status in statuses


def test_headers_that_are_too_much(server: PolymuxServer) -> None:
    """H07, H08."""
    for fields in ([("X", "x" * (1 << 20))], [(f"X{n}", "x") for n in range(10_000)]):
        began = time.monotonic()
        answer = server.ask("GET", "/healthz", headers=fields)
        assert answer.status in (431, 400)
        assert time.monotonic() - began < 1
    assert server.ask("GET", "/healthz?" + "x" * 20_000).status == 414
    assert server.ask("GET", "/healthz").status == 200


def test_100_continue_comes_to_those_who_may(server: PolymuxServer) -> None:
    """H14."""
    body = json.dumps(HELLO).encode()
    for key, first in ((server.key, b"HTTP/1.1 100"), ("wrong", b"HTTP/1.1 401")):
        head = (
            f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n"
            "Connection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Expect: 100-continue\r\n\r\n"
        )
        with server.connect() as connection:
            connection.sendall(head.encode())
            assert connection.recv(12) == first
            if key == server.key:
                connection.sendall(body)
                assert b"200" in read_rest(connection)


def read_rest(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def test_requests_in_a_row_are_answered_in_order(server: PolymuxServer) -> None:
    """H15."""
    one = "GET /nothing/{} HTTP/1.1\r\nHost: a\r\nX-Request-ID: r{}\r\n\r\n"
    data = "".join(one.format(n, n) for n in range(100))
    with server.connect() as connection:
        connection.sendall(data.encode())
        connection.shutdown(socket.SHUT_WR)
        found = read_rest(connection).decode()
    ids = [
        line.partition(": ")[2] for line in found.split("\r\n") if line.startswith("x-request-id")
    ]
    assert ids == [f"r{n}" for n in range(len(ids))]


def test_a_chat_and_its_request_id(server: PolymuxServer, box: Box) -> None:
    answer = server.json(CHAT, HELLO, [("X-Request-ID", "mine-1")])
    assert (answer.status, answer.json()) == (200, {"text": "read"})
    assert answer.headers["x-request-id"] == "mine-1"
    assert answer.headers["polymux-version"]
    assert box.backend.began[0].request_id == "mine-1"
    assert box.backend.began[0].values["messages"] == HELLO["messages"]
    answer = server.json(CHAT, HELLO, [("X-Request-ID", "bad id")])
    assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("body", [b"", b"   ", b"{", b"[]", b'"x"', b"{}", b'{"a":1} x'])
def test_bodies_that_are_no_request(server: PolymuxServer, body: bytes) -> None:
    """J01 to J03, J17."""
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    answer = server.ask("POST", CHAT, body, headers)
    assert answer.status == 400
    assert answer.json()["code"] == "invalid_request"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_bodies_that_are_too_long(tmp_path: Path) -> None:
    """J13: the cap and one byte more; declared, and in chunks."""
    from polymux.server.settings import Limits

    limits = Limits(chat_bytes=1000)
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()], limits=limits) as server:
        for size, status in ((1000, 200), (1001, 413)):
            body = json.dumps(HELLO).encode().ljust(size)
            assert server.json(CHAT, body).status == status
            chunks = [("Transfer-Encoding", "chunked")]
            chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            assert server.json(CHAT, chunked, chunks).status == status


def test_a_field_that_steers_is_refused(server: PolymuxServer) -> None:
    """S4: J20."""
    answer = server.json(CHAT, {**HELLO, "api_base": "http://evil.example"})
    assert answer.status == 400
    assert "api_base" in answer.json()["error"]


def test_operations_without_an_engine(server: PolymuxServer) -> None:
    """501 with advice; never asked again."""
    fields, headers = form(("prompt", "waves"))
    answer = server.ask("POST", "/api/v1/modelhost/videogeneration", fields, headers)
    assert (answer.status, answer.json()["code"]) == (501, "no_backend")
    assert "retry-after" not in answer.headers
    for path, value in (
        ("/api/v1/musicsearch", {"song": "x"}),
        ("/api/v1/downloadvideo", {"url": "http://files.example/a"}),
        ("/api/v1/videosummarization", {"url": "http://files.example/a"}),
        ("/api/v1/downloadmusic", {"song": "x"}),
    ):
        assert server.json(path, value).status == 501, path


@pytest.mark.parametrize(
    ("query", "status"),
    [("?model=nightmareai/real-esrgan", 501), ("?model=nothing/x", 400), ("?model=", 400),
     ("", 400), ("?model=a&model=b", 400), ("?model=%ff", 400)],
)  # fmt: skip
def test_model_selectors(server: PolymuxServer, query: str, status: int) -> None:
    """I14."""
    body, headers = form(("image", ("a.png", b"x")), ("scale", "2"))
    assert (
        server.ask("POST", f"/api/v1/modelhost/imageupscale{query}", body, headers).status == status
    )


def test_failures_have_their_status_and_say_no_more_than_they_should(
    server: PolymuxServer, box: Box
) -> None:
    box.backend.failure = engine_failed("the engine broke")
    answer = server.json(CHAT, HELLO)
    assert (answer.status, answer.json()["code"]) == (500, "engine_failed")
    box.backend.failure = ZeroDivisionError("secret-canary")
    answer = server.json(CHAT, HELLO)
    assert (answer.status, answer.json()["code"]) == (500, "internal")
    assert "canary" not in answer.body.decode()


def test_facts(server: PolymuxServer) -> None:
    """A17."""
    ready = server.ask("GET", "/readyz", key=None).json()
    assert ready["status"] == "ready"
    assert ready["backends"] == {"scripted": {"state": "ready"}}
    operations = server.ask("GET", "/api/v1/operations").json()
    assert len(operations) == 14
    for path in ("/metrics", "/openapi.json", "/docs"):
        assert server.ask("GET", path, key=None).status == 200  # From this machine.
        outside = [("X-Forwarded-For", "192.0.2.1")]
        assert server.ask("GET", path, headers=outside, key=None).status == 401
        rebound = [("Host", "evil.example")]
        assert server.ask("GET", path, headers=rebound, key=None).status == 401
    server.json(CHAT, HELLO)
    text = server.ask("GET", "/metrics").body.decode()
    assert 'polymux_requests_total{operation="chat",status="200"}' in text
    assert "polymux_key_requests_total" in text
    assert server.key not in text
    assert b"<script" not in server.ask("GET", "/docs").body


def test_quotas(tmp_path: Path) -> None:
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()]) as server:
        limited, _ = server.keys.add("limited", requests_per_minute=2.0)
        seen = [server.json(CHAT, HELLO, key=limited) for _ in range(3)]
        assert [one.status for one in seen] == [200, 200, 429]
        assert 1 <= int(seen[2].headers["retry-after"]) <= 30
        assert server.json(CHAT, HELLO).status == 200


def test_scopes_and_ends_of_keys(server: PolymuxServer) -> None:
    """A19: changes count from the next request on."""
    scoped, _ = server.keys.add("scoped", scopes=("transcribe",))
    answer = server.json(CHAT, HELLO, key=scoped)
    assert (answer.status, answer.json()["code"]) == (403, "forbidden")
    old, _ = server.keys.add("old", expires_at=time.time() - 1)
    assert server.json(CHAT, HELLO, key=old).status == 401
    other, _ = server.keys.add("other")
    assert server.json(CHAT, HELLO, key=other).status == 200
    new, _ = server.keys.rotate("other")
    assert server.json(CHAT, HELLO, key=other).status == 401
    assert server.json(CHAT, HELLO, key=new).status == 200
    server.keys.remove("other")
    assert server.json(CHAT, HELLO, key=new).status == 401
    assert server.settings.key_file.stat().st_mode & 0o777 == 0o600
    assert new not in server.settings.key_file.read_text()


def test_a_broken_key_file_lets_nobody_in(server: PolymuxServer) -> None:
    server.settings.key_file.write_text("{")
    assert server.json(CHAT, HELLO).status in (400, 401, 500)
    assert server.ask("GET", "/healthz", key=None).status == 200


def values_of(answer: Any) -> list[Any]:
    events = answer.body.decode().split("\n\n")
    return [one.removeprefix("data: ") for one in events if one]


def test_a_stream(server: PolymuxServer, box: Box) -> None:
    box.backend.chunks = [{"choices": [{"delta": {"content": "H\u00e9"}}]}, {"choices": []}]
    answer = server.json(CHAT, {**HELLO, "stream": True})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = values_of(answer)
    assert [json.loads(one) for one in found[:-1]] == box.backend.chunks
    assert found[-1] == "[DONE]"


def test_a_stream_that_fails(server: PolymuxServer, box: Box) -> None:
    """C22: before the first piece by its status, behind it by an event, and no [DONE]."""
    box.backend.failure = engine_failed("broke")
    assert server.json(CHAT, {**HELLO, "stream": True}).status == 500
    box.backend.chunks = [{"choices": []}]
    answer = server.json(CHAT, {**HELLO, "stream": True})
    found = values_of(answer)
    assert (answer.status, len(found)) == (200, 2)
    assert json.loads(found[1])["error"]["code"] == "engine_failed"


def test_jobs_over_http(server: PolymuxServer, box: Box) -> None:
    body, headers = form(("file", ("../a\u00e4.wav", b"RIFF....")))
    answer = server.ask("POST", "/api/v1/convert2mp3", body, headers)
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
    assert server.ask("GET", one, key=other).status == 404
    assert server.ask("DELETE", one).status == 204
    assert server.ask("GET", one).status == 404
    assert server.ask("GET", path, key=None).status == 404
