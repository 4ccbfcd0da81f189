"""`polymux completion`: shell completion scripts."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from polymux.cli import parser
from polymux.cli.errors import EPILOG, ExitCode
from polymux.errors import MissingDependencyError

if TYPE_CHECKING:
    from polymux.cli import Parser
    from polymux.cli.operation_arguments import Command

SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\
examples:
  polymux completion bash > ~/.local/share/bash-completion/completions/polymux
  polymux completion zsh > "${fpath[1]}/_polymux"
  polymux completion fish > ~/.config/fish/completions/polymux.fish

"""
_FILES = ("FILE", "FILE_OR_DIR", "IMAGE", "INPUT", "JSON", "SOURCE", "TEXT|JSON")


def describe(parser: Parser) -> None:
    parser.description = "Print a shell completion script for commands, options and choices."
    parser.epilog = _EPILOG + EPILOG
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="Shell: bash, zsh or fish")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script. Return the exit code."""
    try:
        import shtab
    except ImportError as error:
        raise MissingDependencyError(
            "missing dependency: shtab. Run: pip install 'polymux[completion]'"
        ) from error
    from polymux.cli.operation_commands import COMMANDS

    whole = parser()
    places = dict.fromkeys(_FILES, shtab.FILE) | {"DIR": shtab.DIRECTORY}
    _prepare(whole, {command.name: command for command in COMMANDS}, places)
    sys.stdout.write(shtab.complete(whole, options.shell))
    return ExitCode.SUCCESS


def _prepare(parser: Parser, commands: dict[str, Command], places: dict[str, Any]) -> None:
    """Mark file arguments for shtab, and add choices that argparse does not check.

    Args:
        parser: The parser; its subparsers are prepared as well.
        commands: The operations by command name.
        places: shtab's completion type by metavar.
    """
    parser.fill()
    command = commands.get(parser.prog.partition(" ")[2])
    choices: dict[str, tuple[str, ...]] = {}
    if command is not None:
        choices = {one.name: one.choices for one in command.arguments}
        choices["selected_model"] = command.models
    for action in parser._actions:  # noqa: SLF001 - argparse has no public API for this
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for one in set(action.choices.values()):
                _prepare(one, commands, places)
        elif action.choices is not None or action.nargs == 0:
            continue
        elif action.metavar == "OPERATION":
            action.choices = tuple(commands)
        elif choices.get(action.dest):
            # Bash splits choices with spaces.
            action.choices = tuple(one for one in choices[action.dest] if " " not in one)
        elif isinstance(action.metavar, str) and action.metavar in places:
            action.complete = places[action.metavar]  # type: ignore[attr-defined]
