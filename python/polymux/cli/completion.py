"""`polymux completion`: what a shell needs to complete the command line."""

from __future__ import annotations

import argparse
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from polymux.cli.operation_arguments import Parser

SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\
examples:
  polymux completion bash > ~/.local/share/bash-completion/completions/polymux
  polymux completion zsh > "${fpath[1]}/_polymux"
  polymux completion fish > ~/.config/fish/completions/polymux.fish

"""
_MAX_HELP_CHARACTERS = 70
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

    from polymux.cli import completion, parser

    write = {
        "bash": completion.bash,
        "zsh": completion.zsh,
        "fish": completion.fish,
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
        elif action.option_strings and action.help != argparse.SUPPRESS:
            options.append(_option(action, path))
        elif not action.option_strings and not words:
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
    if len(said) > _MAX_HELP_CHARACTERS:
        said = said[: _MAX_HELP_CHARACTERS - 3].rpartition(" ")[0] + "..."
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


_BASH = """\
# Completion of polymux for bash. Made by 'polymux completion bash'.
_polymux() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local command= candidates= word index
    # bash takes --option=value for three words.
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "$command/${{COMP_WORDS[index]}}" in
{commands}
        esac
    done
    case "$command $previous" in
{values}
        *)
            if [[ $current == -* ]]; then
                case "$command" in
{options}
                esac
            else
                case "$command $previous" in
{words}
                esac
            fi
            ;;
    esac
    COMPREPLY=()
    while IFS= read -r word; do
        if [[ -n $word && $word == "${{current//\\\\/}}"* ]]; then
            COMPREPLY+=("$(printf %q "$word")")
        fi
    done <<<"$candidates"
}}
complete -o bashdefault -o default -F _polymux polymux
"""

_ZSH = """\
#compdef polymux
# Completion of polymux for zsh. Made by 'polymux completion zsh'.
_polymux() {{
    local current=$words[CURRENT] previous=$words[CURRENT-1] command= index
    local -a candidates
    if [[ $current == --*=* ]]; then
        previous=${{current%%=*}}
        current=
        compset -P '*='
    fi
    for ((index = 2; index < CURRENT; index++)); do
        case "$command/$words[index]" in
{commands}
        esac
    done
    case "$command $previous" in
{values}
        *)
            if [[ $current == -* ]]; then
                case "$command" in
{options}
                esac
            else
                case "$command $previous" in
{words}
                esac
            fi
            ;;
    esac
    if (( $#candidates )); then
        compadd -a candidates
    else
        _files
    fi
}}
if [[ $funcstack[1] == _polymux ]]; then
    _polymux "$@"
else
    compdef _polymux polymux
fi
"""


def bash(nodes: Sequence[Node]) -> str:
    """For bash 4 and newer."""
    return _script(_BASH, nodes, lambda words: f"candidates={quote(chr(10).join(words))}")


def zsh(nodes: Sequence[Node]) -> str:
    """For zsh 5 and newer, sourced after `compinit` or from a folder of `fpath`."""
    return _script(_ZSH, nodes, lambda words: f"candidates=({' '.join(map(quote, words))})")


def _script(frame: str, nodes: Sequence[Node], given: Callable[[Iterable[str]], str]) -> str:
    """The frame with the tables in it; `given` sets the candidates in the shell's words."""

    def row(pattern: str, words: Iterable[str], columns: int) -> str:
        return f"{' ' * columns}{pattern}) {given(words)} ;;"

    commands, values, options, words = [], [], [], []
    for node in nodes:
        command = " ".join(node.path)
        if node.path:
            above = quote(" ".join(node.path[:-1]) + "/")
            pattern = " | ".join(f"{above}{name}" for name in node.names)
            commands.append(f"{' ' * 12}{pattern}) command={quote(command)} ;;")
        values += [
            row(" | ".join(quote(f"{command} {name}") for name in one.names), one.choices, 8)
            for one in node.options
            if one.choices
        ]
        options.append(row(quote(command), _spellings(node), 16))
        if node.words:
            # Right behind the command, by whatever name it was called.
            before = " | ".join(quote(f"{command} {name}") for name in node.names)
            words.append(row(before or "' '*", node.words, 20))
    tables = (commands, values, options, words)
    filled = dict(
        zip(("commands", "values", "options", "words"), map("\n".join, tables), strict=True)
    )
    return frame.format(**filled)


def _spellings(node: Node) -> Iterator[str]:
    for one in node.options:
        yield from one.names


def fish(nodes: Sequence[Node]) -> str:
    """For fish 3 and newer."""
    lines = ["# Completion of polymux for fish. Made by 'polymux completion fish'."]
    by_path = {node.path: node for node in nodes}
    for node in nodes:
        inside = _fish_condition(node, by_path)
        outside = "__fish_use_subcommand"
        for node_below in (one for one in nodes if one.path[:-1] == node.path and one.path):
            condition = outside
            if node.path:
                condition = f"{inside}; and not __fish_seen_subcommand_from {' '.join(node.words)}"
            lines.append(
                f"complete -c polymux -f -n {_fish(condition)} -a {_fish(node_below.path[-1])} "
                f"-d {_fish(node_below.help)}"
            )
        if node.words and not any(one.path[:-1] == node.path for one in nodes if one.path):
            lines.append(f"complete -c polymux -f -n {_fish(inside)} -a {_fish_list(node.words)}")
        for option in node.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = ""
            if option.takes_value:
                value = " -r" if option.files else " -x"
            if option.choices:
                value = f" -x -a {_fish_list(option.choices)}"
            condition = inside if node.path else outside
            lines.append(
                f"complete -c polymux -n {_fish(condition)} {names}{value} -d {_fish(option.help)}"
            )
    return "\n".join(lines) + "\n"


def _fish_condition(node: Node, by_path: dict[tuple[str, ...], Node]) -> str:
    parts = [by_path[node.path[:length]].names for length in range(1, len(node.path) + 1)]
    return "; and ".join(f"__fish_seen_subcommand_from {' '.join(names)}" for names in parts)


def _fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _fish_list(words: Iterable[str]) -> str:
    """Words that may hold blanks: fish takes one of each line that a command prints."""
    return _fish(f"(printf '%s\\n' {' '.join(_fish(word) for word in words)})")
