"""The `polymux` command.

At startup, only the table of commands is loaded. Each command's module has `describe`, which adds
the command's arguments to argparse and sets `run`, a function that returns the exit code. Only the
module of the command in use is imported.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from io import TextIOWrapper

from polymux._native.version import __version__
from polymux._util.text import did_you_mean, printable, shown
from polymux.cli import errors
from polymux.cli.deprecation import with_new_command
from polymux.cli.errors import EPILOG, ExitCode
from polymux.cli.operation_names import NAMES
from polymux.cli.terminal import BOLD, RED, has_colors, styled, write_line
from polymux.errors import PolymuxError

TYPE_CHECKING = bool()  # see polymux/__init__.py
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NoReturn

    from _typeshed import SupportsWrite


class Terminated(BaseException):
    """Raised in the main thread by SIGTERM."""


def _terminate(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - a signal handler
    raise Terminated


@contextmanager
def termination_as_exception() -> Iterator[None]:
    """Make SIGTERM raise `Terminated` in the main thread within the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread can set signal handlers.
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Command:
    """One command of the program.

    Attributes:
        name: The command's name.
        help: Its line in the program's help.
        module: Module in `polymux.cli`, imported only for this command; empty if not needed.
        group: Heading in the program's help.
        aliases: Alternative names.
        function: Function of the module that adds the arguments to argparse and sets `run`.
    """

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - argparse's name
        module: str,
        group: str,
        aliases: tuple[str, ...] = (),
        function: str = "describe",
    ) -> None:
        self.name, self.help, self.module, self.group = name, help, module, group
        self.aliases, self.function = aliases, function


#: Help of `--json`.
JSON = "Print JSON"
JSON_ARRAY = "Print one JSON array"
JSON_LINES = "Print one JSON object per line"

#: Headings in a help.
_HEADING = re.compile(r"^(usage:|[A-Za-z][A-Za-z ,]*:$)", re.MULTILINE)
_OPERATIONS = "Operations"
_FILES_AND_JOBS = "Files, jobs and models"
_SERVER_AND_SETUP = "Server and setup"

_COMMANDS = (
    _Command(
        "convert-to-mp3",
        "convert audio and video files to MP3",
        "convert",
        _OPERATIONS,
        aliases=("convert2mp3",),
    ),
    *(
        _Command(name, help_[0].lower() + help_[1:], "calls", _OPERATIONS, aliases)
        for operation, name, aliases, help_ in NAMES
        if operation != "convert_to_mp3"
    ),
    _Command("batch", "run or resume an operation on many inputs", "batch", _FILES_AND_JOBS),
    _Command(
        "predictions", "list, wait for and cancel jobs on a server", "predictions", _FILES_AND_JOBS
    ),
    _Command("probe", "show format, streams and tags of media files", "probe", _FILES_AND_JOBS),
    _Command("songs", "manage the index of your music library", "songs", _FILES_AND_JOBS),
    _Command("models", "list, download, add and remove models", "models", _FILES_AND_JOBS),
    _Command("operations", "list operations and their fields", "operations", _FILES_AND_JOBS),
    _Command("request", "print a request without sending it", "request", _FILES_AND_JOBS),
    _Command("serve", "start the HTTP server", "serve", _SERVER_AND_SETUP),
    _Command("mcp", "start an MCP server (Model Context Protocol)", "mcp", _SERVER_AND_SETUP),
    _Command("keys", "manage the API keys of a server", "keys", _SERVER_AND_SETUP),
    _Command(
        "config",
        "check a server configuration",
        "serve",
        _SERVER_AND_SETUP,
        function="describe_config",
    ),
    _Command(
        "doctor", "check the installation and list missing parts", "doctor", _SERVER_AND_SETUP
    ),
    _Command("completion", "print a shell completion script", "completion", _SERVER_AND_SETUP),
    _Command("help", "show the help or the man page of a command", "help", _SERVER_AND_SETUP),
    _Command("version", "print the version", "", _SERVER_AND_SETUP),
)


