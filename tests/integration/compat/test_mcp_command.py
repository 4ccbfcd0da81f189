"""The command `polymux mcp` and its options, with and without the MCP SDK."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from polymux.cli import main
from support.commands import environment
from support.mcp_clients import python

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--allow-dir", "nowhere"], "nowhere"),
        (["--retries", "1"], "--server"),
        (["--server", "http://127.0.0.1:9", "--output-dir", "x"], "--output-dir"),
        (["--server", "nowhere"], "--server"),
    ],
)
def test_wrong_words(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["mcp", *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_without_the_sdk_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp"]) == 3
    captured = capsys.readouterr()
    assert "pip install 'polymux[mcp]'" in captured.err
    assert captured.out == ""


def test_the_doctor_knows(tmp_path: Path) -> None:
    program = "import sys; sys.modules['mcp'] = None; from polymux.cli import main; "
    program += "main(['doctor'])"
    done = subprocess.run(
        python(program), capture_output=True, text=True, check=False, cwd=tmp_path,
        env=environment(tmp_path, PATH=os.environ["PATH"]),
    )  # fmt: skip
    (line,) = [one for one in done.stdout.splitlines() if "polymux[mcp]" in one]
    assert line.startswith("absent")
