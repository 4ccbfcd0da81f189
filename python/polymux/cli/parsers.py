"""The parsers of the command line."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from polymux._util.text import printable
from polymux.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed import SupportsWrite


class Parser(argparse.ArgumentParser):
    """A parser that passes on no control characters, and may be described when it is needed.

    Args:
        describe: Adds the arguments, once somebody parses with it or reads its help: the operations
            have hundreds, and one command needs those of one.
        options: As `argparse.ArgumentParser` has them.
    """

    def __init__(self, *, describe: Callable[[Parser], None] | None = None, **options: Any) -> None:
        """Keeps what is given."""
        super().__init__(**options)
        self._describe = describe

    def fill(self) -> None:
        """Adds the arguments that were put off."""
        describe, self._describe = self._describe, None
        if describe is not None:
            describe(self)

    def parse_known_args(  # type: ignore[override]  # narrower than its overloads
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parses; see `argparse`."""
        self.fill()
        found: tuple[Any, list[str]] = super().parse_known_args(args, namespace)
        return found

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Prints the help. argparse passes over that it could not be written, as to a full disk."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Ends the program with the usage and the message."""
        self.print_usage(sys.stderr)
        self.exit(exit_codes.USAGE, f"{self.prog}: error: {printable(message)}\n")
