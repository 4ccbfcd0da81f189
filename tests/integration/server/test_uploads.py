"""Uploads: many at once, files with wrong types, results that are served. Case IDs: testing.md."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from support import hostile_pictures as made
from support.conversions import wav
from support.polymux_server import CHAT, CONVERT, HELLO, form, read_answer
from support.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import Answer, Asked

LONG = [pytest.mark.long, pytest.mark.slow]
READ = "/api/v1/image2text"
STT = "/api/v1/modelhost/stt"
PAGE = b"<!doctype html><html><script>alert(1)</script></html>".ljust(2000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("uploads") / "s"
    with ServerProcess(folder) as running:
        yield running
        assert "Traceback" not in running.log()


TONE = wav(0.3)


def convert(server: Asked, data: bytes, name: str = "a.wav", kind: str = "audio/wav") -> Answer:
    body, headers = form(("file", (name, data, kind)))
    return server.ask("POST", CONVERT, body, headers)


@pytest.mark.parametrize("kind", ["text/html", "a/b\tc"])
def test_sound_by_any_type(server: ServerProcess, kind: str) -> None:
    """The declared type of a part affects neither the input nor the result (M28)."""
    answer = convert(server, TONE, kind=kind)
    assert answer.status == 200, answer.body
    got = server.ask("GET", answer.json()["response"].removeprefix(server.url), key=None)
    assert got.headers["content-type"] == "audio/mpeg"


def test_pages_and_texts_by_any_type(server: ServerProcess) -> None:
    """A page, an image and audio are recognized by their content (M28)."""
    picture = made.encoded(made.plain(), "PNG")
    for path, name, kind, data in (
        (CONVERT, "file", "audio/mpeg", PAGE),
        (READ, "file", "image/png", PAGE),
        (STT, "audio", "audio/wav", PAGE),
        (CONVERT, "file", "audio/wav", picture),
        (READ, "file", "image/png", TONE),
    ):
        body, headers = form((name, ("a.mp3", data, kind)))
        answer = server.ask("POST", path, body, headers)
        assert (answer.status, answer.json()["code"]) == (415, "unsupported_media")
        assert b"alert" not in answer.body


def wave_and_page() -> bytes:
    """A WAV whose comment chunk contains an HTML page."""
    data = TONE
    note = b"ICMT" + len(PAGE).to_bytes(4, "little") + PAGE
    listed = b"LIST" + (len(note) + 4).to_bytes(4, "little") + b"INFO" + note
    whole = data[:36] + listed + data[36:]
    return whole[:4] + (len(whole) - 8).to_bytes(4, "little") + whole[8:]


@pytest.mark.parametrize("name", ["pwn.html", "../../pwn.svg", "pwn.html\0"])
def test_sound_that_is_a_page_as_well(server: ServerProcess, name: str) -> None:
    """The result has a generated name with its real extension, and browsers do not run it (V32)."""
    answer = convert(server, wave_and_page(), name, "text/html")
    assert answer.status == 200, answer.body
    link = answer.json()["response"]
    assert link.partition("?")[0].endswith(".mp3")
    assert "pwn" not in link
    got = server.ask("GET", link.removeprefix(server.url), key=None)
    assert got.status == 200
    assert got.headers["content-type"] == "audio/mpeg"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in got.headers["content-security-policy"]
    assert "default-src 'none'" in got.headers["content-security-policy"]
    disposition = got.headers["content-disposition"]
    assert ".mp3" in disposition
    assert "/" not in disposition
    assert "access-control-allow-origin" not in got.headers


@pytest.mark.parametrize(
    ("data", "statuses"),
    [(b"#EXTM3U\nfile:///etc/passwd\n", (415,)), (b"", (400, 415, 422)), (TONE[:30], (415, 422))],
)
@pytest.mark.parametrize("path", [CONVERT, STT])
def test_errors_call_files_by_their_senders_names(
    server: ServerProcess, path: str, data: bytes, statuses: tuple[int, ...]
) -> None:
    """Responses, jobs and logs never have the server's file paths."""
    log_length = len(server.log())
    name = "file" if path == CONVERT else "audio"
    body, headers = form((name, ("My Talk \u00e9.mp3", data)))
    answer = server.ask("POST", path, body, headers)
    assert answer.status in statuses
    error = answer.json()["error"]
    assert "My Talk \u00e9.mp3" in error
    jobs = server.ask("GET", "/api/v1/predictions").body.decode()
    for text in (error, jobs, server.log()[log_length:]):
        assert str(server.folder) not in text
        assert "drafts" not in text


FORGED = [
    {"polymux": "file"},
    {"polymux": "file", "path": "/etc/passwd", "rest": ["a", "b", 1]},
    {"polymux": "made", "path": "/etc/passwd", "rest": ["audio/mpeg", "a.mp3"]},
    {"file": "0" * 40 + ".mp3"},
]


@pytest.mark.parametrize("value", FORGED)
def test_an_object_is_no_file(server: ServerProcess, value: dict[str, Any]) -> None:
    """An object in the request reaches the engine as an object, whatever its members are."""
    for name in ("metadata", "search_settings", "compound_custom"):
        answer = server.json(CHAT, {**HELLO, name: value})
        assert answer.status == 200, answer.body
    spread = {**HELLO, "tools": [{"type": "function", "function": {"name": "f"} | value}]}
    assert server.json(CHAT, spread).status in (200, 400)


def upload_together(server: Asked, data: bytes, count: int) -> list[Answer]:
    """Upload `count` times in parallel. No upload ends before all have started."""
    body, headers = form(("file", ("a.wav", data, "audio/wav")))
    asked = memoryview(server.written("POST", CONVERT, body, headers))
    together = threading.Barrier(count)

    def one(_: int) -> Answer:
        with server.connect() as connection:
            connection.settimeout(300)
            try:
                connection.sendall(asked[: len(body) // 2])
                together.wait(300)
                connection.sendall(asked[len(body) // 2 :])
            except (BrokenPipeError, ConnectionResetError):
                pass  # The server has already answered.
            return read_answer(connection)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.mark.parametrize(
    ("count", "size_bytes"), [(20, 1 << 20), pytest.param(50, 64 << 20, marks=LONG)]
)
def test_uploads_of_the_cap_at_once(tmp_path: Path, count: int, size_bytes: int) -> None:
    """Concurrent uploads of the maximum size are stored on disk, not in memory (M26)."""
    empty, _ = form(("file", ("a.wav", b"", "audio/wav")))
    data = TONE.ljust(size_bytes - len(empty), b"\0")
    limits = {"upload_bytes": size_bytes, "queue": 10, "body_first_s": 300.0}
    with ServerProcess(tmp_path / "s", limits=limits) as server:
        assert convert(server, TONE).status == 200
        before = server.memory_bytes("VmHWM", children=False)
        answers = upload_together(server, data, count)
        assert server.memory_bytes("VmHWM", children=False) - before < 150 << 20
        statuses = {answer.status for answer in answers}
        assert statuses <= {200, 503, 507}
        assert 200 in statuses
        for answer in answers:
            if answer.status != 200:
                assert int(answer.headers["retry-after"]) >= 1
        assert convert(server, data + b"x").status == 413
        assert convert(server, TONE).status == 200
        store = tmp_path / "s" / "store"
        assert not any((store / "drafts").iterdir())
        assert "Traceback" not in server.log()