class Parser(argparse.ArgumentParser):
    """A parser that adds its arguments on first use and prints no control characters.

    Args:
        describe: Adds the arguments before the first use. It imports the command's module and
            describes the arguments of one operation only.
        options: Arguments of `argparse.ArgumentParser`.
    """

    def __init__(self, *, describe: Callable[[Parser], None] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._describe = describe

    def fill(self) -> None:
        """Add the deferred arguments."""
        describe, self._describe = self._describe, None
        if describe is not None:
            describe(self)

    def parse_known_args(  # type: ignore[override]  # narrower than its overloads
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        self.fill()
        found: tuple[Any, list[str]] = super().parse_known_args(args, namespace)
        if found[1]:  # Report it here, with the usage of this command instead of the program's.
            self.error(self._unknown(found[1]))
        return found

    def _unknown(self, words: list[str]) -> str:
        options = [one for one in words if one.startswith("-") and one != "-"]
        if not options:
            return f"unexpected argument {shown(words[0])}"
        name = options[0].partition("=")[0]
        known = (
            option
            for action in self._actions
            if action.help != argparse.SUPPRESS
            for option in action.option_strings
        )
        return f"unknown option {shown(name)}{did_you_mean(name, known)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check a choice, and suggest the one that was probably meant."""
        if action.choices is None or value in action.choices:
            return
        known = [str(one) for one in action.choices]
        hint = did_you_mean(str(value), known)
        if action.nargs == argparse.PARSER:
            what = str(action.metavar).lower()
            message = f"unknown {what} {shown(value)}"
            raise argparse.ArgumentError(None, message + (hint or f". Run '{self.prog} --help'"))
        message = f"invalid value (got {shown(value)}, allowed {', '.join(known)}){hint}"
        raise argparse.ArgumentError(action, message)

    def get_default(self, dest: str) -> Any:
        """Return an option's default. A deprecated name of the option has none."""
        found = super().get_default(dest)
        return None if found is argparse.SUPPRESS else found

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help. Unlike argparse, raise if writing fails, for example on a full disk."""
        text = self.format_help()
        if file is None and has_colors(sys.stdout):
            text = _HEADING.sub(lambda found: styled(found[0], BOLD), text)
        (file or sys.stdout).write(text)

    def error(self, message: str) -> NoReturn:
        """Exit with the usage and the message."""
        self.print_usage(sys.stderr)
        line = f"{self.prog}: error: {printable(message)}"
        self.exit(ExitCode.USAGE, f"{styled(line, RED) if has_colors(sys.stderr) else line}\n")


class _MainParser(Parser):
    def format_help(self) -> str:
        """Return the help with the commands in groups, without aliases, in at most 40 lines."""
        lines = [f"{self.format_usage()}\n{self.description}"]
        for group in dict.fromkeys(one.group for one in _COMMANDS):
            lines.append(f"\n{group}:")
            lines += [f"  {one.name:<17}{one.help}" for one in _COMMANDS if one.group == group]
        lines.append("\nOptions: polymux COMMAND --help. Exit codes: polymux help exit-codes.\n")
        return "\n".join(lines)


def add_quiet(parser: argparse._ActionsContainer) -> None:
    """Add `--quiet` to a command that prints progress or messages."""
    parser.add_argument(
        "-q", "--quiet", action="store_true", default=False, help="Show only errors"
    )


def add_action(
    actions: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    *,
    more: str = "",
    json_help: str | None = JSON,
) -> Parser:
    """Add an action of a command with the options that all actions have.

    Args:
        actions: The object that `add_subparsers` returned.
        name: The action's name.
        run: Runs the action and returns the exit code.
        summary: Its line in the command's help.
        more: Text before the exit codes at the end of its help.
        json_help: Help of `--json`. None: the action has no such option.
    """
    made: Parser = actions.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=more + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if json_help is not None:
        made.add_argument("--json", dest="as_json", action="store_true", help=json_help)
    add_quiet(made)
    made.set_defaults(run=run)
    return made


def _describe(command: _Command, parser: Parser) -> None:
    if command.module:
        module = import_module(f"polymux.cli.{command.module}")
        getattr(module, command.function)(parser)


def parser(command: str | None = None) -> Parser:
    """Return the parser of the command line.

    Args:
        command: The only command to run, if there is one of this name. The parsers of the others
            would take an eighth of the program's start. Default: all commands.
    """
    main_parser = _MainParser(
        prog="polymux",
        description="Run AI and media operations on this machine or on a polymux server.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main_parser.add_argument(
        "-V", "--version", action="store_true", help="Print the version and exit"
    )
    # Without `prog`, argparse formats the usage to get it.
    commands = main_parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", parser_class=Parser, prog="polymux"
    )
    wanted = [one for one in _COMMANDS if command == one.name or command in one.aliases]
    for one in wanted or _COMMANDS:
        commands.add_parser(
            one.name,
            aliases=one.aliases,
            help=one.help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            describe=partial(_describe, one),
        )
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Arguments of the command line without the program's name. Default: `sys.argv`.

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
        errors.say(f"standard output: writing failed: {error.strerror or error}")
        _abandon_standard_output()
        return ExitCode.FAILURE
    except Exception as error:
        return errors.report(error)


def _run(arguments: Sequence[str] | None) -> int:
    words = with_new_command(arguments)
    first = words[0] if words else None
    main_parser = parser("version" if first in {"-V", "--version"} else first)
    try:
        options = main_parser.parse_args(words)
    except SystemExit:
        sys.stdout.flush()  # Report it if the help could not be written.
        raise
    if options.version or options.command == "version":
        write_line(f"polymux {__version__}")
        return ExitCode.SUCCESS
    if options.command is None:
        main_parser.print_help(sys.stderr)
        return ExitCode.USAGE
    if "local" in options:
        from polymux.cli.server import is_local

        options.local = is_local(options)
    code: int = options.run(options)
    return code


def _prepare_streams() -> None:
    """Replace closed standard streams, and escape characters that stdout cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    if isinstance(sys.stdout, TextIOWrapper):
        # Python's surrogateescape in the C locale cannot encode other characters.
        narrow = sys.stdout.encoding.lower().replace("-", "") != "utf8"
        if sys.stdout.errors == "strict" or (narrow and sys.stdout.errors == "surrogateescape"):
            sys.stdout.reconfigure(errors="backslashreplace")


def _abandon_standard_output() -> None:
    """Redirect standard output to the null device, so the flush at exit does not fail."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
