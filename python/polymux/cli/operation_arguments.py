"""The operations' fields as arguments of commands."""

from __future__ import annotations

import argparse
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import did_you_mean, shown, unknown_operation
from polymux.cli.terminal import standard_input
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable


MAX_JSON_BYTES = 64 << 20
#: Short options of `polymux convert-to-mp3`, also for `polymux batch` and `polymux request`.
_SHORT = {"bitrate": ("-b",), "vbr_quality": ("-V",)}


class Argument(NamedTuple):
    """One field of an operation as an argument of a command.

    Attributes:
        name: The field's name.
        kind: ``"text"``, ``"texts"`` (repeatable), ``"integer"``, ``"number"``, ``"boolean"``,
            ``"file"``, ``"json"`` or ``"text or json"``.
        help: Description with bounds.
        metavar: Name of a positional argument in the usage; empty for options.
        options: Names of the option.
        choices: Allowed values of all variants; empty if any value is allowed.
    """

    name: str
    kind: str
    help: str
    metavar: str = ""
    options: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


class Command(NamedTuple):
    """One operation as a command.

    Attributes:
        operation: Its name in the contract.
        name: The command's name.
        aliases: Alternative names. The first one is the path's last segment.
        summary: Description.
        models: Values of ``--model``; empty if there is no choice.
        model_help: Description of ``--model`` with its values and default.
        arguments: The operation's fields, the positional one first.
    """

    operation: str
    name: str
    aliases: tuple[str, ...]
    summary: str
    models: tuple[str, ...]
    model_help: str
    arguments: tuple[Argument, ...]


def find_command(name: str) -> Command:
    """Return the command of that name or alias.

    Raises:
        InvalidRequestError: Unknown operation.
    """
    from polymux.cli.operation_commands import COMMANDS  # It imports the classes above.

    wanted = name.replace("_", "-")
    for one in COMMANDS:
        if wanted == one.name or wanted in one.aliases:
            return one
    hint = did_you_mean(wanted, [one.name for one in COMMANDS])
    raise InvalidRequestError(unknown_operation(name) + hint)


def add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the operation's fields as arguments to argparse."""
    for one in command.arguments:
        if one.metavar:
            parser.add_argument(one.name, metavar=one.metavar, nargs="?", help=_help(one))
        elif one.kind == "boolean":
            parser.add_argument(
                *one.options,
                dest=one.name,
                action=argparse.BooleanOptionalAction,
                default=None,
                help=_help(one),
            )
        else:
            parser.add_argument(
                *_SHORT.get(one.name, ()),
                *one.options,
                dest=one.name,
                action="append" if one.kind == "texts" else "store",
                metavar=_METAVARS[one.kind],
                help=_help(one),
            )
    if command.models:
        parser.add_argument(
            "--model", dest="selected_model", metavar="MODEL", help=command.model_help
        )
    parser.add_argument(
        "--extra-body",
        metavar="JSON",
        help="Additional fields, sent without validation: a JSON object or @FILE.",
    )


def values_of(command: Command, options: argparse.Namespace) -> dict[str, Any]:
    """Return the given fields by name.

    Raises:
        InvalidRequestError: A value is invalid.
        InputNotFoundError: A JSON file does not exist.
        InputUnreadableError: A JSON file cannot be read.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for one in command.arguments:
        given = getattr(options, one.name)
        if given is None:
            continue
        try:
            values[one.name] = _READERS[one.kind](given)
        except ValueError as error:
            problems.append(f"{_shown_name(one)}: {error}")
    if problems:
        raise InvalidRequestError("; ".join(problems))
    return values


def extra_body_of(options: argparse.Namespace) -> dict[str, Any] | None:
    """Return the value of ``--extra-body``.

    Raises:
        InvalidRequestError: It is not a JSON object.
        InputNotFoundError: Its file does not exist.
        InputUnreadableError: Its file cannot be read.
    """
    if options.extra_body is None:
        return None
    try:
        value = _json_text(options.extra_body)
    except ValueError as error:
        raise InvalidRequestError(f"--extra-body: {error}") from None
    if not isinstance(value, dict):
        raise InvalidRequestError(f"--extra-body: must be a JSON object (got {shown(value)})")
    return value


_METAVARS = {
    "text": "TEXT",
    "texts": "TEXT",
    "integer": "N",
    "number": "X",
    "file": "FILE",
    "json": "JSON",
    "text or json": "TEXT|JSON",
}


def _help(one: Argument) -> str:
    text = one.help
    if one.choices:
        text += f" One of {', '.join(one.choices)}."
    if one.kind == "file":
        text += " A path, or - for standard input."
    if one.kind == "texts":
        text += " Repeatable."
    if "json" in one.kind:
        text += " @FILE reads JSON from a file."
    return text.replace("%", "%%")


def _shown_name(one: Argument) -> str:
    return one.metavar or one.options[0]


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"invalid value (got {shown(text)}, allowed an integer)") from None


def _number(text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ValueError(f"invalid value (got {shown(text)}, allowed a number)")


def _file(text: str) -> Any:
    return ("stdin", standard_input()) if text == "-" else text


def _texts(given: list[str]) -> str | list[str]:
    return given[0] if len(given) == 1 else given


def _text_or_json(text: str) -> Any:
    if text.startswith("@") and (
        os.path.isfile(text[1:])  # noqa: PTH113 - no pathlib for --help
        or (text.endswith(".json") and len(text.split()) == 1)  # Probably a missing file.
    ):
        return _json_text(text)
    if text.lstrip().startswith(("{", "[")):
        with suppress(ValueError):  # Not JSON: a text that starts with a bracket.
            return _json_text(text)
    return text


def _json_text(text: str) -> Any:
    if text.lstrip().startswith("@"):
        path = text.lstrip()[1:]
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                body = file.read(MAX_JSON_BYTES + 1)
        except FileNotFoundError:
            raise InputNotFoundError("file not found", input_name=path) from None
        except OSError as error:
            reason = error.strerror or "cannot be read"
            raise InputUnreadableError(reason, input_name=path, errno=error.errno) from None
        if len(body) > MAX_JSON_BYTES:
            raise ValueError(f"{shown(path)} is too large (allowed 64 MiB)")
        source = f"the content of {shown(path)}"
    else:
        body = text.encode("utf-8", "surrogatepass")
        source = shown(text)
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError(f"{source} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{source} is not valid JSON: {error}") from None


_READERS: dict[str, Callable[[Any], Any]] = {
    "text": str,
    "texts": _texts,
    "integer": _integer,
    "number": _number,
    "boolean": bool,
    "file": _file,
    "json": _json_text,
    "text or json": _text_or_json,
}
