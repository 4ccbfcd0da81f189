"""The `polymux` command.

Each family of commands is one module with `add_commands`, which describes it to argparse, and a
function that does it and returns the exit code. Neither the native modules nor the client are
loaded before a command that needs them runs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

from polymux.cli import (
    batch,
    calls,
    completion,
    convert,
    doctor,
    errors,
    exit_codes,
    mcp,
    models,
    operations,
    predictions,
    probe,
    request,
    serve,
    songs,
)
from polymux.cli.deprecation import with_new_command
from polymux.cli.operation_arguments import Parser
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


def _terminate(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - as signal calls it
    raise Terminated


@contextmanager
def termination_as_exception() -> Iterator[None]:
    """While inside, SIGTERM raises `Terminated` in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Signals are the main thread's; whoever runs us elsewhere has them.
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_FAMILIES = (
    convert,
    calls,
    batch,
    predictions,
    probe,
    operations,
    request,
    serve,
    mcp,
    models,
    songs,
    doctor,
    completion,
)


def parser() -> Parser:
    """The whole command line."""
    main_parser = Parser(
        prog="polymux",
        description="AI and media tools behind one interface.",
        epilog=exit_codes.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main_parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for family in _FAMILIES:
        family.add_commands(commands)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: Words of the command line without the program's name. Default: `sys.argv`.

    Returns:
        The exit code; see `polymux.cli.exit_codes`.
    """
    _prepare_streams()
    try:
        with termination_as_exception():
            code = _run(arguments)
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        errors.say("interrupted")
        return exit_codes.INTERRUPTED
    except Terminated:
        errors.say("terminated")
        return exit_codes.TERMINATED
    except BrokenPipeError:
        _abandon_standard_output()
        return exit_codes.FAILURE
    except PolymuxError as error:
        return errors.report(error)
    except OSError as error:
        errors.say(f"writing to standard output failed: {error.strerror or error}")
        _abandon_standard_output()
        return exit_codes.FAILURE
    except Exception as error:
        return errors.report(error)


def _run(arguments: Sequence[str] | None) -> int:
    main_parser = parser()
    try:
        options = main_parser.parse_args(with_new_command(arguments))
    except SystemExit:
        sys.stdout.flush()  # Help that nobody could read was none.
        raise
    if options.version:
        return doctor.run_version(options)
    if options.command is None:
        main_parser.print_help(sys.stderr)
        return exit_codes.USAGE
    code: int = options.run(options)
    return code


def _prepare_streams() -> None:
    """Something harmless in the place of closed streams, and an escape for what they cannot say."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    if isinstance(sys.stdout, TextIOWrapper):
        # What Python sets in the C locale gives back bytes, and has no word for other letters.
        narrow = sys.stdout.encoding.lower().replace("-", "") != "utf8"
        if sys.stdout.errors == "strict" or (narrow and sys.stdout.errors == "surrogateescape"):
            sys.stdout.reconfigure(errors="backslashreplace")


def _abandon_standard_output() -> None:
    """Keeps the interpreter from complaining when it flushes what nobody takes any more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
