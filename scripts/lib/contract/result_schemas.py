"""JSON Schemas of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract.model import VALUE_TYPES, nested

if TYPE_CHECKING:
    from contract.model import Contract, Field, ObjectType

#: The prefix of references to schemas of a document.
PLACE = "#/components/schemas/"


def result_schemas(contract: Contract) -> dict[str, dict[str, Any]]:
    """Map the names of all results, and of the objects in them, to their schemas."""
    known = contract.types | contract.results
    wanted = list(contract.results)
    for name in wanted:
        # Includes types that requests also use, such as tool calls.
        inner = (one for field in known[name].fields for one in nested(field))
        wanted.extend(one for one in inner if one not in wanted)
    return {name: _object(known[name]) for name in wanted}


def _object(one: ObjectType) -> dict[str, Any]:
    if one.items:
        return {"type": "array", "description": one.doc, "items": {"$ref": PLACE + one.items}}
    properties = {field.name: described(field) for field in one.fields}
    return {"type": "object", "description": one.doc, "properties": properties}


def described(one: Field) -> dict[str, Any]:
    kinds = [_typed(kind, one) for kind in one.type]
    schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return schema | {"title": one.title, "description": one.doc}


def _typed(kind: str, one: Field) -> dict[str, Any]:
    if kind == "object" and one.of:
        return {"$ref": PLACE + one.of}
    if kind == "array" and one.items:
        inner = {"type": one.items} if one.items in VALUE_TYPES else {"$ref": PLACE + one.items}
        return {"type": "array", "items": inner}
    return {"type": kind, "enum": list(one.choices)} if one.choices else {"type": kind}
