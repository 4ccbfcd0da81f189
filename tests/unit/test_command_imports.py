"""What a command loads: no more than it needs."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest
from polymux.cli import Parser
from polymux.cli.operation_commands import COMMANDS
from polymux.cli.operation_names import NAMES

PROGRAM = """
import contextlib, io, sys
from polymux.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    try:
        main(sys.argv[1:])
    except SystemExit:
        pass
print(*sys.modules, sep="\\n")
"""
NEVER = {"asyncio", "ssl", "http", "http.client", "importlib.metadata", "readline"}
CLIENT = {
    "polymux.client.sync_client",
    "polymux.client.call",
    "polymux._native._core",
    "polymux.config",
    "polymux.client.request",
}


def loaded(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.mark.parametrize("words", [["--help"], ["version"], ["--version"], [], ["nonsense"]])
def test_the_list_of_commands_costs_next_to_nothing(words: list[str]) -> None:
    found = loaded(*words)
    assert "polymux.cli" in found
    more = {"polymux._native._media", "polymux.cli.operation_commands", "polymux.cli.conversation",
            "polymux.client.methods", "polymux.client.responses", "pathlib"}  # fmt: skip
    assert not found & (NEVER | CLIENT | more)


def test_a_conversion_here_loads_no_client() -> None:
    assert not loaded("convert-to-mp3", "/nowhere.wav") & (CLIENT - {"polymux.config"})


def test_a_chat_loads_no_media() -> None:
    found = loaded("chat", "x", "--server", "http://127.0.0.1:1", "--retries", "0")
    assert {"polymux.client.sync_client", "polymux._native._core"} <= found
    assert not found & (NEVER | {"polymux._native._media", "polymux.media.conversion"})


def test_names_are_those_of_the_commands() -> None:
    named = [(operation, name, alias) for operation, name, alias, _ in NAMES]
    assert named == [(one.operation, one.name, one.alias) for one in COMMANDS]


@pytest.mark.parametrize("name", [one.name for one in COMMANDS])
def test_no_option_writes_over_a_field(name: str) -> None:
    """argparse takes two arguments with one destination, and keeps what came last."""
    from polymux.cli import parser

    commands = next(one for one in parser()._actions if one.dest == "command")
    made = commands.choices[name]  # type: ignore[index]
    assert isinstance(made, Parser)
    made.fill()
    # Old names of options write to the destination of the new ones, and are not shown.
    destinations = [one.dest for one in made._actions if one.help != argparse.SUPPRESS]
    assert len(destinations) == len(set(destinations))
    assert not {"command", "run", "version"} & set(destinations)
