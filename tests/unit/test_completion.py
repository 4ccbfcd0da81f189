from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from polymux.cli.operation_commands import COMMANDS
from support.commands import call

if TYPE_CHECKING:
    from pathlib import Path

SHELLS = ("bash", "zsh", "fish")
NAMES = [command.name for command in COMMANDS]

#: A command line without "polymux", and the completions of its last word.
CASES = {
    "tran": ["transcribe"],
    "ge": ["generate-image", "generate-music", "generate-video"],
    "predictions ": ["list", "get", "cancel", "wait"],
    "predictions wait --ou": ["--output-dir"],
    "completion ": [*SHELLS],
    "models add x --family ": ["chat", "speech", "upscale", "diffusion", "sdcpp"],
    "request ": NAMES,
    "operations read": ["read-text"],
    "stt talk.wav --format ": ["txt", "srt", "vtt", "json"],
    "transcribe --task trans": ["transcribe", "translate"],
    "chat --no-str": ["--no-stream"],
    "generate-image --model play": ["playgroundai/playground-v2.5-1024px-aesthetic"],
    "chat transcribe --sys": ["--system"],
    "--ver": ["--version"],
    "transcribe ta": ["talk.wav"],
    "chat --extra-body ta": ["talk.wav"],
    "generate-image cat --output-dir pl": ["place"],
}
BASH = """
source script.bash
while IFS= read -r line; do
    IFS=' ' read -ra COMP_WORDS <<< "polymux $line"
    [[ "$line" != *' ' && -n "$line" ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _shtab_polymux
    echo "${COMPREPLY[@]}"
done
"""


def run(*command: str, cwd: Path | None = None, given: str = "") -> list[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=cwd, input=given, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file, a folder and the completion scripts."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "talk.wav").touch()
    (folder / "place").mkdir()
    for shell in SHELLS:
        script = call("completion", shell, cwd=folder).stdout
        (folder / f"script.{shell}").write_bytes(script)
    return folder


def bash(place: Path, *lines: str) -> list[set[str]]:
    found = run("bash", "--norc", "-c", BASH, cwd=place, given="\n".join([*lines, ""]))
    return [set(one.split()) for one in found]


def test_bash(place: Path) -> None:
    found = bash(place, *CASES)
    assert dict(zip(CASES, found, strict=True)) == {k: set(v) for k, v in CASES.items()}
    assert {*NAMES, "predictions", "probe", "doctor", "completion"} <= bash(place, "")[0]


@pytest.mark.parametrize("shell", SHELLS)
def test_syntax(place: Path, shell: str) -> None:
    run(shell, "-n", f"script.{shell}", cwd=place)


def test_every_option_of_every_command_is_offered(place: Path) -> None:
    offered = bash(place, *(f"{command.name} --" for command in COMMANDS))
    for command, found in zip(COMMANDS, offered, strict=True):
        for argument in command.arguments:
            if command.operation != "convert_to_mp3":
                assert {one for one in argument.options if one.startswith("--")} <= found
        assert {"--server", "--timeout", "--retries", "--json", "--help"} <= found


def test_without_shtab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = call("completion", "bash", cwd=tmp_path, code=3)
    assert b"pip install 'polymux[completion]'" in done.stderr
