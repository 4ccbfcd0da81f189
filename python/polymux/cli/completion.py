"""`polymux completion`: what a shell needs to complete the command line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.cli.parsers import Parser

SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\
examples:
  polymux completion bash > ~/.local/share/bash-completion/completions/polymux
  polymux completion zsh > "${fpath[1]}/_polymux"
  polymux completion fish > ~/.config/fish/completions/polymux.fish

"""
_LONGEST_HELP = 70
_FILES = ("FILE", "FOLDER", "FILE_OR_FOLDER", "JSON", "TEXT|JSON")


class Option(NamedTuple):
    """An option: its spellings, whether a value follows, which ones there are, and its help."""

    names: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]
    files: bool
    help: str


class Node(NamedTuple):
    """A command, or an action of one.

    Attributes:
        path: Its words: ``("predictions", "get")``; empty for `polymux` itself.
        names: Its name and aliases.
        help: A few words.
        options: In the order of the help.
        words: What may come first where no option stands; empty for any.
    """

    path: tuple[str, ...]
    names: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def add_commands(commands: Any) -> None:
    """Describes the command to argparse."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description="Prints a script that makes a shell complete commands, options and choices.",
        epilog=_EPILOG + exit_codes.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the script; the exit code."""
    import sys

    from polymux.cli import completion_scripts, parser

    write = {
        "bash": completion_scripts.bash,
        "zsh": completion_scripts.zsh,
        "fish": completion_scripts.fish,
    }[options.shell]
    sys.stdout.write(write(list(nodes(parser()))))
    return exit_codes.SUCCESS


def nodes(
    parser: Parser, path: tuple[str, ...] = (), names: tuple[str, ...] = (), said: str = ""
) -> Iterator[Node]:
    """The parser and all below it, the upper ones first."""
    parser.fill()
    options, words = [], []
    below: list[tuple[tuple[str, ...], str, Parser]] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            below = _subcommands(action)
            words = [one[0][0] for one in below]
        elif action.option_strings:
            options.append(_option(action, path))
        elif not words:
            words = list(_choices(action, path))
    yield Node(path, names, said, tuple(options), tuple(words))
    for its_names, its_help, its_parser in below:
        yield from nodes(its_parser, (*path, its_names[0]), its_names, its_help)


def _subcommands(action: Any) -> list[tuple[tuple[str, ...], str, Parser]]:
    helps = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001
    parsers: dict[int, Any] = {id(parser): parser for parser in action.choices.values()}
    found = []
    for identity, parser in parsers.items():
        names = tuple(name for name, one in action.choices.items() if id(one) == identity)
        found.append((names, helps.get(names[0], ""), parser))
    return found


def _option(action: argparse.Action, path: tuple[str, ...]) -> Option:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    said = (action.help or "").replace("%%", "%").split(". ")[0].rstrip(".")
    if len(said) > _LONGEST_HELP:
        said = said[: _LONGEST_HELP - 3].rpartition(" ")[0] + "..."
    return Option(
        names=tuple(action.option_strings),
        takes_value=action.nargs != 0,
        choices=tuple(_choices(action, path)),
        files=metavar in _FILES,
        help=said,
    )


def _choices(action: argparse.Action, path: tuple[str, ...]) -> tuple[str, ...]:
    """The only values of an argument; empty where there are others."""
    from polymux.cli.operation_commands import COMMANDS

    if action.choices is not None:
        return tuple(map(str, action.choices))
    if action.metavar == "OPERATION":
        return tuple(command.name for command in COMMANDS)
    for command in COMMANDS:
        if path == (command.name,):
            if action.dest == "selected_model":
                return command.models
            return next((one.choices for one in command.arguments if one.name == action.dest), ())
    return ()
