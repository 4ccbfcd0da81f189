"""The `polymux` command.

Each family of commands is one module with `add_arguments`, which describes it to argparse, and
`run`, which does it and returns the exit code. Nothing native is loaded before a command runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from polymux._text import printable
from polymux.cli import convert, exit_codes, installation, operations, probe, request
from polymux.cli.signals import Terminated, termination_as_exception
from polymux.errors import InvalidRequestError, MissingDependencyError, PolymuxError

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Parser(argparse.ArgumentParser):
    """Shows what it was given without passing on control characters."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with the usage and the message."""
        self.print_usage(sys.stderr)
        self.exit(exit_codes.USAGE, f"{self.prog}: error: {printable(message)}\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    main_parser = _Parser(
        prog="polymux",
        description="AI and media tools behind one interface.",
        epilog=exit_codes.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main_parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for family in (convert, probe, operations, request, installation):
        family.add_commands(commands)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: Words of the command line without the program's name. Default: `sys.argv`.

    Returns:
        The exit code; see `polymux.cli.exit_codes`.
    """
    _open_missing_streams()
    try:
        with termination_as_exception():
            code = _run(arguments)
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        _say("interrupted")
        return exit_codes.INTERRUPTED
    except Terminated:
        _say("terminated")
        return exit_codes.TERMINATED
    except BrokenPipeError:
        _abandon_standard_output()
        return exit_codes.FAILURE
    except MissingDependencyError as error:
        _say(f"{error} ('polymux doctor' shows what is there)")
        return exit_codes.MISSING_DEPENDENCY
    except InvalidRequestError as error:
        _say(str(error))
        return exit_codes.USAGE
    except PolymuxError as error:
        _say(str(error))
        return exit_codes.FAILURE
    except OSError as error:
        _say(f"writing to standard output failed: {error.strerror or error}")
        _abandon_standard_output()
        return exit_codes.FAILURE


def _run(arguments: Sequence[str] | None) -> int:
    main_parser = parser()
    options = main_parser.parse_args(arguments)
    if options.version:
        return installation.run_version(options)
    if options.command is None:
        main_parser.print_help(sys.stderr)
        return exit_codes.USAGE
    code: int = options.run(options)
    return code


def _open_missing_streams() -> None:
    """Gives a program started with closed streams something harmless in their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _say(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"polymux: {printable(text)}\n")


def _abandon_standard_output() -> None:
    """Keeps the interpreter from complaining when it flushes what nobody takes any more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
