"""Authentication of the server and of the router in another application. Case IDs: testing.md."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from polymux import contract
from support.hosted_server import HostedServer
from support.hostile_check import PATIENCE
from support.polymux_server import CHAT, CONVERT, HELLO, PolymuxServer, form, read_all, read_answer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

Either = PolymuxServer | HostedServer
#: A few milliseconds are enough. Work that is quadratic in the input length exceeds this.
REFUSED_S = 2.0 * PATIENCE


@pytest.fixture(scope="module", params=["ours", "foreign"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Either]:
    kind = PolymuxServer if request.param == "ours" else HostedServer
    folder = tmp_path_factory.mktemp(request.param) / "s"
    with kind(folder, lambda: [Scripted(max_concurrency=4)]) as running:
        yield running


@pytest.mark.parametrize(
    "value",
    ["Basic dTpw", "Token KEY", "Bearer", "Bearer ", "Bearer\t", "Bearer  KEY", "Bearer KEY x",
     'Bearer "KEY"', "Bearer KEYx", "Bearer SHORTER", "Bearer \xff\xfe", "KEY"],
)  # fmt: skip
def test_what_is_no_key(server: Either, value: str) -> None:
    """Cases A03 to A05, A08 and A09."""
    shown = value.replace("KEY", server.key).replace("SHORTER", server.key[:-1])
    answer = server.json(CHAT, HELLO, [("Authorization", shown)])
    assert answer.status == 401
    assert server.key not in answer.body.decode()


def test_the_scheme_s_case_does_not_matter(server: Either) -> None:
    """Case A02."""
    assert server.json(CHAT, HELLO, [("authorization", f"bearer {server.key}")]).status == 200


def test_a_key_elsewhere_is_none(server: Either) -> None:
    """Cases A06 and A10."""
    assert server.json(f"{CHAT}?token={server.key}", HELLO, key=None).status == 401
    for name in ("key", "api_key", "Authorization"):
        body, headers = form((name, f"Bearer {server.key}"), ("file", ("a.wav", b"x")))
        assert server.ask("POST", CONVERT, body, headers, key=None).status == 401, name
        assert server.json(CHAT, {**HELLO, name: server.key}, key=None).status == 401, name
    two = [("Authorization", "Bearer x"), ("Authorization", f"Bearer {server.key}")]
    assert server.json(CHAT, HELLO, two).status == 400


@pytest.mark.parametrize("key", ["\xff" * 60_000, " " * 60_000 + "x", "KEY" + "x" * 60_000])
def test_a_key_of_60_kilobytes(server: Either, key: str) -> None:
    """Rejected quickly, because no work is done per character (A07)."""
    shown = [("Authorization", f"Bearer {key.replace('KEY', server.key)}")]
    began = time.monotonic()
    for _ in range(5):
        assert server.json(CHAT, HELLO, shown).status == 401
    assert time.monotonic() - began < 5 * REFUSED_S
    assert server.json(CHAT, HELLO, [("Authorization", "Bearer " + "x" * 80_000)]).status == 431


@pytest.mark.parametrize(
    ("kind", "body"),
    [("application/json", b"{"), ("multipart/form-data", b"x"), ("text/plain", b"x")],
)
def test_no_parser_is_entered_without_a_key(server: Either, kind: str, body: bytes) -> None:
    """Case A12."""
    assert server.ask("POST", CHAT, body, [("Content-Type", kind)], key=None).status == 401


@pytest.mark.parametrize(
    ("path", "kind"), [(CHAT, "application/json"), (CONVERT, "multipart/form-data; boundary=bbbb")]
)
def test_a_large_body_without_a_key_is_not_read(
    server: Either, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    """Answered after the headers. A client that still sends can read it (A11 and H21)."""

    def drafted(*_: object) -> None:
        raise AssertionError("a file was begun")

    monkeypatch.setattr(server.state.service.store.media, "draft", drafted)
    fields = [("Content-Type", kind), ("Content-Length", "1073741824")]
    head = server.written("POST", path, headers=fields, key=None, close=False)
    before = 0 if server.is_hosted else server.server.front.native.received_bytes
    with server.connect() as connection:
        connection.sendall(head + b"x" * 1000)
        with suppress(OSError):
            for _ in range(64):
                connection.sendall(b"x" * 65536)
        answer = read_answer(connection)
    assert answer.status == 401
    assert answer.headers["connection"] == "close"
    if not server.is_hosted:
        # Nothing is parsed beyond what came with the head.
        assert server.server.front.native.received_bytes - before <= 64 << 10


@pytest.mark.parametrize(
    "target",
    ["//api/v1/freellm", "/api/v1/./freellm", "/api/v1/%66reellm", "/api/v1/freellm/",
     "/api/v1/freellm%00", "/API/v1/freellm"],
)  # fmt: skip
def test_other_spellings_lead_nowhere(server: Either, target: str) -> None:
    """Another application may redirect or decode some of them, but still requires a key (A14)."""
    answer = server.json(target, HELLO, key=None)
    if server.is_hosted:
        assert answer.status in (307, 401, 404)
        return
    for one in (answer, server.json(target, HELLO)):
        assert one.status == 404
        assert one.json()["code"] == "not_found"


def test_a_proxy_s_target_is_refused(server: Either) -> None:
    """An absolute URL as the target never bypasses the key (A14)."""
    data = (
        f"POST http://evil.example{CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    )
    assert server.raw(data.encode(), half_close=True).status == (401 if server.is_hosted else 400)


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD", "TRACE", "OPTIONS"])
def test_other_methods(server: Either, method: str) -> None:
    """On every operation, with and without a key (A15 and A16)."""
    for one in contract.operations():
        for key in ("", None):
            origins = ("null", "https://evil.example") if method == "OPTIONS" else ()
            for origin in origins:
                asked = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
                refused = server.ask(method, one.path, headers=asked, key=key)
                assert refused.status in (403, 405), one.path
                assert "access-control-allow-origin" not in refused.headers, one.path
            answer = server.ask(method, one.path, key=key)
            assert (answer.status, answer.headers["allow"]) == (405, "POST"), one.path
            assert answer.headers["content-type"] == "application/json"
            assert "access-control-allow-origin" not in answer.headers
            if method == "HEAD":
                assert answer.body == b""
            else:
                assert answer.json()["code"] == "wrong_method"


def test_a_page_of_another_site_may_not_ask(server: Either) -> None:
    """DNS rebinding does not help the other site either (A16)."""
    for origin in ("https://evil.example", "null"):
        answer = server.json(CHAT, HELLO, [("Origin", origin)])
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
    own = f"http://{server.address[0]}:{server.address[1]}"
    assert server.json(CHAT, HELLO, [("Origin", own)]).status == 200


@pytest.mark.parametrize("host", ["a/b?c#d", "", "a b", "a\tb", "evil.example"])
def test_what_is_no_host(server: Either, host: str) -> None:
    """A DNS rebinding page sends its own host, which is also rejected (A13)."""
    assert server.json(CHAT, HELLO, [("Host", host)]).status in (400, 421)


def test_100_continue_comes_to_those_who_may(server: Either) -> None:
    """Case H14."""
    body = json.dumps(HELLO).encode()
    fields = [("Content-Length", str(len(body))), ("Expect", "100-continue")]
    for key, first in ((server.key, b"HTTP/1.1 100"), ("wrong", b"HTTP/1.1 401")):
        with server.connect() as connection:
            connection.sendall(server.written_json(CHAT, b"", fields, key=key))
            assert connection.recv(12) == first
            if key == server.key:
                connection.sendall(body)
                assert b"HTTP/1.1 200" in read_all(connection)
