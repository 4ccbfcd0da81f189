"""`polymux doctor`, `config check` and `serve` list upstreams without a request to them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from servers import steps
from servers.misbehaving import MisbehavingServer
from support.serve_command import ServeCommand
from support.upstreams import CANARY, WHOLE

if TYPE_CHECKING:
    from pathlib import Path

TABLE = """
[upstreams.groq]
kind = "openai"
base_url = "{url}/v1"
{key}
models = {{ fast = "their-model" }}

[upstreams.attic]
kind = "polymux"
base_url = "{url}"
operations = ["read_text"]
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "polymux", *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"GROQ_KEY": CANARY},
    )  # fmt: skip


def test_doctor_lists_them_without_asking_them(tmp_path: Path) -> None:
    settings = tmp_path / "polymux.toml"
    with MisbehavingServer() as server:
        settings.write_text(TABLE.format(url=server.url, key='key_environment = "GROQ_KEY"'))
        checked = run(tmp_path, "config", "check", "polymux.toml")
        assert (checked.returncode, checked.stderr) == (0, "")
        report = run(tmp_path, "doctor", "--config", "polymux.toml")
        assert re.search(r"(?m)^ok +.*\bgroq .*openai.*: chat, free_chat$", report.stdout)
        assert re.search(r"(?m)^ok +.*\battic .*polymux.*: read_text$", report.stdout)
        assert CANARY not in report.stdout
        assert server.connections == []
    settings.write_text(TABLE.format(url=server.url, key='key_file = "gone.key"'))
    report = run(tmp_path, "doctor", "--config", "polymux.toml")
    assert re.search(r"(?m)^missing +.*upstreams\.groq\.key_file.*gone\.key", report.stdout)


@pytest.mark.parametrize("line", [f'key = "{CANARY}"', f'key_environment = "{CANARY}"'])
def test_a_key_in_the_settings_is_refused(tmp_path: Path, line: str) -> None:
    text = TABLE.format(url="http://127.0.0.1:1", key=line)
    (tmp_path / "polymux.toml").write_text(text)
    for words in (("config", "check", "polymux.toml"), ("serve", "--config", "polymux.toml")):
        done = run(tmp_path, *words)
        assert done.returncode != 0
        assert "upstreams.groq.key" in done.stderr
        assert CANARY not in done.stdout + done.stderr


def test_served(tmp_path: Path) -> None:
    """Runs in a separate process. Its log has requests, but no keys."""
    (tmp_path / "groq.key").write_text(CANARY)
    key = f'key_file = "{tmp_path / "groq.key"}"'
    with MisbehavingServer() as upstream:
        upstream.script(steps.answer(200, json.dumps(WHOLE).encode()))
        upstream.script(steps.answer(401, json.dumps({"error": CANARY}).encode()))
        text = "[engines]\n" + TABLE.format(url=upstream.url, key=key)
        with ServeCommand(tmp_path, text, whole=True) as program:
            program.start()
            assert program.chat("Hi", model="fast").status == 200
            assert program.chat("Hi", model="fast").status == 502
            assert upstream.requests[0].header("authorization") == f"Bearer {CANARY}"
        assert CANARY not in program.log_text
        assert "fastllm/chatcompletion" in program.log_text
