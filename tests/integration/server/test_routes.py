"""The routes: who may, what is refused before a byte of the body, what comes back."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING

import pytest
from polymux import contract
from support.polymux_server import CHAT, HELLO, PolymuxServer, read_answer
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = {"/healthz", "/readyz", "/api/v1/readiness"}
#: A signed link is the key.
LINKED = {"/media/{name}", "/songs/{id}", "/songs/{id}/cover"}
#: What is behind them has tests of its own.
DOORS = ("/v1/", "/mcp", "/replicate/", "/page")


def paths() -> list[tuple[str, str]]:
    found = [("POST", one.path) for one in contract.operations()]
    found += [
        ("GET", one)
        for one in (
            "/api/v1/predictions",
            "/api/v1/predictions/x",
            "/api/v1/predictions/x/events",
            "/api/v1/operations",
            "/api/v1/administration",
        )
    ]
    return [*found, ("POST", "/api/v1/predictions/x/cancel"), ("DELETE", "/api/v1/predictions/x")]


def test_every_route_is_in_the_list_and_wants_a_key(server: PolymuxServer) -> None:
    """A22: enumerated from the application."""
    from polymux.server.app import create_app

    listed = {path.replace("/x", "/{id}") for _, path in paths()}
    app = create_app(server.settings)
    own = {route.path for route in app.routes}  # type: ignore[attr-defined]
    own = {path for path in own - {"/"} if not path.startswith(DOORS)}
    assert own == listed | PUBLIC | LINKED | {"/metrics", "/openapi.json", "/docs"}
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
    data = (
        f"POST http://evil.example{CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    )
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


@pytest.mark.parametrize("host", ["a/b?c#d", "", "a b", "a\tb", "evil.example"])
def test_what_is_no_host(server: PolymuxServer, host: str) -> None:
    """A13: nor one of ours, which a page of another site would have."""
    assert server.json(CHAT, HELLO, [("Host", host)]).status in (400, 421)


def test_missing_and_doubled_hosts(server: PolymuxServer) -> None:
    """A13, H18."""
    lines = (
        f"POST {CHAT} HTTP/1.1\r\nAuthorization: Bearer {server.key}\r\n"
        "Content-Length: 0\r\nConnection: close\r\n"
    )
    assert server.raw(f"{lines}\r\n".encode()).status == 400
    assert server.raw(f"{lines}Host: localhost\r\nHost: localhost\r\n\r\n".encode()).status == 400
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
        assert "authorization" in answer.headers["access-control-allow-headers"]
        assert "POST" in answer.headers["access-control-allow-methods"]
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
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Type: application/json\r\n{fields}\r\n\r\n"
    )
    body = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
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
            f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
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
    one = "GET /nothing/{} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: r{}\r\n\r\n"
    data = "".join(one.format(n, n) for n in range(100))
    with server.connect() as connection:
        connection.sendall(data.encode())
        connection.shutdown(socket.SHUT_WR)
        found = read_rest(connection).decode()
    ids = [
        line.partition(": ")[2] for line in found.split("\r\n") if line.startswith("x-request-id")
    ]
    assert ids == [f"r{n}" for n in range(len(ids))]
