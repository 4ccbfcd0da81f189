from __future__ import annotations

import argparse
import subprocess
import sys

import pytest
from polymux.cli import Parser, parser
from polymux.cli.operation_commands import COMMANDS
from polymux.cli.operation_names import NAMES

#: Runs several commands, and prints the modules loaded so far.
PROGRAM = """
import contextlib, io, sys
from polymux.cli import main
for words in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(words.split())
        except SystemExit:
            pass
print(*sys.modules, sep="\\n")
"""
NEVER = {"asyncio", "ssl", "http", "http.client", "importlib.metadata", "numpy", "polymux.aio",
         "pydantic", "readline", "shtab"}  # fmt: skip
CLIENT = {"polymux.client.sync_client", "polymux.client.call", "polymux._native._core",
          "polymux.client.request"}  # fmt: skip
MORE = {
    "polymux._native._media", "polymux.cli.operation_commands", "polymux.cli.chat",
    "polymux.client.methods", "polymux.client.responses", "polymux.config", "pathlib",
}  # fmt: skip
CHAT = "chat x --server http://127.0.0.1:1 --retries 0"


@pytest.mark.parametrize(
    ("commands", "used", "unused"),
    [
        (["--help", "version", "--version", "", "nonsense"], {"polymux.cli"},
         NEVER | CLIENT | MORE),
        (["convert-to-mp3 /nowhere.wav"], {"polymux._native._media"}, CLIENT),
        ([CHAT], {"polymux.client.sync_client", "polymux._native._core"},
         NEVER | {"polymux._native._media", "polymux.media.conversion"}),
    ],
    ids=["list", "conversion", "chat"],
)  # fmt: skip
def test_what_commands_load(commands: list[str], used: set[str], unused: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *commands],
        capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    found = set(done.stdout.split())
    assert used <= found
    assert not unused & found


def test_names_are_those_of_the_commands() -> None:
    named = [(operation, name, aliases) for operation, name, aliases, _ in NAMES]
    assert named == [(one.operation, one.name, one.aliases) for one in COMMANDS]


@pytest.mark.parametrize("name", [one.name for one in COMMANDS])
def test_no_option_writes_over_a_field(name: str) -> None:
    """argparse accepts two arguments with one destination, and the last one wins."""
    commands = next(one for one in parser()._actions if one.dest == "command")
    made = commands.choices[name]  # type: ignore[index]
    assert isinstance(made, Parser)
    made.fill()
    # Deprecated options are hidden and share the destination of the new ones.
    destinations = [one.dest for one in made._actions if one.help != argparse.SUPPRESS]
    assert len(destinations) == len(set(destinations))
    assert not {"command", "run", "version"} & set(destinations)
