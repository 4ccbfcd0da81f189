"""Raw requests to /mcp: authentication, invalid messages, sessions and availability."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from polymux import mcp
from polymux.runtime.settings import Limits
from polymux.server.compat.mcp import OpenSessions
from polymux.server.settings.settings import CompatSettings
from support.mcp_clients import (
    PATH,
    TYPES,
    VERSION,
    batch,
    events,
    handshake,
    message,
    post,
    session_of,
)
from support.polymux_server import PolymuxServer, form, read_answer
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import Answer

ORIGIN = "https://inspector.example"
LIMITS = Limits(chat_bytes=1 << 20, body_first_s=1.0, body_bytes_per_s=1e6)


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return {"limits": LIMITS, "allowed_origins": (ORIGIN,)}


@pytest.mark.parametrize("key", [None, "wrong", "pmx_" + "x" * 43])
def test_without_a_right_key_no_body_is_read(server: PolymuxServer, key: str | None) -> None:
    lines = [f"POST {PATH} HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 1000000"]
    lines += [f"{name}: {value}" for name, value in TYPES]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    with socket.create_connection(server.address, 5) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = read_answer(connection)
    assert answer.status == 401
    assert answer.json()["code"] == "unauthorized"
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize(
    ("method", "fields", "body", "status"),
    [
        ("POST", [("Origin", "https://elsewhere.example")], handshake(), 403),
        ("POST", [("Host", "elsewhere.example")], handshake(), 421),
        ("GET", [], b"", 405),
        ("PUT", [], handshake(), 405),
        ("POST", [("Content-Length", str(2 << 20))], b"", 413),
        ("POST", [("Transfer-Encoding", "chunked")],
         b"110000\r\n" + b" " * 0x110000 + b"\r\n0\r\n\r\n", 413),
        ("POST", [("Content-Length", "100")], b"{", 408),
        ("POST", [("Content-Encoding", "gzip")], handshake(), 415),
        ("POST", [("Content-Type", "text/plain")], handshake(), 415),
        ("POST", form()[1], form(("a", "b"))[0], 415),
    ],
)  # fmt: skip
def test_the_rules_of_the_gate_hold(
    server: PolymuxServer, method: str, fields: list[tuple[str, str]], body: bytes, status: int
) -> None:
    types = [one for one in TYPES if one[0] not in dict(fields)]
    answer = server.ask(method, PATH, body, [*types, *fields])
    assert answer.status == status
    assert set(answer.json()) >= {"error", "code", "request_id"}
    if status == 405:
        assert answer.headers["allow"] == "POST, DELETE"


def test_a_page_of_an_allowed_origin(server: PolymuxServer) -> None:
    origin = ("Origin", ORIGIN)
    may = server.ask("OPTIONS", PATH, b"", [origin], key=None)
    assert may.status == 200
    for name in ("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"):
        assert name in may.headers["access-control-allow-headers"]
    answer = post(server, handshake(), [origin, ("X-Request-Id", "mine")])
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
    assert answer.headers["x-request-id"] == "mine"
    assert answer.headers["polymux-version"]
    (event,) = events(answer)
    assert event["result"]["serverInfo"]["name"] == "polymux"
    assert event["result"]["capabilities"].keys() == {"tools", "resources"}


@pytest.mark.parametrize(
    "body",
    [
        b"", batch(message("ping")), b"5", b'{"jsonrpc": "2.0", "method": 5, "id": 1}',
        b'{"a":' * 100_000, b"\xff\xfe", b'{"jsonrpc": "2.0", "method": "ping", "id": {"a": 1}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [VERSION, "x"])
def test_what_is_no_message(server: PolymuxServer, body: bytes, version: str) -> None:
    answer = post(server, body, [("Mcp-Protocol-Version", version)])
    assert 400 <= answer.status < 500, answer.body
    assert len(answer.body) < 20_000
    assert b"Traceback" not in answer.body
    assert post(server, handshake()).status == 200


def test_blanks_around_header_values(server: PolymuxServer) -> None:
    """They are not part of a value (RFC 9110, 5.5)."""
    (name, session), (version, number) = session_of(server)
    fields = [(name, f" \t{session}\t "), (version, f"{number} ")]
    fields += [("Authorization", f"Bearer {server.key} "), ("X-Request-Id", "mine\t")]
    answer = post(server, message("resources/templates/list"), fields)
    assert events(answer)[0]["result"]["resourceTemplates"] == []
    assert answer.headers["x-request-id"] == "mine"


OLD = "2025-03-26"


def errors_of(answers: list[Any]) -> dict[Any, int]:
    return {one["id"]: one["error"]["code"] for one in answers if "error" in one}


def test_a_batch(server: PolymuxServer, backend: Scripted) -> None:
    """Its messages run one after another; each item that is no message has its own error."""
    fields = session_of(server, version=OLD)[:1]  # This version has no other field.
    call = {"name": "convert_to_mp3", "arguments": {"file": "QUJD"}}
    answer = post(
        server,
        batch(
            message("tools/call", call, 1),
            b"5",
            message("notifications/cancelled", {"requestId": 9}, None),
            message("no/such", {}, 3),
            handshake(),
            message("tools/call", call, 2),
            message("resources/read", {"uri": "polymux://media/none"}, 4),
        ),
        fields,
    )
    assert answer.status == 200
    found = events(answer)
    assert len(found) == 6
    assert [one["id"] for one in found if "result" in one] == [1, 2]
    assert errors_of(found) == {None: -32600, 3: -32601, 4: -32602}
    assert len(backend.began) == 2
    told = batch(message("notifications/initialized", number=None))
    assert post(server, told, fields).status == 202
    (error,) = events(post(server, batch(b"5"), fields))
    assert error["error"]["code"] == -32600
    assert server.ask("DELETE", PATH, b"", fields).status == 200
    assert post(server, told, fields).status == 404


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", VERSION, None])
def test_versions_without_batches(server: PolymuxServer, version: str | None) -> None:
    fields = [] if version is None else session_of(server, version=version)
    answer = post(server, batch(message("ping")), fields)
    assert answer.status == 400
    assert (answer.json()["error"]["code"], answer.json()["id"]) == (-32600, None)


def test_limits_of_a_batch(server: PolymuxServer, other_key: str) -> None:
    fields = session_of(server, version=OLD)
    ping = message("ping")
    for wrong in (batch(), batch(*[ping] * 21)):
        answer = post(server, wrong, fields)
        assert (answer.status, answer.json()["error"]["code"]) == (400, -32600)
    large = batch(ping, message("ping", {"a": "x" * (64 << 10)}))
    assert post(server, large, fields).status == 413
    assert post(server, batch(ping), fields, key=other_key).status == 404


def test_the_messages_of_a_batch_count_as_requests(server: PolymuxServer) -> None:
    key, _ = server.keys.add("rated", requests_per_minute=10)
    fields = session_of(server, key, version=OLD)
    pings = [message("ping", number=number) for number in range(20)]
    assert len(events(post(server, batch(*pings[:3]), fields, key=key))) == 3
    answer = post(server, batch(*pings), fields, key=key)
    assert (answer.status, answer.json()["code"]) == (429, "rate_limited")


def test_a_session_is_that_of_its_key(server: PolymuxServer, other_key: str) -> None:
    key = other_key
    fields = session_of(server)
    listing = message("tools/list")
    assert len(events(post(server, listing, fields))[0]["result"]["tools"]) == 14
    for name in (key, server.key):
        unknown = [("Mcp-Session-Id", "0" * 32), fields[1]]
        assert post(server, listing, unknown, key=name).status == 404
    assert post(server, listing, fields, key=key).status == 404
    assert server.ask("DELETE", PATH, b"", fields, key=key).status == 404
    assert post(server, listing, fields).status == 200
    assert server.ask("DELETE", PATH, b"", fields).status == 200
    assert post(server, listing, fields).status == 404


@contextmanager
def of_few_sessions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, backend: Scripted, most: int
) -> Iterator[PolymuxServer]:
    """A server with few sessions, two of which one key may have."""
    few = partial(OpenSessions, max_sessions=most, max_per_caller=2)
    monkeypatch.setattr("polymux.server.compat.mcp.OpenSessions", few)
    with PolymuxServer(folder / "s", lambda: [backend]) as server:
        yield server


def test_a_key_has_its_share_of_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new session ends the key's longest idle one, not those with calls or of other keys."""
    backend = Scripted(max_concurrency=4)
    with of_few_sessions(tmp_path, monkeypatch, backend, 4) as server:
        check_the_share_of_a_key(server, backend)


