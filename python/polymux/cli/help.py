"""`polymux help`: the help of a command, or its man page."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

from polymux._native.version import __version__
from polymux._util.text import did_you_mean, shown
from polymux.cli import errors, parser
from polymux.cli.errors import ExitCode
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.cli import Parser

_EPILOG = """\
examples:
  polymux help models pull
  polymux help exit-codes
  polymux help --man > ~/.local/share/man/man1/polymux.1
  polymux help --man chat > ~/.local/share/man/man1/polymux-chat.1

"""
#: Headings of the parts of an epilog, which become sections of a man page.
_HEADING = re.compile(r"^([a-z][a-z ]*):$", re.MULTILINE)


def describe(command: Parser) -> None:
    command.description = "Show the help of a command."
    command.epilog = _EPILOG + errors.EPILOG
    command.add_argument(
        "words",
        metavar="COMMAND",
        nargs="*",
        help="Command, such as models pull, or exit-codes (default: all commands)",
    )
    command.add_argument("--man", action="store_true", help="Print the man page (roff)")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the help. Return the exit code."""
    if options.words == ["exit-codes"]:
        sys.stdout.write(errors.EXIT_CODES)
        return ExitCode.SUCCESS
    found = _parser_of(options.words)
    if options.man:
        sys.stdout.write("\n".join(man_page(found)) + "\n")
    else:
        found.print_help()
    return ExitCode.SUCCESS


def _parser_of(words: list[str]) -> Parser:
    found = parser()
    for word in words:
        found.fill()
        known = {name: one for names, one, _ in commands_of(found) for name in names}
        if word not in known:
            hint = did_you_mean(word, known)
            group = found.prog.partition(" ")[2]
            raise InvalidRequestError(
                f"{group}{': ' if group else ''}unknown command {shown(word)}"
                f"{hint or '. See polymux --help'}"
            )
        found = known[word]
    found.fill()
    return found


def commands_of(one: Parser) -> Iterator[tuple[list[str], Parser, str]]:
    """Yield names, parser and summary of each command of a parser."""
    for action in one._actions:  # noqa: SLF001 - argparse has no public API for this
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            found: Any = action
            parsers = list(dict.fromkeys(found.choices.values()))
            for described, made in zip(found._choices_actions, parsers, strict=True):  # noqa: SLF001
                names = [name for name, other in found.choices.items() if other is made]
                yield names, made, described.help or ""


def man_page(one: Parser) -> Iterator[str]:
    """Yield the lines of a man page; see man-pages(7) and groff_man(7)."""
    name = one.prog.replace(" ", "-")
    summary = (one.description or "").partition(". ")[0].rstrip(".")
    yield f'.TH {_roff(name.upper())} 1 "" "polymux {__version__}"'
    yield f".SH NAME\n{_roff(name)} \\- {_roff(summary)}"
    usage = " ".join(one.format_usage().removeprefix("usage: ").split())
    yield f".SH SYNOPSIS\n{_roff(usage)}"
    yield f".SH DESCRIPTION\n{_roff(one.description or summary)}"
    options = [
        action
        for action in one._actions  # noqa: SLF001
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    ]
    yield ".SH OPTIONS"
    formatter = one._get_formatter()  # noqa: SLF001
    for action in options:
        yield f".TP\n.B {_roff(formatter._format_action_invocation(action))}"  # noqa: SLF001
        yield _roff(formatter._expand_help(action))  # noqa: SLF001
    commands = list(commands_of(one))
    if commands:
        yield ".SH COMMANDS"
    for names, _, summary in commands:
        yield f".TP\n.B {_roff(', '.join(names))}\n{_roff(summary)}"
    yield from _sections((one.epilog or "").removesuffix(errors.EPILOG) + errors.EXIT_CODES)


def _sections(epilog: str) -> Iterator[str]:
    """Yield the parts of an epilog; their line breaks are kept."""
    notes, *parts = _HEADING.split(epilog)
    for title, text in [("notes", notes), *zip(parts[::2], parts[1::2], strict=True)]:
        if text.strip():
            heading = "exit status" if title == "exit codes" else title
            yield f".SH {heading.upper()}\n.nf\n{_roff(text.strip(chr(10)))}\n.fi"


def _roff(text: str) -> str:
    """Escape a text. A line must not begin with a control character of roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped, flags=re.MULTILINE)
