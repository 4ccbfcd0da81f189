"""Wrong framing, stalls, disconnects, control characters for logs. Case IDs: testing.md."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.polymux_server import (
    CHAT,
    CONVERT,
    HELLO,
    form,
    parsed,
    read_all,
    reset_at_close,
)
from support.server_process import ServerProcess, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import Asked


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("peers") / "s"
    with ServerProcess(folder, limits={"body_first_s": 1.0}) as running:
        assert running.json(CHAT, HELLO).status == 200  # The engine is ready.
        yield running


def asked(server: Asked, text: str, **more: Any) -> bytes:
    """A chat request. The text controls the engine."""
    value = {**HELLO, "messages": [{"role": "user", "content": text}], **more}
    return server.written_json(CHAT, value, close=False)


CHUNKED = ("Transfer-Encoding", "chunked")


def running(server: Asked) -> float:
    """The number of requests in progress in all engines."""
    text = server.ask("GET", "/metrics").body.decode()
    return sum(
        float(line.split()[1]) for line in text.splitlines() if line.startswith("polymux_running{")
    )


CHUNKS = {
    "no end of line behind the data": b'5\r\n{"a":XX0\r\n\r\n',
    "a size over 64 bits": b"FFFFFFFFFFFFFFFFF\r\nabc",
    "a size below nought": b"-1\r\n",
    "no size": b"\r\n\r\n",
    "a size and a space": b"2 \r\n{}\r\n0\r\n\r\n",
    "bare ends of lines": b"2\n{}\n0\n\n",
    "an extension of 1 MiB": b"1;" + b"x" * (1 << 20) + b"\r\n{\r\n0\r\n\r\n",
    "many extensions": (b"1;" + b"x" * 1000 + b"\r\n \r\n") * 1000 + b"0\r\n\r\n",
    "a trailer of 1 MiB": b"0\r\nX: " + b"y" * (1 << 20) + b"\r\n\r\n",
    "100,000 trailers": b"0\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
}


@pytest.mark.parametrize("name", CHUNKS)
def test_chunks_that_are_none(server: ServerProcess, name: str) -> None:
    """Rejected, and the connection closes. Bytes behind it are no second request (H04)."""
    before = server.memory_bytes()
    second = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = CHUNKS[name] + second
    answer = server.raw(server.written_json(CHAT, body, [CHUNKED], close=False))
    assert answer.status in (400, 431)
    assert "status" not in answer.json()
    assert server.memory_bytes() - before < 8 << 20
    assert server.is_alive()


@pytest.mark.parametrize("size", [b"FFFFFFFFFFFFFFFF", b"40000000"])
def test_chunks_that_never_come(server: ServerProcess, size: bytes) -> None:
    """Received data takes memory, an announced size does not. The deadline applies (H04)."""
    before = server.memory_bytes()
    answer = server.json(CHAT, size + b"\r\n{", [CHUNKED])
    assert answer.status in (400, 408, 413)
    assert server.memory_bytes() - before < 8 << 20


@pytest.mark.parametrize(
    ("text", "stream", "late_s"),
    [("Hi", False, 0), ("sleep 1", False, 0.2), ("letters 3000", True, 0), ("pauses 1", True, 0.2)],
)
def test_a_client_that_sends_no_more(
    server: ServerProcess, text: str, stream: bool, late_s: float
) -> None:
    """It gets the full response, then the connection closes (H19)."""
    with server.connect() as connection:
        connection.sendall(asked(server, text, stream=stream))
        time.sleep(late_s)
        connection.shutdown(socket.SHUT_WR)
        data = read_all(connection)
    answer = parsed(data)
    assert answer.status == 200
    if stream:
        assert data.endswith(b"0\r\n\r\n")
        events = [one for one in answer.body.split(b"\n\n") if one.startswith(b"data: ")]
        assert events[-1] == b"data: [DONE]"
        assert all(json.loads(one[6:])["choices"] for one in events[:-1])
    else:
        assert answer.json()["choices"]


def test_a_client_that_resets_while_it_is_answered(server: ServerProcess) -> None:
    """Causes no error or warning, and the concurrency slot is free (H20)."""
    log_length = len(server.log())
    body, headers = form(("file", ("a.wav", b"x" * 100)))
    for number in range(20):
        with server.connect() as connection:
            if number % 2:
                connection.sendall(asked(server, "flood", stream=True))
                connection.recv(1000)
            else:
                connection.sendall(server.written("POST", CONVERT, body, headers, close=False))
            reset_at_close(connection)
    until(lambda: running(server) == 0)
    until(lambda: server.log()[log_length:].count(f"POST {CHAT} 499 ") == 10)
    until(lambda: server.log()[log_length:].count(f"POST {CONVERT} ") == 10)
    assert [line for line in server.log()[log_length:].splitlines() if " INFO " not in line] == []
    assert server.is_alive()


WORDS = [
    b"GET /%1b%5b2J%0d%0aX-Injected:%201 HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /\x1b[2J HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /%c2%9b31m%e2%80%ae HTTP/1.1\r\nHost: localhost\r\nUser-Agent: \xc2\x9b31m\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: a\xc2\x9b31m\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a\x1b[31m\r\n",
    b"GET /healthz?\x7f HTTP/1.1\r\nHost: localhost\r\nUser-Agent: \xff\xfe\r\n",
    b"G\x1bT /healthz HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /" + b"%0d%0a" * 1000 + b" HTTP/1.1\r\nHost: localhost\r\n",
]


@pytest.mark.parametrize("number", range(len(WORDS)))
def test_what_a_terminal_would_obey(server: ServerProcess, number: int) -> None:
    """The log escapes control characters, one line per request. Bad IDs are ignored (H22)."""
    log_length = len(server.log())
    answer = server.raw(WORDS[number] + b"Connection: close\r\n\r\n")
    assert answer.status in (200, 400, 404)
    assert all(value.isascii() and value.isprintable() for value in answer.headers.values())
    request_id = answer.headers["x-request-id"]
    if answer.status != 400:  # The log has no requests that are not HTTP.
        until(lambda: request_id in server.log())
    lines = server.log()[log_length:].splitlines()
    assert all(line.isprintable() and len(line) < 700 for line in lines)
    assert sum(request_id in line for line in lines) <= 1
    assert not any(line.startswith("X-Injected") for line in lines)


def test_what_programs_and_forms_call_themselves(server: ServerProcess) -> None:
    """File names in errors and job logs are escaped, too (H22)."""
    name = "\u202e\x1b[2J\x9b31m.wav"
    body, headers = form(("file", (name, b"no sound")), ("other\x1b[2J", "x"))
    answer = server.ask("POST", CONVERT, body, headers)
    assert answer.status in (400, 415, 422)
    assert answer.json()["error"].isprintable()
    assert server.log().replace("\n", "").isprintable()
