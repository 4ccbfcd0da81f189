"""`polymux completion`: the scripts, in the shells that they are for."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest
from polymux.cli.operation_commands import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

ACTIONS = ["list", "get", "cancel", "wait"]
NAMES = [command.name for command in COMMANDS]

#: The words before, the one that is begun, and what it can become.
CASES = [
    (["tran"], ["transcribe"]),
    (["ge"], ["generate-image", "generate-music", "generate-video"]),
    (["predictions", ""], ACTIONS),
    (["predictions", "w"], ["wait"]),
    (["predictions", "wait", "--ou"], ["--output-dir"]),
    (["completion", ""], ["bash", "zsh", "fish"]),
    (["models", ""], ["list", "info", "pull", "add", "rm"]),
    (["models", "add", "x", "--family", ""], ["chat", "speech", "upscale", "diffusion"]),
    (["request", ""], NAMES),
    (["operations", "read"], ["read-text"]),
    (["stt", "--form"], ["--format"]),
    (["stt", "talk.wav", "--format", ""], ["txt", "srt", "vtt", "json"]),
    (["transcribe", "--task", "trans"], ["transcribe", "translate"]),
    (["upscale-image", "--output-format", "w"], ["webp"]),
    (["chat", "--no-str"], ["--no-stream"]),
    (["chat", "--reasoning-effort", "lo"], ["low"]),
    (["generate-image", "--model", "play"], ["playgroundai/playground-v2.5-1024px-aesthetic"]),
    (["chat", "transcribe", "--sys"], ["--system"]),
    (["--ver"], ["--version"]),
    (["transcribe", "ta"], ["talk.wav"]),
    (["chat", "--extra-body", "ta"], ["talk.wav"]),
    (["generate-image", "a cat", "--output-dir", "pl"], ["place"]),
]


@cache
def script(shell: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "polymux", "completion", shell],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout


def run(*command: str, cwd: Path | None = None) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a file, a folder and the scripts."""
    (tmp_path / "talk.wav").touch()
    (tmp_path / "place").mkdir()
    for shell in ("bash", "zsh", "fish"):
        (tmp_path / f"script.{shell}").write_text(script(shell))
    return tmp_path


BASH = """
source script.bash
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_shtab_polymux
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(place: Path, *words: str) -> list[str]:
    return run("bash", "--norc", "-c", BASH, "bash", "polymux", *words, cwd=place)


@pytest.mark.parametrize(("words", "expected"), CASES, ids=lambda one: " ".join(one)[:40])
def test_bash(place: Path, words: list[str], expected: list[str]) -> None:
    assert sorted(bash(place, *words)) == sorted(expected)


def test_bash_begins_with_the_commands(place: Path) -> None:
    assert {*NAMES, "predictions", "probe", "doctor", "completion"} <= set(bash(place, ""))


def test_bash_completes_at_a_prompt(place: Path) -> None:
    """The Tab key, in an interactive shell."""
    from support.commands import Shell

    with Shell("bash", "--norc", "--noprofile", "-i", cwd=place) as shell:
        shell.press("PS1=re''ady:; source script.bash\r")
        shell.wait_for("ready:")
        shell.press("polymux trans\t")
        shell.wait_for("polymux transcribe ")
        shell.press("ta\t")
        shell.wait_for("talk.wav ")
        shell.press("--task transl\t")
        shell.wait_for("translate ")
        # Ctrl-U: a Ctrl-C would ask a busy machine's readline for a prompt that it may not show.
        shell.press("\x15exit\r")
        shell.end()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_syntax(place: Path, shell: str) -> None:
    run(shell, "-n", f"script.{shell}", cwd=place)


def test_fish(place: Path) -> None:
    for words, expected in CASES:
        line = " ".join(["polymux", *words])
        command = f"source script.fish; complete --do-complete {line!r}"
        found = run("fish", "--no-config", "-c", command, cwd=place)
        assert {one.partition("\t")[0].rstrip("/") for one in found} >= set(expected), words


def test_every_option_of_every_command_is_offered(place: Path) -> None:
    for command in COMMANDS:
        offered = set(bash(place, command.name, "--"))
        for argument in command.arguments:
            if command.operation != "convert_to_mp3":
                assert {one for one in argument.options if one.startswith("--")} <= offered
        assert {"--server", "--timeout", "--retries", "--json", "--help"} <= offered


def test_without_shtab() -> None:
    code = "import sys; sys.modules['shtab'] = None; from polymux.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "completion", "bash"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 3
    assert "pip install 'polymux[completion]'" in done.stderr


def test_other_commands_do_not_load_shtab() -> None:
    code = "import polymux.cli as cli, sys; cli.main(['--version']); print('shtab' in sys.modules)"
    assert run(sys.executable, "-c", code)[-1] == "False"
