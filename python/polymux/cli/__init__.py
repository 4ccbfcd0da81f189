"""The `polymux` command.

The table of commands is all that a start of the program needs. A command's module has `describe`,
which describes the command to argparse and sets `run`, a function that returns the exit code. Only
the module of the command that is run is imported.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from polymux._native.version import __version__
from polymux._util.text import printable
from polymux.cli import errors
from polymux.cli.deprecation import with_new_command
from polymux.cli.errors import EPILOG, ExitCode
from polymux.cli.operation_names import NAMES
from polymux.cli.terminal import write_line
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from _typeshed import SupportsWrite


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


class _Command(NamedTuple):
    """One command of the program.

    Attributes:
        name: As it is written.
        help: Its line in the program's help.
        module: In `polymux.cli`; loaded for this command alone. Empty: nothing has to be loaded.
        alias: Another name.
        function: Of the module; describes the command to argparse, and sets `run`.
    """

    name: str
    help: str
    module: str
    alias: str = ""
    function: str = "describe"


_COMMANDS = (
    _Command(
        "convert-to-mp3", "convert audio and video files to MP3", "convert", alias="convert2mp3"
    ),
    *(
        _Command(name, title[0].lower() + title[1:], "calls", alias)
        for operation, name, alias, title in NAMES
        if operation != "convert_to_mp3"
    ),
    _Command("batch", "run an operation on many inputs, and go on after any interruption", "batch"),
    _Command("predictions", "look after the jobs of a server", "predictions"),
    _Command("probe", "show what is in a media file", "probe"),
    _Command("operations", "show the operations of the interface and their fields", "operations"),
    _Command("request", "check a request and show it, without sending it", "request"),
    _Command("serve", "serve the whole interface over HTTP", "serve"),
    _Command("keys", "make, list, change and take away keys of a server", "keys"),
    _Command("config", "check the settings of a server", "serve", function="describe_config"),
    _Command("mcp", "serve the operations as tools of the Model Context Protocol", "mcp"),
    _Command("models", "list, fetch, name and remove the models of engines", "models"),
    _Command("songs", "keep a catalogue of your own music", "songs"),
    _Command("doctor", "show what this installation can do and what is missing", "doctor"),
    _Command("version", "print the version", ""),
    _Command("completion", "print a script that completes commands in a shell", "completion"),
)


class Parser(argparse.ArgumentParser):
    """A parser that prints no control characters, and can get its arguments late.

    Args:
        describe: Adds the arguments before the parser is used. A start of the program loads the
            module of one command, and describes the arguments of one operation.
        options: As `argparse.ArgumentParser` has them.
    """

    def __init__(self, *, describe: Callable[[Parser], None] | None = None, **options: Any) -> None:
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
        self.exit(ExitCode.USAGE, f"{self.prog}: error: {printable(message)}\n")


def add_action(
    actions: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    said: str,
    *,
    more: str = "",
    json_help: str = "one JSON value",
) -> Parser:
    """Adds an action of a command, with the options that all have.

    Args:
        actions: What `add_subparsers` gave.
        name: As it is written.
        run: Does it; the exit code.
        said: Its line in the command's help.
        more: What comes before the exit codes at the end of its own.
        json_help: What `--json` prints.
    """
    made: Parser = actions.add_parser(
        name,
        help=said,
        description=said[0].upper() + said[1:] + ".",
        epilog=more + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--json", dest="as_json", action="store_true", help=json_help)
    made.add_argument("-q", "--quiet", action="store_true", help="show errors only")
    made.set_defaults(run=run)
    return made


def _describe(command: _Command, parser: Parser) -> None:
    if command.module:
        module = import_module(f"polymux.cli.{command.module}")
        getattr(module, command.function)(parser)


def parser() -> Parser:
    """The whole command line."""
    main_parser = Parser(
        prog="polymux",
        description="AI and media tools behind one interface.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main_parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for one in _COMMANDS:
        commands.add_parser(
            one.name,
            aliases=[one.alias] if one.alias else [],
            help=one.help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            describe=partial(_describe, one),
        )
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: Words of the command line without the program's name. Default: `sys.argv`.

    Returns:
        The exit code; see `polymux.cli.errors.ExitCode`.
    """
    _prepare_streams()
    try:
        with termination_as_exception():
            code = _run(arguments)
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        errors.say("interrupted")
        return ExitCode.INTERRUPTED
    except Terminated:
        errors.say("terminated")
        return ExitCode.TERMINATED
    except BrokenPipeError:
        _abandon_standard_output()
        return ExitCode.FAILURE
    except PolymuxError as error:
        return errors.report(error)
    except OSError as error:
        errors.say(f"writing to standard output failed: {error.strerror or error}")
        _abandon_standard_output()
        return ExitCode.FAILURE
    except Exception as error:
        return errors.report(error)


def _run(arguments: Sequence[str] | None) -> int:
    main_parser = parser()
    try:
        options = main_parser.parse_args(with_new_command(arguments))
    except SystemExit:
        sys.stdout.flush()  # Help that nobody could read was none.
        raise
    if options.version or options.command == "version":
        write_line(f"polymux {__version__}")
        return ExitCode.SUCCESS
    if options.command is None:
        main_parser.print_help(sys.stderr)
        return ExitCode.USAGE
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