def check_the_share_of_a_key(server: PolymuxServer, backend: Scripted) -> None:
    key, _ = server.keys.add("other")
    others = session_of(server, key)
    first, second = session_of(server), session_of(server)
    listing = message("tools/list")
    assert post(server, listing, first).status == 200
    third = session_of(server)
    assert [post(server, listing, one).status for one in (first, second, third)] == [200, 404, 200]
    assert post(server, listing, others, key=key).status == 200
    server.loop.call_soon_threadsafe(backend.gate.clear)
    given = {"name": "convert_to_mp3", "arguments": {"file": "QUJD"}}
    call = message("tools/call", given, number=7)
    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(post, server, call, one) for one in (first, third)]
        try:
            until(lambda: len(backend.began) == 2)
            answer = post(server, handshake())
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            assert post(server, listing, first).status == 200
            session_of(server, key)
        finally:
            server.loop.call_soon_threadsafe(backend.gate.set)
        assert [one.result().status for one in running] == [200, 200]
    assert server.ask("DELETE", PATH, b"", first).status == 200
    session_of(server)
    assert post(server, listing, third).status == 200


def test_what_a_session_may_is_asked_of_each_request(server: PolymuxServer) -> None:
    key, _ = server.keys.add("short")
    fields = session_of(server, key)
    assert post(server, message("tools/list"), fields, key=key).status == 200
    server.keys.remove("short")
    assert post(server, message("tools/list"), fields, key=key).status == 401


def answer_of_mcp(folder: Path, **settings: Any) -> Answer:
    with PolymuxServer(folder / "s", lambda: [Scripted()], **settings) as server:
        server.url = f"http://127.0.0.1:{server.state.settings.port}"
        host = [("Host", "tools.example")] if "public_url" in settings else []
        return post(server, handshake(), host)


def test_where_mcp_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a public URL, /mcp must be enabled in the settings. The log reports a missing SDK."""
    public = {"public_url": "https://tools.example"}
    wanted = {"compat": CompatSettings(mcp=True)}
    assert answer_of_mcp(tmp_path / "1", compat=CompatSettings(mcp=False)).status == 404
    assert answer_of_mcp(tmp_path / "2", **public).status == 404
    assert answer_of_mcp(tmp_path / "3", **public, **wanted).status == 200
    monkeypatch.setattr("polymux.server.compat.mcp.is_installed", lambda: False)
    assert answer_of_mcp(tmp_path / "4").status == 404
    assert mcp.REMEDY not in caplog.text
    assert answer_of_mcp(tmp_path / "5", **wanted).status == 404
    assert mcp.REMEDY in caplog.text
