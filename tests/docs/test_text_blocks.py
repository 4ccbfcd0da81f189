"""`text` blocks of the pages: nothing runs, but commands of ours are parsed, the rest is named."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

from polymux.cli import parser
from support.native_build import ROOT

sys.path.append(str(ROOT))

from benchmarks.song import __main__ as song_benchmark

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```text[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Page (its path in docs/) and how the block begins, to what it is.
NO_COMMANDS = {
    ("deploy/monitoring.md", '{"time"'): "a line of the log; test_serve_options.py reads them",
    ("deploy/monitoring.md", "2026-"): "a line of the log; test_serve_options.py reads them",
    ("deploy/monitoring.md", '{"status"'): "what /readyz returns",
    ("deploy/web-ui.md", "default-src"): "the page's policy; test_webui.py holds it",
    ("explanation/architecture.md", "Python: python/polymux"): "a drawing of the layers",
    ("explanation/parallel-mp3.md", "encoder 0"): "a drawing of segments",
    ("get-started/macos-and-windows.md", "polymux supports"): "what pip says there",
    ("guides/notebooks.md", "%"): "cells of a notebook",
    ("guides/python-client.md", "base_url ="): "the client's settings, which no server checks",
    ("integrations/mcp.md", "{"): "settings of other programs",
    ("reference/errors.md", "PolymuxError"): "the tree of errors; test_error_page.py holds it",
    ("reference/models.md", "no engine"): "what the server says",
    ("reference/models.md", "my-model/"): "a folder of weights",
}
#: First word of somebody else's command, to why it is only shown.
OTHERS = {
    ".": "changes the environment of a shell",
    "cmake": "a build of minutes; tests build the same by installed_prefix",
    "docker": "builds and runs containers; what it runs of ours is parsed",
    "gh": "needs a published release",
    "git": "publishes a release",
    "cp": "copies a file of the demo, which tests do not run here",
    "install": "changes the system",
    "pip": "installs packages; their extras are looked up",
    "pipx": "installs packages; test_package.py does so from the wheel",
    "kubectl": "needs a cluster; what it runs of ours is parsed",
    "podman": "builds and runs containers; what it runs of ours is parsed",
    "printf": "feeds a benchmark of two files that are not here",
    "python": "loads weights of gigabytes",
    "python3": "makes an environment",
    "ray": "a cluster's own command; the tests of Ray make theirs",
    "export": "variables of a shell for the client of somebody else",
    "runuser": "changes the user; what it runs of ours is parsed",
    "systemctl": "changes the system",
    "useradd": "changes the system",
    "uvx": "makes an environment; what it runs of ours is parsed",
}
#: Words that lead to a command of ours: the next that is called polymux begins it.
LEADING = ("runuser", "uvx", "podman run", "docker compose", "kubectl exec")


def blocks() -> list[tuple[str, str]]:
    """Page and text of each block; a page of docs/ by its path there."""
    return [(page.relative_to(ROOT).as_posix().removeprefix("docs/"), match.group(1))
            for page in PAGES for match in FENCE.finditer(page.read_text("utf-8"))]  # fmt: skip


def shown(page: str, text: str) -> list[list[str]]:
    """The commands of a block, as words; none where it is known to have none."""
    begin = text.lstrip()
    if any(page == name and begin.startswith(start) for name, start in NO_COMMANDS):
        return []
    lines = [line.removeprefix("$ ") for line in text.splitlines()]
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def ours(words: list[str]) -> list[str] | None:
    """What our command is given in a line; None where it is another's alone."""
    if " ".join(words).startswith(LEADING):
        # The first of these names is a user or a volume, the last begins what is run.
        names = (Path(one).name for one in words)
        at = max(
            (n for n, one in enumerate(names) if one in ("polymux", "polymux:cuda")), default=None
        )
        return None if at is None else words[at + 1 :]
    return words[1:] if Path(words[0]).name == "polymux" else None


def check(words: list[str]) -> None:
    """Fails where a command is not as it could be run."""
    arguments = ours(words)
    if arguments:
        parser().parse_args(arguments)
    elif words[:2] == ["scripts/bench", "song"]:
        song_benchmark.arguments(words[2:])
    elif words[0].startswith("scripts/"):
        path = ROOT / words[0]
        assert os.access(path, os.X_OK), f"{path} is no executable of this repository"
        unknown = [one for one in words[1:] if one.split("=")[0] not in path.read_text("utf-8")]
        assert not unknown, f"{words[0]} does not know {unknown}"
    else:
        known = words[0] in OTHERS or Path(words[0]).parent.name == "bin"
        assert known, f"nobody knows {words[0]!r}: name it in this test, and say why"
        extras = {one for part in words for one in extras_of(part)}
        assert extras <= known_extras(), extras - known_extras()


def extras_of(word: str) -> list[str]:
    found = re.search(r"(?:polymux|\.|\.whl)\[([\w,-]+)\]$", word)
    return found[1].split(",") if found else []


def known_extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return set(project["optional-dependencies"])


def test_commands_are_as_they_could_be_run() -> None:
    for page, text in blocks():
        for words in shown(page, text):
            check(words)
