"""The operations on the command line: their arguments and their names."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from contract import docstrings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contract.model import Contract, Field, Operation

HEAD = '''"""Operations as commands. Made by scripts/generate from contract/; do not edit."""

from polymux.cli.operation_arguments import Argument, Command

'''


NAMES_HEAD = '''"""Names of commands. Made by scripts/generate from contract/; do not edit.

Separate from the arguments, because starting the program only needs the names.
"""

'''

_MAX_LINE = 100


def files(contract: Contract) -> dict[str, str]:
    """Map paths, relative to the repository root, to contents."""
    parts = "".join(_command(one) for one in contract.operations)
    names = "".join(_names(one) for one in contract.operations)
    return {
        "python/polymux/cli/operation_commands.py": f"{HEAD}COMMANDS = (\n{parts})\n",
        "python/polymux/cli/operation_names.py": (
            f"{NAMES_HEAD}#: Operation, command, aliases, line in the help.\nNAMES = (\n{names})\n"
        ),
    }


def _names(one: Operation) -> str:
    # The main clause of the summary fits a line of the program's help.
    clause = one.summary.partition(",")[0].rstrip(".")
    aliases = ", ".join(map(json.dumps, one.command_aliases))
    aliases = f"({aliases})" if len(one.command_aliases) > 1 else f"({aliases},)"
    words = [json.dumps(one.name), json.dumps(one.command), aliases, json.dumps(clause)]
    line = f"    ({', '.join(words)}),\n"
    if len(line) <= _MAX_LINE + 1:
        return line
    return "    (\n" + "".join(f"        {word},\n" for word in words) + "    ),\n"


def _command(one: Operation) -> str:
    arguments = "".join(_argument(one, field) for field in _in_order(one))
    models = [variant.model for variant in one.variants if variant.model]
    return (
        "    Command(\n"
        f"        operation={one.name!r},\n"
        f"        name={one.command!r},\n"
        f"        aliases={_strings(one.command_aliases)},\n"
        f"        summary={one.summary!r},\n"
        f"        models={_strings(models)},\n"
        f"        model_help={_in_terminal(one, _model(one)) if models else ''!r},\n"
        f"        arguments=(\n{arguments}        ),\n"
        "    ),\n"
    )


def _in_order(one: Operation) -> Iterator[Field]:
    """Return the fields in the order of the contract, with the positional argument first."""
    yield from sorted(one.all_fields(), key=lambda field: field.name != one.first)


def _argument(operation: Operation, one: Field) -> str:
    same = [field for variant in operation.variants for field in variant.fields]
    choices = [
        choice for field in same if field.name == one.name for choice in map(str, field.choices)
    ]
    lines = [f"name={one.name!r}", f"kind={_kind(one)!r}"]
    if one.name == operation.first:
        lines.append(f"metavar={one.python_name.upper()!r}")
    else:
        names = dict.fromkeys([one.python_name, *one.aliases])
        lines.append(f"options={_strings('--' + name.replace('_', '-') for name in names)}")
    if choices and len(one.type) == 1:
        lines.append(f"choices={_strings(dict.fromkeys(choices))}")
    lines.append(f"help={_in_terminal(operation, docstrings.description(operation, one))!r}")
    return "            Argument(" + ", ".join(lines) + "),\n"


def _model(one: Operation) -> str:
    """Describe the option --model: the model of each variant, and the default."""
    if len(one.variants) == 1:
        return docstrings.model(one)
    *others, last = [f"{variant.model} (variant {variant.id})" for variant in one.variants]
    default = docstrings.model(one).partition(docstrings.DEFAULT)[2]
    return (
        f"Model to use: {', '.join(others)}, {last}, or the name of an installed model. Default: "
        f"{default}"
    )


def _in_terminal(operation: Operation, text: str) -> str:
    """Return a description without Markdown, with options instead of the names of fields."""
    names = {
        name: one.python_name.upper()
        if one.name == operation.first
        else f"--{one.python_name.replace('_', '-')}"
        for one in operation.all_fields()
        for name in (one.name, one.python_name)
    }
    text = text.replace("``True``", "on").replace("``False``", "off").replace("``", "")
    return re.sub("`(.+?)`", lambda code: names.get(code[1], f"'{code[1]}'"), text)


def _kind(one: Field) -> str:
    kinds = set(one.type)
    if "file" in kinds:
        return "file"
    if "array" in kinds and one.items == "string":
        return "texts"
    if kinds & {"array", "object"}:
        return "text or json" if "string" in kinds or one.name == "messages" else "json"
    if "string" in kinds:
        return "text"
    return one.type[0]


def _strings(names: Iterable[str]) -> str:
    return "(" + "".join(f"{name!r}, " for name in names) + ")"
