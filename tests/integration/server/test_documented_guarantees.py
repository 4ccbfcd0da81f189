"""Silent streams, concurrency limits of keys, log lines, and files of unknown types."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest
from polymux.runtime.settings import Limits
from polymux.server.routes.sse import KEEP_ALIVE
from polymux.service.errors import engine_failed
from polymux.service.model import OperationResult, OutputFile
from support.polymux_server import (
    CHAT,
    HELLO,
    Box,
    PolymuxServer,
    form,
    parsed,
    read_all,
    read_answer,
    read_until,
)
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from polymux.service.model import OperationRequest, ProgressSink
    from support.polymux_server import Answer

SILENT_S = 0.2
STREAMED = {**HELLO, "stream": True}
FILES = "/replicate/v1/files"


def sent(server: PolymuxServer, path: str, value: Any = None, key: str = "") -> socket.socket:
    """A connection that has sent a request and read nothing."""
    connection = server.connect()
    if value is None:
        connection.sendall(server.written("GET", path, key=key))
    else:
        connection.sendall(server.written_json(path, value, key=key))
    return connection


def read_comments(connection: socket.socket, count: int) -> bytes:
    """Read until `count` comments have arrived."""
    data = b""
    while data.count(KEEP_ALIVE) < count:
        data += read_until(connection, KEEP_ALIVE)
    return data


@pytest.mark.parametrize("chunks", [[], [{"choices": []}]])
def test_a_silent_chat_gets_keep_alive_comments(
    tmp_path: Path, chunks: list[dict[str, Any]]
) -> None:
    """Comments arrive before and after the first chunk, not earlier than configured."""
    assert Limits().streams_keep_alive_s == 15
    box = Box()
    limits = Limits(streams_keep_alive_s=SILENT_S)
    make = box.makes(hold=True, chunks=chunks)
    with PolymuxServer(tmp_path / "s", make, limits=limits) as server:
        began = time.monotonic()
        with sent(server, CHAT, STREAMED) as connection:
            data = read_comments(connection, 3)
            assert time.monotonic() - began >= 3 * SILENT_S * 0.99
            server.loop.call_soon_threadsafe(box.backend.gate.set)
            answer = parsed(data + read_all(connection))
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    # Every comment stands alone between events, so event parsers ignore it.
    found = [one for one in answer.body.decode().split("\n\n") if one]
    events = [one.removeprefix("data: ") for one in found if one != ": keep-alive"]
    assert [json.loads(one) for one in events[:-1]] == chunks
    assert events[-1] == "[DONE]"


def test_a_key_has_so_many_requests_at_once(server: PolymuxServer, box: Box) -> None:
    """One more request is rejected before any work. A slot is free when a response ends."""
    limited, _ = server.keys.add("limited", concurrent=2)
    box.backend.gate.clear()
    # One streaming request and one that waits for its result.
    box.backend.chunks = [{"choices": []}]
    with (
        sent(server, CHAT, STREAMED, limited) as first,
        sent(server, CHAT, HELLO, limited) as second,
    ):
        until(lambda: len(box.backend.began) == 2)
        refused = server.json(CHAT, HELLO, key=limited)
        assert (refused.status, refused.json()["code"]) == (429, "rate_limited")
        assert int(refused.headers["retry-after"]) >= 1
        assert "2 " in refused.json()["error"]
        # The limit applies to every path and remains after rotation. Other keys have their own
        # limits.
        assert server.ask("GET", "/api/v1/predictions", key=limited).status == 429
        limited, _ = server.keys.rotate("limited")
        assert server.ask("GET", "/api/v1/predictions", key=limited).status == 429
        assert server.ask("GET", "/api/v1/predictions").status == 200
        assert len(box.backend.began) == 2
        server.loop.call_soon_threadsafe(box.backend.gate.set)
        assert b"[DONE]" in read_answer(first).body
        assert read_answer(second).status == 200
    assert server.json(CHAT, HELLO, key=limited).status == 200
    server.keys.remove("limited")


@pytest.mark.parametrize("end", ["leaves", "fails"])
def test_a_place_of_a_key_is_given_back_however_it_ends(
    server: PolymuxServer, box: Box, end: str
) -> None:
    limited, _ = server.keys.add("one", concurrent=1)
    box.backend.gate.clear()
    with sent(server, CHAT, HELLO, limited) as first:
        until(lambda: box.backend.began)
        assert server.ask("GET", "/api/v1/predictions", key=limited).status == 429
        if end == "fails":
            box.backend.failure = engine_failed("broke")
            server.loop.call_soon_threadsafe(box.backend.gate.set)
            assert read_answer(first).status == 500
    until(lambda: server.ask("GET", "/api/v1/predictions", key=limited).status == 200)


def test_what_fails_unexpectedly_is_found_in_the_log(
    server: PolymuxServer, box: Box, caplog: pytest.LogCaptureFixture
) -> None:
    """The response has only the request ID. The log has the details under this ID."""
    server.expect_defects()
    box.backend.failure = RuntimeError("canary of our own")
    with caplog.at_level(logging.INFO):
        whole = server.json(CHAT, HELLO)
        box.backend.chunks = [{"choices": []}]
        cut = server.json(CHAT, STREAMED)
    assert (whole.status, whole.json()["code"]) == (500, "internal")
    assert b"canary" not in whole.body + cut.body
    assert whole.json()["request_id"] == whole.headers["x-request-id"]
    for answer in (whole, cut):
        name = answer.headers["x-request-id"]
        (record,) = (one for one in caplog.records if one.exc_info and name in one.getMessage())
        assert record.exc_info is not None
        assert str(record.exc_info[1]) == "canary of our own"


class Making(Scripted):
    """Creates a file of any type."""

    content_type = "audio/mpeg"
    file_name = "a.mp3"

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        draft = sink.draft(len(self.data))
        draft.path.write_bytes(self.data)
        return OperationResult({"response": OutputFile(draft, self.content_type, self.file_name)})


def is_saved_and_never_run(answer: Answer, content_type: str) -> bool:
    policy = answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in policy
    assert "default-src 'none'" in policy
    assert answer.headers["content-type"] == content_type
    return answer.headers["content-disposition"].startswith("attachment;")


def test_files_that_nobody_knows_are_saved(tmp_path: Path) -> None:
    """Sent as an attachment for a full GET, a range and HEAD (S08)."""
    backend = Making()
    backend.data = b"<script>alert(1)</script>"
    with PolymuxServer(tmp_path / "s", lambda: [backend]) as server:
        for content_type, file_name, is_saved in (
            ("application/x-of-nobody", "a.xyz", True),
            ("text/html", "a.html", True),
            ("image/svg+xml", "a.svg", True),
            ("image/png", "a.png", False),
            ("audio/mpeg", "a.mp3", False),
        ):
            backend.content_type, backend.file_name = content_type, file_name
            path = server.link()
            for method, fields in (("GET", []), ("GET", [("Range", "bytes=0-6")]), ("HEAD", [])):
                answer = server.ask(method, path, headers=fields, key=None)
                assert answer.status == (206 if fields else 200)
                assert is_saved_and_never_run(answer, content_type) is is_saved
                assert f'filename="{file_name}"' in answer.headers["content-disposition"]


@pytest.mark.parametrize(
    ("declared", "kept"),
    [("text/html", "text/html"), ("no type at all", "application/octet-stream")],
)
def test_files_that_were_sent_are_saved(server: PolymuxServer, declared: str, kept: str) -> None:
    """An uploaded HTML page is sent as an attachment and not shown."""
    page = b"<script>alert(1)</script>"
    body, headers = form(("content", ("a.html", page, declared)))
    upload = server.ask("POST", FILES, body, headers)
    assert upload.status == 201, upload.body
    path = upload.json()["urls"]["download"].removeprefix(server.url)
    answer = server.ask("GET", path)
    assert answer.body == page
    assert is_saved_and_never_run(answer, kept)


def test_a_file_of_no_bytes_is_an_answer(tmp_path: Path) -> None:
    """The response is complete, so the next request on the connection works."""
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()]) as server:
        body, headers = form(("content", ("empty.txt", b"")))
        made = server.ask("POST", FILES, body, headers).json()
        path = made["urls"]["download"].removeprefix(server.url)
        with server.connect() as connection:
            connection.settimeout(10)
            connection.sendall(server.written("GET", path, close=False))
            first = read_until(connection, b"\r\n\r\n")
            assert first.startswith(b"HTTP/1.1 200")
            assert b"content-length: 0" in first.lower()
            connection.sendall(server.written("GET", path))
            assert read_answer(connection).status == 200
