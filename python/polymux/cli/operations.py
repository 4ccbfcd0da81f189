"""`polymux operations`: print the contract as text or JSON."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from polymux import contract
from polymux.cli import JSON
from polymux.cli.errors import EPILOG, ExitCode
from polymux.cli.operation_arguments import find_command
from polymux.cli.terminal import write_line
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from polymux.cli import Parser
    from polymux.contract import Field, Operation, Variant

_JSON_HELP = """\
With --json, standard output is one JSON list of {"path", "method", "variants": [{"model",
"encoding", "accepts", "fields": [{"name", "type", "required", "default", "minimum", "maximum",
"choices", "unit", "extension", "title", "doc"}]}]}.

"""


def describe(parser: Parser) -> None:
    parser.description = "List all operations, or show one operation with all its fields."
    parser.epilog = _JSON_HELP + EPILOG
    parser.add_argument(
        "operation",
        metavar="OPERATION",
        nargs="?",
        help="Operation: its method name, command, path, or last segment of the path",
    )
    parser.add_argument("--json", action="store_true", help=JSON)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the contract. Return the exit code."""
    try:
        return _print(options)
    except InvalidRequestError:
        find_command(options.operation)  # Its error suggests the name that was probably meant.
        raise


def _print(options: argparse.Namespace) -> int:
    if options.json:
        for line in json.dumps(contract.describe(options.operation), indent=2).splitlines():
            write_line(line)
        return ExitCode.SUCCESS
    if options.operation is None:
        for one in contract.operations():
            write_line(f"{one.name:<16} POST {one.path:<36} {one.title}")
        return ExitCode.SUCCESS
    for line in _operation(contract.operation(options.operation)):
        write_line(line)
    return ExitCode.SUCCESS


def _operation(one: Operation) -> Iterator[str]:
    yield f"{one.title}: {one.summary}"
    yield f"  POST {one.path}, returns {one.result}"
    for variant in one.variants:
        yield from _variant(variant)


def _variant(one: Variant) -> Iterator[str]:
    yield ""
    name = f"variant {one.id}, " if one.id else ""
    model = f"?model={one.model}, " if one.model else ""
    others = [encoding for encoding in one.accepts if encoding != one.encoding]
    also = f" (or {', '.join(others)})" if others else ""
    yield f"{name}{model}encoding {one.encoding}{also}"
    if one.summary:
        yield f"  {one.summary}"
    for field in one.fields:
        yield from _field(field)
    for rule in one.rules:
        yield f"  rule: {rule.rule.replace('_', ' ')}: {', '.join(rule.fields)}"


def _field(field: Field) -> Iterator[str]:
    facts = [field.type]
    if field.required:
        facts.append("required")
    if field.default is not None:
        facts.append(f"default {json.dumps(field.default)}")
    if field.minimum is not None or field.maximum is not None:
        low = "" if field.minimum is None else f"{field.minimum:g}"
        high = "" if field.maximum is None else f"{field.maximum:g}"
        facts.append(f"{low}..{high} {field.unit or ''}".rstrip())
    elif field.unit:
        facts.append(field.unit)
    if field.multiple_of:
        facts.append(f"multiple of {field.multiple_of}")
    if field.choices:
        facts.append("one of " + ", ".join(json.dumps(choice) for choice in field.choices))
    if field.aliases:
        facts.append("aliases " + ", ".join(field.aliases))
    if field.extension:
        facts.append("extension")
    yield from textwrap.wrap(
        f"{field.name}: {'; '.join(facts)}", 100, initial_indent="  ", subsequent_indent="      "
    )
    yield from textwrap.wrap(field.doc, 100, initial_indent="      ", subsequent_indent="      ")
