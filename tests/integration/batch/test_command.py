"""`polymux batch` as a command: input lists, output lines, exit codes, Ctrl-C and terminals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.cli.operation_commands import COMMANDS
from servers import steps
from servers.misbehaving import MisbehavingServer
from support.batch_kills import noise
from support.commands import PROGRAM, Shell, call, run, started

if TYPE_CHECKING:
    from servers.reference import ReferenceServer

TO_OUT = ("in", "--output-dir", "out")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / f"in/{number}.wav").write_bytes(noise(number))
    return tmp_path


def batch(*words: str | Path, **more: Any) -> Any:
    return call("batch", "convert-to-mp3", *words, **more)


def lines(done: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_folder_with_options_of_the_operation(folder: Path) -> None:
    words = ("batch", "convert-to-mp3", *TO_OUT, "-b", "64k", "--channels", "1")
    done = run(*words, cwd=folder)
    assert done.stdout == b""
    assert re.match(rb"3\b", done.stderr)
    plain = polymux.convert_to_mp3(folder / "in/1.wav", bitrate="64k", channels=1).read()
    assert (folder / "out/1.mp3").read_bytes() == plain


def test_json_lines_and_exit_codes(folder: Path) -> None:
    (folder / "in/broken.wav").write_bytes(b"no sound")
    done = batch(*TO_OUT, "--json", cwd=folder, code=1)
    *items, summary = lines(done)
    assert sorted(one["status"] for one in items) == ["done"] * 3 + ["failed"]
    assert (summary["status"], summary["done"], summary["failed"]) == ("summary", 3, 1)
    assert b"broken" not in done.stdout.splitlines()[-1]
    assert b"--resume" in batch(*TO_OUT, cwd=folder, code=2).stderr
    assert batch(*TO_OUT, "--resume", "-q", cwd=folder, code=1).stderr == b""
    show = ("batch", "--show", "out/polymux-batch.db")
    shown = call(*show, "--report", "r.jsonl", cwd=folder)
    assert re.search(rb"\b3\b.*\b1\b", shown.stderr)
    assert b"broken.wav" in shown.stderr
    assert len((folder / "r.jsonl").read_text().splitlines()) == 4
    statuses = [one["status"] for one in lines(call(*show, "--json", cwd=folder))]
    assert statuses == ["done"] * 3 + ["failed", "summary"]
    (folder / "in/broken.wav").write_bytes(noise(5))
    retried = batch("--output-dir", "out", "--retry-failed", "--json", cwd=folder)
    assert lines(retried)[-1]["done"] == 4
    assert call("batch", "--show", "nothing.db", cwd=folder, code=5).stderr
    assert call("batch", cwd=folder, code=2).stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("in --output-dir out --bitrate 1k", 2),
        ("in", 2),
        ("--output-dir out", 2),
        ("in --output-dir out --report a.xlsx", 2),
        ("- - --output-dir out", 2),
        ("in --output-dir in/0.wav/x", 1),
    ],
)
def test_what_is_refused_before_the_work(folder: Path, words: str, code: int) -> None:
    assert batch(*words.split(), cwd=folder, code=code).stderr
    assert not (folder / "out").exists()


def test_lists_on_standard_input(folder: Path) -> None:
    odd = os.fsencode(folder) + b"/in/line\nend\xff.wav"
    Path(os.fsdecode(odd)).write_bytes(noise(9))
    names = b"\0".join([b"in/0.wav", odd])
    done = batch("-", "-0", "--output-dir", "out", "--json", cwd=folder, stdin=names)
    assert lines(done)[-1]["done"] == 2
    assert (folder / "out/in/0.mp3").exists()
    batch("-", "--output-dir", "out2", cwd=folder, stdin=b"in/1.wav\nin/2.wav\n")
    assert (folder / "out2/in/2.mp3").exists()


def test_texts_on_a_server(server: ReferenceServer, folder: Path) -> None:
    (folder / "texts.txt").write_text("Hello\nHello again\nHello\n")
    words = ("batch", "free-chat", "texts.txt", "--output-dir", "out", "--server", server.url)
    call(*words, cwd=folder, POLYMUX_API_KEY=server.token)
    assert len(server.calls) == 2  # Equal inputs are sent only once.
    assert sorted(path.name for path in (folder / "out").glob("*.txt")) == [
        "000001-hello.txt", "000002-hello-again.txt",
    ]  # fmt: skip


def test_an_invalid_line_keeps_no_other_from_being_done(
    server: ReferenceServer, folder: Path
) -> None:
    words = ("batch", "free-chat", "texts.jsonl", "--output-dir", "out", "--server", server.url)
    good = '{"messages": "Hello"}\n'
    (folder / "texts.jsonl").write_text(f'{good}{{"messages": \n')
    done = call(*words, cwd=folder, code=1, POLYMUX_API_KEY=server.token)
    assert b"line 2 of 'texts.jsonl'" in done.stderr
    assert len(list((folder / "out").glob("*.txt"))) == 1
    (folder / "texts.jsonl").write_text(f'{good}{{"messages": "Goodbye"}}\n')
    call(*words, "--resume", cwd=folder, POLYMUX_API_KEY=server.token)
    assert len(list((folder / "out").glob("*.txt"))) == len(server.calls) == 2


def test_a_server_only_where_it_is_named(server: ReferenceServer, folder: Path) -> None:
    """A wrong API key causes a single error."""
    batch(*TO_OUT, cwd=folder, server=server)
    assert server.calls == []
    words = ("in", "--output-dir", "out2", "--server", server.url)
    done = batch(*words, cwd=folder, code=6, POLYMUX_API_KEY="wrong-key-of-mine")
    assert done.stderr.count(b"\n") == 1
    assert b"wrong-key" not in done.stderr


def many(folder: Path) -> None:
    for number in range(100):
        (folder / f"in/more{number}.wav").write_bytes(noise(number + 10))


def test_an_interruption_lets_what_has_begun_come_to_its_end(folder: Path) -> None:
    """Uses SIGTERM. The next tests use Ctrl-C."""
    many(folder)
    words = ("batch", "convert-to-mp3", *TO_OUT, "--json", "--workers", "2")
    with started(*words, cwd=folder) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        # Read from the same buffer, which may already contain more than the first line.
        rest = process.stdout.read()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors.decode()
    done = {json.loads(line)["id"] for line in [first, *rest.splitlines()]}
    *items, summary = lines(call("batch", "--show", "out/polymux-batch.db", "--json", cwd=folder))
    assert {one["id"] for one in items if one["status"] == "done"} == done
    assert 0 < summary["done"] < 103
    # No item is listed as waiting if the run ended before the manifest contained it.
    assert {one["status"] for one in items} <= {"done", "waiting"}
    assert not (folder / "out/.polymux-batch").exists()
    batch(*TO_OUT, "--resume", cwd=folder)
    assert len(list((folder / "out").glob("*.mp3"))) == 103


def test_a_list_that_goes_on_keeps_nobody(folder: Path) -> None:
    """Items are converted as they arrive. Ctrl-C does not wait for the end of the list."""
    words = ("batch", "convert-to-mp3", "-", "--output-dir", "out", "--json")
    with started(*words, cwd=folder, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"in/1.wav\nin/2")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["status"] == "done"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert b"Fatal" not in process.stderr.read()
    assert (folder / "out/in/1.mp3").exists()


def test_a_second_ctrl_c_ends_at_once(folder: Path) -> None:
    with MisbehavingServer() as server:
        server.script(steps.stall(), times=None)
        words = ("batch", "convert-to-mp3", *TO_OUT, "--server", server.url)
        with Shell(*PROGRAM, *words, cwd=folder) as shell:
            shell.wait_for(r"\r\d+\D")
            shell.press("\x03")
            shell.wait_for("Ctrl-C")
            shell.press("\x03")
            assert shell.end() == 130
            assert "Traceback" not in shell.text
    assert lines(batch(*TO_OUT, "--resume", "--json", cwd=folder))[-1]["done"] == 3


def test_a_terminal_sees_how_far_it_is(folder: Path) -> None:
    many(folder)
    with Shell(*PROGRAM, "batch", "convert-to-mp3", *TO_OUT, cwd=folder) as shell:
        shell.wait_for(r"\r\d+\D.*[\d.]+/s")
        shell.wait_for(r"\r\d+\D.*[\d.]+/s.*\d+:\d\d")
        assert shell.end() == 0
    assert len(list((folder / "out").rglob("*.mp3"))) == 103


def test_help_of_every_operation(tmp_path: Path) -> None:
    for command in COMMANDS:
        help_text = call("batch", command.name, "--help", cwd=tmp_path).stdout.decode()
        options = set(re.findall(r"^  (--[a-z-]+)", help_text, re.MULTILINE))
        assert {"--output-dir", "--resume", "--server"} <= options
        assert "--stream" not in options
