"""Which interpreter is meant, and that another one gets an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
#: Says what it is asked to do, and does none of it but make environments.
INTERPRETER = """#!/bin/bash
echo "$0 $*" >>"$LOG"
case "$*" in
    -VV) echo "Python of $(readlink -f "$0")" ;;
    "-m venv --clear "*)
        rm -rf "$4"
        mkdir -p "$4/bin"
        cp "$0" "$4/bin/python"
        ;;
esac
"""


class Place:
    """A repository of nothing but the script, and what is found beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        for name in ("check-free-threaded", "lib/common.sh"):
            (folder / "scripts" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SCRIPTS / name, folder / "scripts" / name)
        (folder / "requirements").mkdir()
        for name in ("build.txt", "test.txt"):
            (folder / "requirements" / name).write_text("pytest==1\n")
        self.program("programs/python3.14t")
        self.built = folder / "build/free-threaded/python/bin/python3"
        self.environment = folder / "build/free-threaded/venv"

    def program(self, name: str, text: str = INTERPRETER) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run(self, *words: str) -> tuple[int, str, list[str]]:
        """Status, errors, and what the interpreters were asked to do."""
        self.log.write_text("")
        environment = os.environ | {
            "LOG": str(self.log),
            "PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            [self.folder / "scripts/check-free-threaded", *words],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr, self.log.read_text().splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def asked(lines: list[str], words: str) -> list[str]:
    """By which programs, in order."""
    return [one.partition(" ")[0] for one in lines if f" {words}" in one]


@pytest.mark.parametrize(
    ("named", "is_built"), [("python3.14t", True), ("programs/python3.14t", False)]
)
def test_an_interpreter_is_named(place: Place, named: str, is_built: bool) -> None:
    if is_built:
        place.program(str(place.built.relative_to(place.folder)))
    status, told, lines = place.run(named)
    assert status == 0, told
    program = place.folder / "programs/python3.14t"
    assert asked(lines, "-m venv") == [str(program)]
    assert asked(lines, "-m pytest") == [str(place.environment / "bin/python")]


@pytest.mark.parametrize("named", ["python3.99t", "nowhere/python3", "scripts"])
def test_what_is_none_is_refused(place: Place, named: str) -> None:
    status, told, lines = place.run(named)
    assert status == 1
    assert named in told
    assert "no interpreter" in told or "no CPython's source" in told
    assert lines == []


def test_each_interpreter_has_its_environment(place: Place) -> None:
    first = str(place.folder / "programs/python3.14t")
    other = str(place.program("programs/python3.15t"))
    made = [asked(place.run(one)[2], "-m venv") for one in (first, first, other, other, first)]
    assert made == [[first], [], [other], [], [first]]
