"""Connections, uploads and streams: deadlines, disconnects, shutdown. Case IDs: testing.md."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from polymux.runtime.settings import Limits
from support.polymux_server import (
    CHAT,
    CONVERT,
    HELLO,
    Box,
    PolymuxServer,
    form,
    parsed,
    read_answer,
    read_until,
)
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

QUICK = Limits(header_s=0.6, keep_alive_s=1, body_first_s=0.6, body_bytes_per_s=1e6)


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_header_that_does_not_come(tmp_path: Path, sent: bytes) -> None:
    """The server closes the connection by the deadline or sends an error (H09 and H11)."""
    with (
        PolymuxServer(tmp_path / "s", lambda: [Scripted()], limits=QUICK) as server,
        server.connect() as connection,
    ):
        began = time.monotonic()
        connection.sendall(sent)
        answer = read_answer(connection)
        assert time.monotonic() - began > 0.4
        assert answer.status == (408 if sent else 0)


def test_a_body_in_drips(tmp_path: Path) -> None:
    """Returns 408 and starts no work (H10)."""
    box = Box()
    with PolymuxServer(tmp_path / "s", box.makes(), limits=QUICK) as server:
        head = server.written_json(CHAT, b"", [("Content-Length", "100")])
        with server.connect() as connection:
            connection.sendall(head)
            began = time.monotonic()
            connection.settimeout(0.05)
            data = b""
            while time.monotonic() - began < 30:
                try:
                    connection.sendall(b" ")
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    data += piece
                except TimeoutError:
                    continue
                except OSError:
                    break
        assert parsed(data).status == 408
        assert box.backend.began == []


def test_a_client_that_leaves_ends_its_work(tmp_path: Path) -> None:
    """Queued, running and streaming requests end and free their slot (C32 to C34)."""
    box = Box()
    with PolymuxServer(tmp_path / "s", box.makes(hold=True, max_concurrency=1)) as server:
        asked = server.written_json(CHAT, HELLO)
        at_work, queued = server.connect(), server.connect()
        at_work.sendall(asked)
        until(lambda: box.backend.began)
        place = server.state.service.places["scripted"]
        queued.sendall(asked)
        until(lambda: place.waiting == 1)
        queued.close()
        until(lambda: place.waiting == 0)
        at_work.close()
        until(lambda: place.running == 0)
        assert box.backend.ended == ["cancelled"]
        box.backend.chunks = [{"choices": []}]
        with server.connect() as stream:
            stream.sendall(server.written_json(CHAT, {**HELLO, "stream": True}))
            read_until(stream, b"data: ")
        until(lambda: place.running == 0)
        assert box.backend.ended == ["cancelled", "closed"]


def test_a_full_queue(tmp_path: Path) -> None:
    box = Box()
    limits = Limits(queue=0)
    make = box.makes(hold=True, max_concurrency=1)
    with (
        PolymuxServer(tmp_path / "s", make, limits=limits) as server,
        server.connect() as first,
    ):
        first.sendall(server.written_json(CHAT, HELLO))
        until(lambda: box.backend.began)
        answer = server.json(CHAT, HELLO)
        assert (answer.status, answer.json()["code"]) == (503, "overloaded")
        assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize("sent", [0.3, 0.9])
def test_an_upload_that_breaks_off_leaves_nothing(tmp_path: Path, sent: float) -> None:
    """Case M06."""
    box = Box()
    with PolymuxServer(tmp_path / "s", box.makes()) as server:
        body, headers = form(("file", ("a.wav", b"x" * 3_000_000)))
        asked = server.written("POST", CONVERT, body, headers)
        with server.connect() as connection:
            connection.sendall(asked[: int(len(asked) * sent)])
            drafts = tmp_path / "s" / "drafts"
            until(lambda: any(drafts.iterdir()))
        until(lambda: not any(drafts.iterdir()))
        assert box.backend.began == []
        until(lambda: server.state.service.store.media.used_bytes == 0)


def test_uploads_have_their_caps(tmp_path: Path) -> None:
    """Exactly the limit, one byte more, and in chunks without a length (M24 and M25)."""
    limits = Limits(upload_bytes=100_000)
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()], limits=limits) as server:
        empty, headers = form(("file", ("a.wav", b"")))
        for size, status in ((100_000, 200), (100_001, 413)):
            body, _ = form(("file", ("a.wav", b"x" * (size - len(empty)))))
            assert len(body) == size
            assert server.ask("POST", CONVERT, body, headers).status == status
            chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            chunks = [*headers, ("Transfer-Encoding", "chunked")]
            assert server.ask("POST", CONVERT, chunked, chunks).status == status
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


def test_what_a_reload_keeps(tmp_path: Path) -> None:
    """The used rate limit of a key, and origins from the command line."""
    path = tmp_path / "polymux.toml"
    path.write_text("")
    page = "https://site.example"
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()], allowed_origins=(page,)) as server:
        limited, _ = server.keys.add("limited", requests_per_minute=1.0)
        asked = ("GET", "/api/v1/predictions")
        assert [server.ask(*asked, key=limited).status for _ in range(2)] == [200, 429]
        server.state.watch_file(path)
        before = server.state.settings
        server.loop.call_soon_threadsafe(server.state.reload)
        until(lambda: server.state.settings is not before)
        assert server.ask(*asked, key=limited).status == 429
        assert server.ask(*asked, headers=[("Origin", page)]).status == 200
