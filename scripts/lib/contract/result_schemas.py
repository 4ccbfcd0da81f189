"""JSON Schemas of what comes back: the server's OpenAPI document is made with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from contract import python_methods, python_types
from contract.model import VALUE_TYPES, nested

if TYPE_CHECKING:
    from contract.model import Contract, Field, ObjectType

_PLACE = "#/components/schemas/"
_MAX_LINE = 90


def files(contract: Contract) -> dict[str, str]:
    """Path below the repository's root to content."""
    known = contract.types | contract.results
    wanted = list(contract.results)
    for name in wanted:
        # Such as the calls of tools, which requests have too.
        inner = (one for field in known[name].fields for one in nested(field))
        wanted.extend(one for one in inner if one not in wanted)
    schemas = {name: _object(known[name]) for name in wanted}
    outputs = {
        one.name: _described(one.output) for one in contract.operations if one.output is not None
    }
    streams = {one.name: one.stream_result for one in contract.operations if one.stream_result}
    head = python_types.HEAD.format(title="What comes back, as JSON Schema.")
    text = (
        f"{head}\nfrom __future__ import annotations\n\nfrom typing import Any\n\n"
        f"#: Objects of answers, by the names that `RESULTS` has.\n"
        f"SCHEMAS: dict[str, dict[str, Any]] = {_literal(schemas)}\n"
        f"#: What an operation's prediction has as its output, once it succeeded.\n"
        f"OUTPUTS: dict[str, dict[str, Any]] = {_literal(outputs)}\n"
        f"#: The pieces of operations that can stream.\nSTREAMS = {_literal(streams)}\n"
    )
    return {f"{python_methods.FOLDER}/result_schemas.py": text}


def _literal(value: Any, indent: str = "") -> str:
    """On one line where there is room; these values are the same in JSON and in Python."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict) or len(indent) + len(flat) <= _MAX_LINE:
        return flat
    deeper = f"{indent}    "
    members = "".join(
        f"{deeper}{json.dumps(name)}: {_literal(one, deeper)},\n" for name, one in value.items()
    )
    return f"{{\n{members}{indent}}}"


def _object(one: ObjectType) -> dict[str, Any]:
    if one.items:
        return {"type": "array", "description": one.doc, "items": {"$ref": _PLACE + one.items}}
    properties = {field.name: _described(field) for field in one.fields}
    return {"type": "object", "description": one.doc, "properties": properties}


def _described(one: Field) -> dict[str, Any]:
    kinds = [_typed(kind, one) for kind in one.type]
    return (kinds[0] if len(kinds) == 1 else {"anyOf": kinds}) | {"description": one.doc}


def _typed(kind: str, one: Field) -> dict[str, Any]:
    if kind == "object" and one.of:
        return {"$ref": _PLACE + one.of}
    if kind == "array" and one.items:
        inner = {"type": one.items} if one.items in VALUE_TYPES else {"$ref": _PLACE + one.items}
        return {"type": "array", "items": inner}
    return {"type": kind, "enum": list(one.choices)} if one.choices else {"type": kind}
