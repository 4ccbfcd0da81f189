"""What a client is told of a tool: out of the contract, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux.server.openapi.schemas import body_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.contract import Operation, Variant

CHATS = ("chat", "free_chat")
#: Fields of chats that are about answers in pieces: those of tools come whole.
PIECES = ("stream", "stream_options")
#: Which variant is meant; what the interface has in the query.
SELECTOR = "model"


@dataclass(frozen=True, slots=True)
class Described:
    """A tool.

    Attributes:
        name: The operation's.
        title: A few words.
        description: What it does.
        schema: Of its arguments: JSON Schema, an object without ``oneOf`` and the like at its root,
            which many clients cannot read. What it cannot say is said in words, and checked by the
            contract.
    """

    name: str
    title: str
    description: str
    schema: dict[str, Any]


@cache
def described(file_words: str) -> tuple[Described, ...]:
    """All tools, in the order of the contract.

    Args:
        file_words: How a file is given, for the fields that take one.
    """
    return tuple(
        Described(one.name, one.title, one.summary, _schema(one, file_words))
        for one in contract.operations()
    )


def models_of(operation: Operation) -> list[str]:
    """The selectors of its variants; empty where it has none."""
    return [one.model for one in operation.variants if one.model]


def file_fields(operation: Operation) -> frozenset[str]:
    """The names of the fields that take a file."""
    return frozenset(
        field.name
        for variant in operation.variants
        for field in variant.fields
        if field.type == "file"
    )


def _schema(operation: Operation, file_words: str) -> dict[str, Any]:
    # As forms have them: flat, and without null, which only says that something is absent.
    shapes = [body_schema(one, (), form=True) for one in operation.variants]
    names = dict.fromkeys(name for shape in shapes for name in shape["properties"])
    left_out = PIECES if operation.name in CHATS else ()
    properties = {
        name: _property(operation.variants, shapes, name) for name in names if name not in left_out
    }
    for name in file_fields(operation):
        properties[name] = _file(properties[name], file_words)
    models = models_of(operation)
    if models:
        properties[SELECTOR] = {
            "type": "string",
            "enum": models,
            "description": "Which model does it.",
        }
    required = [name for name in names if all(name in one.get("required", ()) for one in shapes)]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    words = dict.fromkeys(shape["description"] for shape in shapes if "description" in shape)
    return schema | ({"description": " ".join(words)} if words else {})


def _property(
    variants: Sequence[Variant], shapes: Sequence[dict[str, Any]], name: str
) -> dict[str, Any]:
    """A field that one or several variants have, each perhaps with bounds of its own."""
    having: list[tuple[str | None, dict[str, Any]]] = [
        (variant.model, shape["properties"][name])
        for variant, shape in zip(variants, shapes, strict=True)
        if name in shape["properties"]
    ]
    _, first = having[0]
    if any(one != first for _, one in having):
        different = [one | {"title": f"with {model}"} for model, one in having]
        return {"anyOf": different, "description": first["description"]}
    if len(having) == len(variants):
        return dict(first)
    models = " and ".join(str(model) for model, _ in having)
    return first | {"description": f"{first['description']} Only with {models}."}


def _file(schema: dict[str, Any], file_words: str) -> dict[str, Any]:
    return {"type": "string", "description": f"{schema['description']} {file_words}"}
