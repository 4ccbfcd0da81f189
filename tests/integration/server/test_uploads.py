"""Uploads: many at once, files that are not what they are called, results that are served."""

from __future__ import annotations

import io
import json
import subprocess
import threading
import wave
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from support import hostile_pictures as made
from support.polymux_server import CHAT, CONVERT, HELLO, form, read_answer
from support.served import ServedProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import Answer, Asked

LONG = [pytest.mark.long, pytest.mark.slow]
READ = "/api/v1/image2text"
STT = "/api/v1/modelhost/stt"
PAGE = b"<!doctype html><html><script>alert(1)</script></html>".ljust(2000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    folder = tmp_path_factory.mktemp("uploads") / "s"
    with ServedProcess(folder) as running:
        yield running
        assert "Traceback" not in running.log()


def tone(seconds: float = 0.3, rate: int = 44_100) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((2, 2, rate, 0, "NONE", ""))
        file.writeframes(bytes(range(256)) * int(seconds * rate * 4 / 256))
    return buffer.getvalue()


def convert(server: Asked, data: bytes, name: str = "a.wav", kind: str = "audio/wav") -> Answer:
    body, headers = form(("file", (name, data, kind)))
    return server.ask("POST", CONVERT, body, headers)


@pytest.mark.parametrize("kind", ["text/html", "image/png", "application/x-php", "", "x", "a/b\tc"])
def test_sound_by_any_type(server: ServedProcess, kind: str) -> None:
    """M28: what a part says that it is decides nothing, neither of the input nor of the result."""
    answer = convert(server, tone(), kind=kind)
    assert answer.status == 200, answer.body
    got = server.ask("GET", answer.json()["response"].removeprefix(server.url), key=None)
    assert got.headers["content-type"] == "audio/mpeg"


@pytest.mark.parametrize("kind", ["audio/mpeg", "audio/wav", "video/mp4", "image/png"])
def test_pages_and_texts_by_any_type(server: ServedProcess, kind: str) -> None:
    """M28."""
    for path, name in ((CONVERT, "file"), (READ, "file"), (STT, "audio")):
        body, headers = form((name, ("a.mp3", PAGE, kind)))
        answer = server.ask("POST", path, body, headers)
        assert (answer.status, answer.json()["code"]) == (415, "unsupported_media")
        assert b"alert" not in answer.body


def wave_and_page() -> bytes:
    """A WAV whose text for programs is a page."""
    data = tone()
    note = b"ICMT" + len(PAGE).to_bytes(4, "little") + PAGE
    listed = b"LIST" + (len(note) + 4).to_bytes(4, "little") + b"INFO" + note
    whole = data[:36] + listed + data[36:]
    return whole[:4] + (len(whole) - 8).to_bytes(4, "little") + whole[8:]


def mp4_and_zip(folder: Path) -> bytes:
    """An MP4 behind which a ZIP stands, which programs read from its end."""
    (folder / "a.wav").write_bytes(tone())
    command = ["ffmpeg", "-v", "error", "-y", "-i", "a.wav", "-c:a", "aac", "a.mp4"]
    subprocess.run(command, cwd=folder, check=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("index.html", PAGE)
    return (folder / "a.mp4").read_bytes() + buffer.getvalue()


@pytest.mark.parametrize("name", ["pwn.html", "pwn.svg", "pwn.php", "../../pwn.html", "pwn.html\0"])
def test_sound_that_is_a_page_as_well(server: ServedProcess, tmp_path: Path, name: str) -> None:
    """V32: served as what was made, under a name and an extension of ours, and never run."""
    for data in (wave_and_page(), mp4_and_zip(tmp_path)):
        answer = convert(server, data, name, "text/html")
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
    [(b"#EXTM3U\nfile:///etc/passwd\n", (415,)), (b"", (400, 415, 422)), (tone()[:30], (415, 422)),
     (b"ID3\x04", (415, 422)), (bytes(100_000), (415, 422))],
)  # fmt: skip
@pytest.mark.parametrize("path", [CONVERT, STT])
def test_errors_call_files_by_their_senders_names(
    server: ServedProcess, path: str, data: bytes, statuses: tuple[int, ...]
) -> None:
    """Where a file lies on the server is nobody's business, in answers, jobs and logs."""
    told = len(server.log())
    name = "file" if path == CONVERT else "audio"
    body, headers = form((name, ("My Talk \u00e9.mp3", data)))
    answer = server.ask("POST", path, body, headers)
    assert answer.status in statuses
    error = answer.json()["error"]
    assert "My Talk \u00e9.mp3" in error
    jobs = server.ask("GET", "/api/v1/predictions").body.decode()
    for text in (error, jobs, server.log()[told:]):
        assert str(server.folder) not in text
        assert "drafts" not in text


FORGED = [
    {"polymux": "file"},
    {"polymux": "file", "path": "/etc/passwd", "rest": ["a", "b", 1]},
    {"polymux": "made", "path": "/etc/passwd", "rest": ["audio/mpeg", "a.mp3"]},
    {"file": "0" * 40 + ".mp3"},
]


@pytest.mark.parametrize("value", FORGED)
def test_an_object_is_no_file(server: ServedProcess, value: dict[str, Any]) -> None:
    """What a caller gives as an object reaches the engine as one, whatever its members are."""
    for name in ("metadata", "search_settings", "compound_custom"):
        answer = server.json(CHAT, {**HELLO, name: value})
        assert answer.status == 200, answer.body
    spread = {**HELLO, "tools": [{"type": "function", "function": {"name": "f"} | value}]}
    assert server.json(CHAT, spread).status in (200, 400)


def upload_together(server: Asked, data: bytes, count: int) -> list[Answer]:
    """So many uploads, none of which ends before all have begun."""
    body, headers = form(("file", ("a.wav", data, "audio/wav")))
    host = f"{server.address[0]}:{server.address[1]}"
    lines = [f"POST {CONVERT} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {server.key}",
             f"{headers[0][0]}: {headers[0][1]}", f"Content-Length: {len(body)}",
             "Connection: close", "", ""]  # fmt: skip
    head, view = "\r\n".join(lines).encode(), memoryview(body)
    together = threading.Barrier(count)

    def one(_: int) -> Answer:
        with server.connect() as connection:
            connection.settimeout(300)
            try:
                connection.sendall(head)
                connection.sendall(view[: len(body) // 2])
                together.wait(300)
                connection.sendall(view[len(body) // 2 :])
            except (BrokenPipeError, ConnectionResetError):
                pass  # Answered already.
            return read_answer(connection)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.mark.parametrize(
    ("count", "size_bytes"), [(50, 1 << 20), pytest.param(50, 64 << 20, marks=LONG)]
)
def test_uploads_of_the_cap_at_once(tmp_path: Path, count: int, size_bytes: int) -> None:
    """M26: 50 at once, each of the largest size that is taken; files are on disk, not in memory."""
    data = tone()
    empty, _ = form(("file", ("a.wav", b"", "audio/wav")))
    data = data.ljust(size_bytes - len(empty), b"\0")
    limits = {"upload_bytes": size_bytes, "queue": 20, "body_first_s": 300.0}
    with ServedProcess(tmp_path / "s", limits=limits) as server:
        assert convert(server, tone()).status == 200
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
        assert convert(server, tone()).status == 200
        store = tmp_path / "s" / "store"
        assert not any((store / "drafts").iterdir())
        assert "Traceback" not in server.log()


def test_a_picture_is_no_sound_and_a_sound_no_picture(server: ServedProcess) -> None:
    """M28: each for what it is."""
    picture = made.encoded(made.plain(), "PNG")
    assert convert(server, picture, "a.wav", "audio/wav").status == 415
    body, headers = form(("file", ("a.png", tone(), "image/png")))
    assert server.ask("POST", READ, body, headers).status == 415
    assert json.loads(server.ask("GET", "/healthz", key=None).body) == {"status": "ok"}
