"""Routes: authentication, errors before the body is read, and headers. Case IDs: testing.md."""

from __future__ import annotations

import json
import re
import socket
from typing import TYPE_CHECKING

import pytest
from polymux import contract
from support.polymux_server import CHAT, HELLO, Box, PolymuxServer, read_all
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = {"/healthz", "/readyz", "/api/v1/readiness"}
#: The signature in the link replaces the key.
LINKED = {"/media/{name}", "/songs/{id}", "/songs/{id}/audio", "/songs/{id}/cover"}
#: Routes with separate tests.
EXCLUDED = ("/v1/", "/mcp", "/replicate/", "/page")


def paths() -> list[tuple[str, str]]:
    jobs, admin = "/api/v1/predictions", "/api/v1/administration"
    found = [("POST", one.path) for one in contract.operations()]
    read = (jobs, f"{jobs}/x", f"{jobs}/x/events", admin, f"{admin}/keys", "/api/v1/operations",
            "/api/v1/availability")  # fmt: skip
    found += [("GET", one) for one in read]
    found += [("POST", f"{jobs}/x/cancel"), ("POST", f"{admin}/keys"),
              ("POST", f"{admin}/keys/x/rotate"), ("POST", f"{admin}/engines/NAME/unload"),
              ("PATCH", f"{admin}/keys/x")]  # fmt: skip
    found.append(("GET", "/api/v1/songs"))
    return [*found, ("DELETE", f"{jobs}/x"), ("DELETE", f"{admin}/keys/x")]


def test_every_route_is_in_the_list_and_wants_a_key(server: PolymuxServer) -> None:
    """The routes are enumerated from the application (A22)."""
    from polymux.server.app import create_app

    listed = {path.replace("/x", "/{id}").replace("NAME", "{name}") for _, path in paths()}
    app = create_app(server.settings)
    own = {route.path for route in app.routes}  # type: ignore[attr-defined]
    own = {path for path in own - {"/"} if not path.startswith(EXCLUDED)}
    assert own == listed | PUBLIC | LINKED | {"/metrics", "/openapi.json", "/docs"}
    for method, path in paths():
        answer = server.ask(method, path, key=None)
        assert answer.status == 401, (method, path)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["code"] == "unauthorized"
    for path in PUBLIC:
        assert server.ask("GET", path, key=None).status == 200


#: Requests of the page and of links that the page shows.
WEB_UI = {"/page", "/page/", "/page/{name}", "/docs", "/songs/{id}", "/songs/{id}/audio",
          "/songs/{id}/cover"}  # fmt: skip
#: Requests that ask for the state of the server.
MONITORING = re.compile(
    r"/(healthz|readyz|metrics|openapi\.json|api/v1/(readiness|operations|availability|"
    r"administration.*))"
)


def test_every_route_says_what_it_is_for(server: PolymuxServer) -> None:
    """Requests of the web UI and of monitoring do not count as use of the API."""
    from polymux.server.app import create_app

    app = create_app(server.settings)
    assert {"/v1/models", "/replicate/v1/models", "/mcp"} <= {one.path for one in app.routes}  # type: ignore[attr-defined]
    kinds: dict[str, set[str]] = {}
    for route in app.routes:
        endpoint, path = route.endpoint, route.path  # type: ignore[attr-defined]
        wanted = "monitoring" if MONITORING.fullmatch(path) else "api"
        if path in WEB_UI | {"/"}:
            wanted = "web_ui"
        assert endpoint.kind == wanted, path
        kinds.setdefault(endpoint.name, set()).add(endpoint.kind)
    # The numbers of requests are by name.
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("method", ["post", "PO ST", "BREW", "\xff"])
def test_methods_that_are_none(server: PolymuxServer, method: str) -> None:
    """Invalid methods return an error in the usual format (A15)."""
    answer = server.ask(method, CHAT)
    assert answer.status in (400, 405)
    assert answer.json()["code"] in ("invalid_request", "wrong_method")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "/api/v1/predictions", "GET"), ("PUT", "/api/v1/predictions/x", "GET, DELETE"),
     ("GET", "/api/v1/predictions/x/cancel", "POST"), ("POST", "/media/x.mp3", "GET, HEAD"),
     ("DELETE", "/healthz", "GET, HEAD"), ("POST", "/metrics", "GET")],
)  # fmt: skip
def test_methods_of_other_addresses(
    server: PolymuxServer, method: str, path: str, allowed: str
) -> None:
    """Case A15."""
    answer = server.ask(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)


