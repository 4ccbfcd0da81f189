#!/usr/bin/env python3
"""Write docs/reference/command-line.md from the argparse parser of the `polymux` command.

Run it with the Python that polymux is installed in: `.venv/bin/python scripts/lib/command_line.py`.
tests/docs/test_command_line_page.py fails if the page is outdated.
"""
# ruff: noqa: SLF001  # argparse offers no public access to the options of a parser.

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.cli import Parser, parser
from polymux.cli.errors import EXIT_CODES

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/command-line.md"
HEAD = """\
<!-- Written by scripts/lib/command_line.py from the parser. Do not edit. -->
# Command-line reference

This page lists every command and option of `polymux`. `polymux COMMAND --help` prints the same text
with examples. For tasks, see [Use the command line](../guides/command-line.md).

`polymux --version` and `polymux version` print the version. Each operation has at least two
command names: the name of its Python method and the last segment of its URL path. Fields of an
operation are options: `num_outputs` is `--num-outputs`. Boolean fields have `--name` and
`--no-name`. JSON arguments and standard input are limited to 64 MiB.

Errors are one line on standard error. Set `POLYMUX_DEBUG=1` to get the traceback.
"""


def page() -> str:
    """Return the text of the page."""
    return "".join(_page())


def _page() -> Iterator[str]:
    yield HEAD
    yield "\n## Exit codes\n\n| code | meaning |\n|---|---|\n"
    for code, meaning in re.findall(r"^  (\d+) +(.*)$", EXIT_CODES, re.MULTILINE):
        yield f"| {code} | {_cell(meaning)} |\n"
    commands = list(_commands(parser()))
    yield "\n## Commands\n\n| command | alias | purpose |\n|---|---|---|\n"
    for name, aliases, purpose, _ in commands:
        alias = ", ".join(f"`{one}`" for one in aliases)
        yield f"| [`{name}`](#polymux-{name}) | {alias} | {_cell(purpose)} |\n"
    shared = _server_options(next(one for name, *_, one in commands if name == "chat"))
    yield "\n## Server options\n\nCommands that call a server accept these options.\n"
    yield "The API key has no option, because other users of the computer can read command lines.\n"
    yield "Set `POLYMUX_API_KEY`, or `api_key` in the [configuration file]"
    yield "(../guides/python-client.md).\n\n"
    yield from _table(shared)
    for name, aliases, purpose, one in commands:
        yield f"\n## polymux {name}\n"
        yield from _command(one, purpose, aliases, {_row(action) for action in shared})


def _commands(one: Parser) -> Iterator[tuple[str, list[str], str, Parser]]:
    """Yield name, aliases, purpose and parser of each command of a parser."""
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: Any = action
            parsers = list(dict.fromkeys(found.choices.values()))
            for described, made in zip(found._choices_actions, parsers, strict=True):
                made.fill()
                names = [name for name, other in found.choices.items() if other is made]
                yield names[0], names[1:], described.help or "", made


def _command(one: Parser, purpose: str, aliases: list[str], shared: set[str]) -> Iterator[str]:
    text = one.description or f"{purpose[:1].upper()}{purpose[1:]}"
    yield f"\n{_cell(text).rstrip('.')}.\n"
    if aliases:
        word = "Alias" if len(aliases) == 1 else "Aliases"
        yield f"\n{word}: {', '.join(f'`polymux {alias}`' for alias in aliases)}.\n"
    nested = list(_commands(one))
    usage = " ".join(_argument(action) for action in _positional(one))
    usage = "COMMAND" if nested else f"[options] {usage}".strip()
    yield f"\nUsage: `{one.prog} {usage}`\n"
    actions = [action for group in one._action_groups for action in group._group_actions]
    shown = [action for action in actions if _is_shown(action) and _row(action) not in shared]
    if shown:
        yield "\n"
        yield from _table(shown)
    if any(_row(action) in shared for action in actions):
        yield "\nAlso accepts [server options](#server-options).\n"
    for name, _, help_, made in nested:
        yield f"\n### {one.prog} {name}\n"
        yield from _command(made, help_, [], shared)


def _server_options(one: Parser) -> list[argparse.Action]:
    return [
        action
        for group in one._action_groups
        if group.title == "server"
        for action in group._group_actions
        if "--local" not in action.option_strings
    ]


def _positional(one: Parser) -> list[argparse.Action]:
    return [action for action in one._actions if not action.option_strings and _is_shown(action)]


def _is_shown(action: argparse.Action) -> bool:
    hidden = argparse._HelpAction, argparse._SubParsersAction
    return action.help != argparse.SUPPRESS and not isinstance(action, hidden)


def _argument(action: argparse.Action) -> str:
    name = _value_name(action)
    many = action.nargs in ("*", "+")
    shown = f"{name} ..." if many else name
    return f"[{shown}]" if action.nargs in ("?", "*") else shown


def _value_name(action: argparse.Action) -> str:
    if action.metavar is not None:
        return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _table(actions: list[argparse.Action]) -> Iterator[str]:
    yield "| option or argument | meaning |\n|---|---|\n"
    for action in actions:
        yield _row(action)


def _row(action: argparse.Action) -> str:
    if action.option_strings:
        flag = action.nargs == 0
        value = "" if flag else f" {_value_name(action)}"
        if action.nargs == "?":
            value = f" [{_value_name(action)}]"
        names = ", ".join(f"`{name}{value}`" for name in action.option_strings)
    else:
        names = f"`{_value_name(action)}`"
    help_ = action.help or ""
    if "%" in help_:
        help_ = help_ % {**vars(action), "prog": "polymux"}
    return f"| {_cell(names)} | {_cell(help_)} |\n"


def _cell(text: str) -> str:
    """Return text for a cell of a table, without characters that Markdown would interpret."""
    words = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"(?<!`)<(?!!)", "&lt;", re.sub(r"(?<!\w)'([^' ][^']*)'(?!\w)", r"`\1`", words))


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
