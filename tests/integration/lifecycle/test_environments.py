"""Unusual environments: no terminal, log, home, permissions or folder. Case IDs: testing.md."""

from __future__ import annotations

import fcntl
import os
import subprocess
import threading
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import config
from support import programs
from support.kill_rounds import JOBS, path_of, sound
from support.serve_command import START_S
from support.server_process import until
from support.unprivileged import anybody

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.serve_command import ServeCommand

NOBODY = 64_321


def serves(program: ServeCommand) -> None:
    """Check that every part works."""
    assert program.chat("echo x").json()["text"] == "x"
    assert b"[DONE]" in program.chat("stream 5", stream=True).body
    answer = program.convert(sound(0.2, 1))
    assert answer.status == 200, answer.body
    assert program.request("GET", path_of(answer.json()["response"])).status == 200
    assert program.request("GET", JOBS).status == 200


def find(program: ServeCommand) -> None:
    """Wait until the server responds at the URL stored next to its key. It cannot print its URL."""
    place = program.folder / "state" / "polymux" / "local-key"

    def answers() -> bool:
        assert program.process is not None
        assert program.process.poll() is None, "it has ended"
        with suppress(OSError, IndexError, ValueError, HTTPException):
            program.port = int(place.read_text().split()[1].rpartition(":")[2])
            return program.request("GET", "/healthz").status == 200
        return False

    until(answers, START_S)


def test_without_standard_streams(program: ServeCommand) -> None:
    """Newly opened files must not become standard streams (P07)."""
    before = ("/bin/sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh")
    program.start(before=before, ready=False, stderr=None, stdout=None)
    find(program)
    serves(program)
    for number in range(3):
        target = Path(f"/proc/{program.pid}/fd/{number}").readlink()
        assert "socket" not in str(target), f"{number} is {target}"
        assert ".db" not in str(target)
    assert program.stop() == 0


def test_a_log_that_nobody_reads(program: ServeCommand) -> None:
    """Standard error is a full pipe (P07)."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        program.start(ready=False, stderr=writer)
        os.close(writer)
        find(program)
        for _ in range(100):
            assert program.request("GET", "/nothing", timeout_s=10).status == 404
        serves(program)
        assert program.stop() == 0
    finally:
        os.close(reader)


def plain(program: ServeCommand, **more: str) -> Mapping[str, str]:
    """A nearly empty environment."""
    kept = ("PATH", "PYTHONPATH", "LD_PRELOAD", "ASAN_OPTIONS", "PYTHONMALLOC", "VIRTUAL_ENV")
    own = {name: one for name, one in program.environment.items() if name in kept}
    return own | {"LANG": "C", "LC_ALL": "C"} | more


def test_a_plain_environment(program: ServeCommand) -> None:
    """LANG=C, no HOME, and a deleted working directory (P08)."""
    folder = program.folder / "gone"
    folder.mkdir()
    state = str(program.folder / "state")
    before = ("/bin/sh", "-c", f'rmdir "{folder}"; exec "$@"', "sh")
    environment = plain(program, XDG_STATE_HOME=state)
    program.start(before=before, environment=environment, cwd=folder)
    serves(program)
    answer = program.convert(sound(0.1, 1), file_name="x")
    assert answer.status in (200, 400)
    assert program.stop() == 0
    assert "Traceback" not in program.log_text


def test_a_store_that_cannot_be_reached_while_work_is_done(program: ServeCommand) -> None:
    """Waiting clients get a response. When the store is reachable again, everything works (D04)."""
    state = program.folder / "state"
    state.mkdir()
    environment = plain(program, XDG_STATE_HOME=str(state))
    program.start(before=anybody(program.folder, NOBODY), environment=environment, cwd="/")
    drafts = program.store / "drafts"
    data = sound(120, 1)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(program.convert(data)))
    asking.start()
    try:
        # The upload and its conversion.
        until(lambda: len(list(drafts.iterdir())) >= 2, 60)
        state.chmod(0)
        asking.join(30)
        assert answers, "nobody was answered"
    finally:
        state.chmod(0o755)
        asking.join()
    (answer,) = answers
    assert (answer.status, answer.json()["code"]) == (503, "store_failed"), answer.body
    serves(program)
    assert program.stop() == 0
    assert "Traceback" not in program.log_text


def outcome(program: ServeCommand, **options: Any) -> str:
    """The single line that a server prints if it cannot start."""
    program.start(ready=False, **options)
    assert program.wait() not in (0, None)
    assert "Traceback" not in program.log_text
    assert len(program.log) == 1, program.log_text
    return program.log_text


def test_no_home_at_all(program: ServeCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder named ~ is created. Without root, the test calls the function directly (P08)."""
    folder = program.folder / "here"
    folder.mkdir()
    if os.geteuid() == 0:
        before = anybody(program.folder, NOBODY)
        message = outcome(program, before=before, environment=plain(program), cwd=folder)
    else:
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
        with pytest.raises(polymux.InvalidRequestError) as refused:
            config.state_folder()
        message = str(refused.value)
    assert "XDG_STATE_HOME" in message
    assert list(folder.iterdir()) == []


def test_folders_that_may_not_be_written(program: ServeCommand) -> None:
    """The startup fails with one line that names the store (D04)."""
    state = program.folder / "state"
    state.mkdir()
    before = anybody(program.folder, NOBODY)
    state.chmod(0o555)
    try:
        message = outcome(program, before=before)
    finally:
        state.chmod(0o755)
    assert "Permission denied" in message
    assert "polymux" in message


def read_only_root(folder: Path) -> tuple[str, ...]:
    """The command prefix for a program that can write only to one folder."""
    script = (
        'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro / '
        '&& exec "$@"'
    )
    return (programs.find("unshare"), "--mount", "/bin/sh", "-c", script, str(folder))


def test_a_root_that_is_read_only(program: ServeCommand) -> None:
    """Without the permission to mount, the program runs without write permission instead (P08)."""
    before = read_only_root(program.folder)
    mounts = subprocess.run([*before, "true"], capture_output=True, check=False).returncode == 0
    state = str(program.folder / "state")
    environment = plain(program, XDG_STATE_HOME=state, HOME="/nonexistent")
    program.start(before=before if mounts else (), environment=environment, cwd="/")
    serves(program)
    assert program.stop() == 0
    assert "Traceback" not in program.log_text
