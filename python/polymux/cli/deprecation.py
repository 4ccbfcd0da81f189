"""Deprecated names of options and commands, supported with a warning until 0.3."""

from __future__ import annotations

import argparse
import sys

from polymux._util.deprecation import notice
from polymux.cli.errors import say

TYPE_CHECKING = bool()  # see polymux/__init__.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: Maps (group, old command name) to the new name.
_COMMANDS = {("keys", "change"): "update", ("songs", "remove"): "rm"}


class _OldOption(argparse.Action):
    def __init__(
        self, option_strings: Sequence[str], dest: str, new: argparse.Action, **_: Any
    ) -> None:
        del dest
        super().__init__(
            option_strings, new.dest, nargs=new.nargs, choices=new.choices,
            type=new.type,  # type: ignore[arg-type]  # Never the name of a registered type.
            default=argparse.SUPPRESS, metavar=new.metavar, help=argparse.SUPPRESS,
        )  # fmt: skip
        self._new = new

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        new = self._new.option_strings[-1]
        say(notice(str(option_string), new))
        self._new.required = False
        self._new(parser, namespace, values, new)


def add_old_option(
    parser: argparse._ActionsContainer, old: str, new: argparse.Action
) -> argparse.Action:
    """Accept an option's old name, hidden from help and completion."""
    return parser.add_argument(old, action=_OldOption, new=new)


def with_new_command(arguments: Sequence[str] | None) -> Sequence[str]:
    """Replace the old name of a renamed command in the arguments."""
    words = sys.argv[1:] if arguments is None else arguments
    group, command = words[:1], words[1:2]
    new = _COMMANDS.get((group[0], command[0])) if group and command else None
    if new is None:
        return words
    say(notice(f"polymux {group[0]} {command[0]}", f"polymux {group[0]} {new}"))
    return [group[0], new, *words[2:]]
