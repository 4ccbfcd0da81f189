"""Error messages and exit codes of the commands."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pytest
from polymux.cli import answers
from servers import steps
from servers.misbehaving import MisbehavingServer
from servers.reference import ReferenceServer
from support.commands import call, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "sk-secret-0123456789"
ONCE = ("search-music", "x", "--retries", "0")


@pytest.fixture
def server() -> Iterator[ReferenceServer]:
    with ReferenceServer(token=KEY) as server:
        yield server


def one_line(errors: bytes) -> str:
    """Decode standard error and check that it is one line without the API key."""
    text = errors.decode()
    assert re.fullmatch(r"polymux: [^\n]+\n", text), text
    assert KEY not in text
    return text


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 6), (401, 6), (403, 6), (404, 5), (409, 6), (413, 6), (422, 6), (429, 6), (500, 9),
     (501, 9), (502, 9), (503, 9)],
)  # fmt: skip
def test_statuses(server: ReferenceServer, tmp_path: Path, status: int, code: int) -> None:
    server.fail(status, f"no, {KEY}", headers=[("Retry-After", "7")], times=None)
    done = call(*ONCE, cwd=tmp_path, server=server, code=code)
    message = one_line(done.stderr)
    assert re.search(rf"no, \*\*\*.*\b{status}\b.*\b7\b", message)
    assert done.stdout == b""
    assert len(server.requests) == 1


def test_retries(server: ReferenceServer, tmp_path: Path) -> None:
    server.fail(503, headers=[("Retry-After", "0")], times=3)
    call("search-music", "x", "--retries", "3", cwd=tmp_path, server=server)
    assert len(server.requests) == 4


@pytest.mark.parametrize("where", ["chat", "free-chat"])
def test_a_key_that_comes_back_in_a_stream(tmp_path: Path, where: str) -> None:
    event = f'data: {{"error": {{"message": "bad key {KEY}"}}}}\n\n'.encode()
    with MisbehavingServer() as server:
        server.script(steps.event_stream(), steps.send(event), steps.close())
        done = call(where, "x", cwd=tmp_path, server=server, code=9, POLYMUX_API_KEY=KEY)
    assert "bad key ***" in one_line(done.stderr)


def test_no_connection(tmp_path: Path) -> None:
    with MisbehavingServer() as server:
        server.on_connect(steps.reset(), times=None)
        lost = call(*ONCE, cwd=tmp_path, server=server, code=7)
    assert server.url in one_line(lost.stderr)
    gone = call(*ONCE, cwd=tmp_path, server=server, code=7)
    assert server.url in one_line(gone.stderr)


@pytest.mark.parametrize("name", ["search-music", "chat", "generate-image"])
def test_a_deadline(tmp_path: Path, name: str) -> None:
    with MisbehavingServer() as server:
        server.script(steps.stall(), times=None)
        done = call(name, "x", "--timeout", "0.5", cwd=tmp_path, server=server, code=8)
    assert "total" in one_line(done.stderr)


def test_a_job_that_fails(server: ReferenceServer, tmp_path: Path) -> None:
    server.predictions.failure = "out of\nmemory"
    done = call("generate-image", "x", cwd=tmp_path, server=server, code=9)
    assert "out of\\nmemory" in one_line(done.stderr)


def test_an_answer_that_is_none(tmp_path: Path) -> None:
    page = steps.answer(200, b"<html>\x1b[31m", content_type="text/html")
    with MisbehavingServer() as server:
        server.script(page, times=None)
        done = call("search-music", "x", cwd=tmp_path, server=server, code=1)
    assert "\x1b" not in one_line(done.stderr)


def test_no_song_matches(server: ReferenceServer, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    server.fail(404, code="no_match", headers=[])
    one_line(call("identify-song", "a.wav", cwd=tmp_path, server=server, code=5).stderr)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("generate-image", 2, "prompt"),
        ("generate-image x --width 7", 2, "width=7"),
        ("generate-image x --seed many", 2, "'many'"),
        ("generate-image x --output-dir a --no-wait", 2, "--no-wait"),
        ("transcribe missing.wav", 5, "missing.wav"),
        ("transcribe .", 1, "directory"),
        ("transcribe a --json --format srt", 2, "--format"),
        ("transcribe a -o b --no-wait", 2, "--no-wait"),
        ("chat x --extra-body []", 2, "--extra-body"),
        (f"chat x --server http://me:{KEY}@127.0.0.1", 2, "--server"),
        ("chat x --server 127.0.0.1:80", 2, "--server '127.0.0.1:80'"),
        (f"predictions get {'x' * 300}", 2, "xxx"),
        ("predictions list --limit 0", 2, "--limit"),
        ("convert-to-mp3 --url http://127.0.0.1/a", 2, "URL"),
        ("convert-to-mp3 --url ", 2, "url"),
        ("convert-to-mp3 --url http://127.0.0.1/a --abr", 2, "--abr"),
        ("convert-to-mp3 --url http://127.0.0.1/a --retries 1", 2, "--server"),
        ("convert-to-mp3 a.wav --url http://127.0.0.1/a", 2, "--url"),
    ],
)
def test_wrong_command_lines(
    server: ReferenceServer, tmp_path: Path, words: str, code: int, says: str
) -> None:
    done = call(*words.split(" "), cwd=tmp_path, server=server, code=code)
    assert says in one_line(done.stderr)
    assert server.requests == []


@pytest.mark.parametrize(
    "words",
    ["chat --timeout soon", "chat --timeout nan", "chat --timeout -1", "chat --retries -1",
     "chat --retries 101", "predictions", "predictions steal x", "transcribe a --format doc",
     f"chat --api-key {KEY}", "completion csh", "chat --temp 1"],
)  # fmt: skip
def test_usage(tmp_path: Path, words: str) -> None:
    done = call(*words.split(), cwd=tmp_path, code=2)
    assert done.stderr.startswith(b"usage: polymux ")
    assert b": error: " in done.stderr


@pytest.mark.parametrize("words", ["chat x", "stt a", "predictions list"])
def test_no_server(tmp_path: Path, words: str) -> None:
    message = one_line(call(*words.split(), cwd=tmp_path, code=4).stderr)
    assert "--server" in message
    assert f"{tmp_path}/.config/polymux/config.toml" in message


@pytest.mark.parametrize("text", [f'api_key = "{KEY}', f"api_key = {KEY}", "base_url = 1", "\xff"])
def test_a_wrong_configuration(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.toml").write_bytes(text.encode("latin-1"))
    done = call("chat", "x", cwd=tmp_path, code=4, POLYMUX_CONFIG=str(tmp_path / "c.toml"))
    assert "c.toml" in one_line(done.stderr)


def test_a_wrong_key_in_the_environment(server: ReferenceServer, tmp_path: Path) -> None:
    done = call("chat", "x", cwd=tmp_path, server=server, code=4, POLYMUX_API_KEY=f"{KEY} \n")
    assert "api_key" in one_line(done.stderr)


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_traceback_only_when_it_is_asked_for(
    server: ReferenceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, debug: str
) -> None:
    monkeypatch.setattr(answers, "name_in", None)
    done = call(
        "generate-image", "x", "--output-dir", ".", cwd=tmp_path, server=server, code=1,
        may_trace=bool(debug), POLYMUX_DEBUG=debug,
    )  # fmt: skip
    assert b"TypeError" in done.stderr
    assert b"POLYMUX_DEBUG=1" in done.stderr
    assert (b"Traceback" in done.stderr) is bool(debug)


@pytest.mark.parametrize(
    ("number", "code", "reads"),
    [(signal.SIGINT, 130, False), (signal.SIGINT, 130, True), (signal.SIGTERM, 143, True)],
)
def test_signals_end_a_call(tmp_path: Path, number: signal.Signals, code: int, reads: bool) -> None:
    """Covers an upload that the server does not read and a response that never arrives."""
    with (tmp_path / "long.wav").open("wb") as file:
        file.truncate(1000 if reads else 64 << 20)
    with MisbehavingServer() as server:
        server.script(*([] if reads else [steps.read_nothing()]), steps.stall())
        process = started("transcribe", "long.wav", cwd=tmp_path, server=server)
        server.wait_requests(1, 30)
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
        if reads:
            server.wait_closed(server.connections[0])
    assert (process.returncode, output) == (code, b"")
    one_line(errors)