def test_http_1_0(server: PolymuxServer, box: Box) -> None:
    """Without a Host and with a wrong one. Never chunked, and the connection closes (H18)."""
    assert server.raw(b"GET /healthz HTTP/1.0\r\n\r\n").status == 200
    assert server.raw(b"GET /healthz HTTP/1.0\r\nHost: evil.example\r\n\r\n").status == 421
    assert server.raw(b"GET /healthz HTTP/1.0\r\nHost: a b\r\n\r\n").status == 400
    assert server.raw(b"GET /api/v1/operations HTTP/1.0\r\n\r\n").status == 401
    body = json.dumps(HELLO).encode()
    lines = (
        f"POST {CHAT} HTTP/1.0\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    assert server.raw(f"{lines}\r\n".encode() + body).json() == {"text": "read"}
    box.backend.chunks = [{"choices": []}]
    streamed = json.dumps({**HELLO, "stream": True}).encode()
    asked = lines.replace(f": {len(body)}", f": {len(streamed)}").encode() + b"\r\n" + streamed
    answer = server.raw(asked)
    assert (answer.status, answer.body) == (200, b'data: {"choices":[]}\n\ndata: [DONE]\n\n')
    assert "transfer-encoding" not in answer.headers  # HTTP/1.0 does not support it.
    kept = server.raw(f"{lines}Connection: keep-alive\r\n\r\n".encode() + body)
    assert (kept.json(), kept.headers["connection"]) == ({"text": "read"}, "close")


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
        # A shared cache must not return responses for another origin to this page.
        own = ("Origin", server.url)
        for headers in ((), [("Origin", "https://x.example")], [own], [("Origin", origin)]):
            answer = server.ask("GET", "/healthz", headers=headers)
            assert answer.headers["vary"].lower() == "origin"
        assert server.ask("OPTIONS", CHAT, headers=[("Origin", "https://x.example")]).status in (
            403,
            405,
        )


@pytest.mark.parametrize(
    ("kind", "coding", "status"),
    [("text/plain", "", 415), ("", "", 415), ("application/json; charset=utf-7", "", 415),
     ("application/JSON", "", 200), ("application/json", "gzip", 415),
     ("multipart/form-data; boundary=x", "", 415)],
)  # fmt: skip
def test_types_of_bodies(server: PolymuxServer, kind: str, coding: str, status: int) -> None:
    """Cases J18, J19 and H16."""
    fields = [("Content-Type", kind), ("Content-Encoding", coding)]
    given = [one for one in fields if one[1]]
    answer = server.ask("POST", CHAT, json.dumps(HELLO).encode(), given)
    assert answer.status == status
    if status == 415:
        assert answer.json()["code"] == "unsupported_media"
        allowed = answer.json()["error"].rpartition("allowed")[2]
        assert "multipart" not in allowed  # Chats have no form.


@pytest.mark.parametrize("value", ["-1", "+5", "5, 5", "1" * 20, ""])
def test_lengths_that_are_none(server: PolymuxServer, value: str) -> None:
    """Case H03."""
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
    """The server rejects them, closes, and handles no second request (H01, H02, H05 and H06)."""
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Type: application/json\r\n{fields}\r\n\r\n"
    )
    body = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(head.encode("latin-1") + body)
        connection.settimeout(5)
        data = read_all(connection)
    assert data.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
    assert len(re.findall(rb"HTTP/1\.1 \d{3} ", data)) == 1


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (400, 0)),
        (b"\0" * 1000, (400,)),
        (b"GET /\r\n\r\n", (400, 505, 0)),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 505)),
        # These versions would change the meaning of the request.
        *(
            (b"GET /healthz HTTP/%s\r\nHost: localhost\r\n\r\n" % version, (400, 505))
            for version in (b"0.9", b"1.2", b"2.0", b"3.0")
        ),
    ],
)
def test_what_is_no_http(server: PolymuxServer, data: bytes, statuses: tuple[int, ...]) -> None:
    """Case H17."""
    assert server.raw(data, half_close=True).status in statuses


def test_requests_in_a_row_are_answered_in_order(server: PolymuxServer) -> None:
    """Case H15."""
    one = "GET /nothing/{} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: r{}\r\n\r\n"
    data = "".join(one.format(n, n) for n in range(100))
    with server.connect() as connection:
        connection.sendall(data.encode())
        connection.shutdown(socket.SHUT_WR)
        found = read_all(connection).decode()
    ids = [
        line.partition(": ")[2] for line in found.split("\r\n") if line.startswith("x-request-id")
    ]
    assert ids
    assert ids == [f"r{n}" for n in range(len(ids))]
