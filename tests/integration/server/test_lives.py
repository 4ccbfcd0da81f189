"""Connections, uploads, streams and the process over time: deadlines, leaving, stopping."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polymux
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
    read_all,
    read_answer,
    read_until,
)
from support.served import until
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

QUICK = Limits(header_s=0.6, keep_alive_s=1, body_first_s=0.6, body_bytes_per_s=1e6)


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_header_that_does_not_come(tmp_path: Path, sent: bytes) -> None:
    """H09, H11: closed by the deadline, or told."""
    with (
        PolymuxServer(tmp_path / "s", lambda: [Scripted()], limits=QUICK) as server,
        server.connect() as connection,
    ):
        began = time.monotonic()
        connection.sendall(sent)
        answer = read_answer(connection)
        assert 0.4 < time.monotonic() - began < 1.6
        assert answer.status == (408 if sent else 0)


def test_a_body_in_drips(tmp_path: Path) -> None:
    """H10: 408, and no work was begun."""
    box = Box()
    with PolymuxServer(tmp_path / "s", box.makes(), limits=QUICK) as server:
        head = server.written_json(CHAT, b"", [("Content-Length", "100")])
        with server.connect() as connection:
            connection.sendall(head)
            began = time.monotonic()
            connection.settimeout(0.05)
            data = b""
            while time.monotonic() - began < 3:
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
            assert time.monotonic() - began < 2.9
        assert parsed(data).status == 408
        assert box.backend.began == []


def test_a_client_that_leaves_ends_its_work(tmp_path: Path) -> None:
    """C32 to C34: queued, at work, in a stream; the place is free at once."""
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
        assert until(lambda: place.waiting == 0) < 0.5
        at_work.close()
        assert until(lambda: place.running == 0) < 0.5
        assert box.backend.ended == ["cancelled"]
        box.backend.chunks = [{"choices": []}]
        with server.connect() as stream:
            stream.sendall(server.written_json(CHAT, {**HELLO, "stream": True}))
            read_until(stream, b"data: ")
        assert until(lambda: place.running == 0) < 0.5
        assert box.backend.ended == ["cancelled", "closed"]


def test_a_deleted_job_is_not_done_again_under_its_key(tmp_path: Path) -> None:
    """G.3.7: the key is kept for its day, also over a restart."""
    box = Box()
    keyed = ("Idempotency-Key", "k1")
    for start in range(2):
        with PolymuxServer(tmp_path / "s", box.makes()) as server:
            if not start:
                key = server.key
                assert server.convert(keyed).status == 200
                (job,) = server.ask("GET", "/api/v1/predictions").json()["results"]
                assert server.ask("DELETE", f"/api/v1/predictions/{job['id']}").status == 204
            answer = server.convert(keyed, key=key)
            assert (answer.status, answer.json()["code"]) == (404, "gone")
            assert answer.json()["param"] == "Idempotency-Key"
            answer = server.convert(keyed, data=b"y", key=key)
            assert (answer.status, answer.json()["code"]) == (409, "conflict")
            assert len(box.backend.began) == 1 - start


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
    """M06."""
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
    """M24, M25: exactly the cap; one more; in chunks without a length."""
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


def test_a_store_that_is_full(tmp_path: Path) -> None:
    """507 for an upload that has no room, and room again afterwards."""
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()]) as server:
        server.state.service.store.media._cap_bytes = 1_000_000
        answer = server.convert(data=b"x" * 2_000_000)
        assert (answer.status, answer.json()["code"]) == (507, "storage_full")
        assert server.state.service.store.media.used_bytes == 0
        assert server.convert().status == 200


def test_stopping_with_open_streams(tmp_path: Path) -> None:
    """P01: each stream is ended by an event."""
    box = Box()
    with PolymuxServer(
        tmp_path / "s",
        box.makes(hold=True, chunks=[{"choices": []}], max_concurrency=20),
        shutdown_timeout_s=2.0,
    ) as server:
        streams = [server.connect() for _ in range(10)]
        for one in streams:
            one.sendall(server.written_json(CHAT, {**HELLO, "stream": True}))
        for one in streams:
            read_until(one, b"data: ")
        began = time.monotonic()
        server.stop()
        for one in streams:
            assert b'"code":"draining"' in read_all(one)
            one.close()
        server._thread.join(10)
        assert time.monotonic() - began < 3


def test_a_reload_changes_who_may_ask_and_not_where(tmp_path: Path) -> None:
    path = tmp_path / "polymux.toml"
    path.write_text("")
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()]) as server:
        server.state.watch_file(path)
        path.write_text("[limits]\nchat_bytes = 10\n")
        server.loop.call_soon_threadsafe(server.state.reload)
        until(lambda: server.state.settings.limits.chat_bytes == 10)
        assert server.state.settings.base_url == server.url
        assert server.json(CHAT, HELLO).status == 413
        path.write_text("nonsense = 1\n")
        with pytest.raises(polymux.InvalidRequestError, match="nonsense"):
            server.state.reload()
        assert server.json(CHAT, HELLO).status == 413


def test_what_a_reload_keeps(tmp_path: Path) -> None:
    """How much a key has had, and origins that were given by the command."""
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
