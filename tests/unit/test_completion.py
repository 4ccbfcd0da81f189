"""`polymux completion`: the scripts, in the shells that they are for."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest
from polymux.cli import completion, parser
from polymux.cli.operation_commands import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

ACTIONS = ["list", "get", "cancel", "wait"]
NAMES = [command.name for command in COMMANDS]

#: The words before, the one that is begun, and what it may become, or some of it ("...").
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
]
SPACED = ["DPM++ 2S a", "DPM++ 2S a Karras"]


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


BASH = """
set -u
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_polymux
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(tmp_path: Path, *words: str) -> list[str]:
    path = tmp_path / "polymux.bash"
    path.write_text(script("bash"))
    return run("bash", "--norc", "-c", BASH, "bash", str(path), "polymux", *words)


@pytest.mark.parametrize(("words", "expected"), CASES, ids=lambda one: " ".join(one)[:40])
def test_bash(tmp_path: Path, words: list[str], expected: list[str]) -> None:
    assert sorted(bash(tmp_path, *words)) == sorted(expected)


def test_bash_begins_with_the_commands(tmp_path: Path) -> None:
    found = bash(tmp_path, "")
    assert {*NAMES, "predictions", "probe", "doctor", "completion"} <= set(found)


def test_bash_takes_an_equals_sign_for_a_word(tmp_path: Path) -> None:
    assert bash(tmp_path, "stt", "--format", "=") == ["txt", "srt", "vtt", "json"]
    assert bash(tmp_path, "stt", "--format", "=", "s") == ["srt"]


def test_bash_quotes_what_has_blanks(tmp_path: Path) -> None:
    quoted = [one.replace(" ", "\\ ") for one in SPACED]
    assert bash(tmp_path, "upscale-image", "--scheduler", "DPM++\\ 2S") == quoted


def test_bash_leaves_files_to_itself(tmp_path: Path) -> None:
    assert bash(tmp_path, "transcribe", "ta") == []
    assert bash(tmp_path, "chat", "--extra-body", "ta") == []
    path = tmp_path / "polymux.bash"
    words = run("bash", "--norc", "-c", 'source "$1"; complete -p polymux', "bash", str(path))
    assert words == ["complete -o bashdefault -o default -F _polymux polymux"]


def test_bash_completes_at_a_prompt(tmp_path: Path) -> None:
    """The Tab key, in an interactive shell."""
    from support.commands import Shell

    path = tmp_path / "polymux.bash"
    path.write_text(script("bash"))
    (tmp_path / "talk.wav").touch()
    with Shell("bash", "--norc", "--noprofile", "-i", cwd=tmp_path) as shell:
        shell.press(f"PS1=re''ady:; source {path}\r")
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


ZSH = """
compadd() { print -rl -- "${(@P)2}" }
_files() { }
compset() { }
compdef() { }
source "$1"
shift
words=("$@")
CURRENT=$#words
_polymux
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_syntax(tmp_path: Path, shell: str) -> None:
    path = tmp_path / "script"
    path.write_text(script(shell))
    run(shell, "-n", str(path))


def test_zsh(tmp_path: Path) -> None:
    path = tmp_path / "polymux.zsh"
    path.write_text(script("zsh"))
    for words, expected in [*CASES, (["upscale-image", "--scheduler", "DPM++ 2S"], SPACED)]:
        found = run("zsh", "-f", "-c", ZSH, "zsh", str(path), "polymux", *words)
        assert set(expected) <= set(found), words
    found = run("zsh", "-f", "-c", ZSH, "zsh", str(path), "polymux", "stt", "--format=s")
    assert found == ["txt", "srt", "vtt", "json"]


def test_fish(tmp_path: Path) -> None:
    path = tmp_path / "polymux.fish"
    path.write_text(script("fish"))
    for words, expected in [*CASES, (["upscale-image", "--scheduler", "'DPM++ 2S"], SPACED)]:
        line = " ".join(["polymux", *words])
        command = f"source {path}; complete --do-complete {line!r}"
        found = run("fish", "--no-config", "-c", command, cwd=tmp_path)
        assert {one.partition("\t")[0] for one in found} >= set(expected), words


def test_every_option_of_every_command_is_known() -> None:
    """The tree that the scripts are made of has all that argparse has."""
    nodes = {node.path: node for node in completion.nodes(parser())}
    for command in COMMANDS:
        known = {name for option in nodes[command.name,].options for name in option.names}
        for argument in command.arguments:
            if command.operation != "convert_to_mp3":
                assert set(argument.options) <= known
        assert {"--server", "--timeout", "--retries", "--json", "-q", "--help"} <= known
    assert {name for path in nodes for name in path} >= {*NAMES, *ACTIONS}
