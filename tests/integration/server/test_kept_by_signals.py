"""What a signal to read the settings again must not change; and keys that can be listed."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from support import commands, serving
from support.polymux_server import PolymuxServer
from support.served import until
from support.services import Scripted

PAGE = ("Origin", "https://site.example")


def test_a_reload_gives_no_key_more_than_it_may_have(tmp_path: Path) -> None:
    path = tmp_path / "polymux.toml"
    path.write_text("")
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()]) as server:
        limited, _ = server.keys.add("limited", requests_per_minute=1.0)
        asked = ("GET", "/api/v1/predictions")
        assert [server.ask(*asked, key=limited).status for _ in range(2)] == [200, 429]
        server.state.watch_file(path)
        before = server.state.settings
        server.loop.call_soon_threadsafe(server.state.reload)
        until(lambda: server.state.settings is not before)
        assert server.ask(*asked, key=limited).status == 429


def test_origins_of_the_command_line_outlive_a_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class With(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, command: list[str], **options: object) -> None:
            super().__init__([*command, "--allow-origin", PAGE[1]], **options)  # type: ignore[call-overload]

    program = serving.ServedProgram(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(serving.subprocess, "Popen", With)
        program.start()
    with program:
        assert program.request("GET", "/api/v1/operations", headers=[PAGE]).status == 200
        program.signal(signal.SIGHUP)
        until(lambda: "read again" in program.told, 60)
        assert program.request("GET", "/api/v1/operations", headers=[PAGE]).status == 200


def test_a_reload_before_it_serves(tmp_path: Path) -> None:
    """It does not end what is being started, and is not lost: others may have changed the file."""
    program = serving.ServedProgram(tmp_path)
    program.start(ready=False)
    with program:
        handled = f"/proc/{program.process.pid}/status"
        until(lambda: int(_caught(handled), 16) >> (signal.SIGHUP - 1) & 1, 60)
        program.signal(signal.SIGHUP)
        until(lambda: "read again" in program.told, 60)
        until(lambda: program.url, 60)
        assert program.request("GET", "/api/v1/operations").status == 200


def _caught(path: str) -> str:
    """The signals that a process handles, as proc(5) has them."""
    (line,) = (one for one in Path(path).read_text().splitlines() if one.startswith("SigCgt"))
    return line.split()[1]


@pytest.mark.parametrize(
    "words",
    [("--expires", "inf"), ("--expires", "1e9"), ("--requests-per-minute", "inf"),
     ("--max-estimate", "inf")],
)  # fmt: skip
def test_a_key_that_can_be_made_can_be_listed(tmp_path: Path, words: tuple[str, ...]) -> None:
    own = ("--store", tmp_path / "s")
    commands.run("keys", "add", "long", *words, *own, cwd=tmp_path, code=None)
    listed = commands.run("keys", "list", "--json", *own, cwd=tmp_path)
    json.loads(listed.stdout, parse_constant=pytest.fail)
