"""The command `polymux mcp` and its words, with the SDK and without it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.commands import PROGRAM, environment, run
from support.mcp_clients import python

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_SDK = (
    "import sys; sys.modules['mcp'] = None; from polymux.cli import main; sys.exit(main({words!r}))"
)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--folder", "nowhere"], "no such folder"),
        (["--retries", "1"], "give --server"),
        (["--timeout", "1"], "give --server"),
        (["--server", "http://127.0.0.1:9", "--output-dir", "x"], "leave out --server"),
        (["--server", "nowhere"], "--server"),
    ],
)
def test_wrong_words(tmp_path: Path, words: list[str], said: str) -> None:
    done = run("mcp", *words, cwd=tmp_path, code=2)
    assert said in done.stderr.decode()
    assert done.stdout == b""


@pytest.mark.parametrize("words", [["mcp"], ["mcp", "--server", "http://127.0.0.1:9"]])
def test_without_the_sdk_it_says_how_to_get_it(tmp_path: Path, words: list[str]) -> None:
    done = subprocess.run(
        python(WITHOUT_SDK.format(words=words)), capture_output=True, text=True, check=False,
        cwd=tmp_path, env=environment(tmp_path),
    )  # fmt: skip
    assert done.returncode == 3
    assert "pip install 'polymux[mcp]'" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("sdk", [True, False])
def test_the_doctor_knows(tmp_path: Path, sdk: bool) -> None:
    programs = [python(WITHOUT_SDK.format(words=["doctor", *more])) for more in ([], ["--json"])]
    if sdk:
        programs = [[*PROGRAM, "doctor"], [*PROGRAM, "doctor", "--json"]]
    text, plain = (
        subprocess.run(one, capture_output=True, text=True, check=False, cwd=tmp_path,
                       env=environment(tmp_path, PATH=os.environ["PATH"])).stdout
        for one in programs
    )  # fmt: skip
    (line,) = [one for one in text.splitlines() if "Model Context Protocol" in one]
    assert line.startswith("ok" if sdk else "absent")
    assert ("polymux[mcp]" in line) is not sdk
    assert json.loads(plain)["mcp"] is sdk
