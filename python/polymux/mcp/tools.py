"""The tools as a client sees them, from a file that ``scripts/generate`` writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polymux.contract import Operation

CHATS = ("chat", "free_chat")
#: The argument that chooses the variant, which the HTTP API has in the query.
SELECTOR = "model"


@dataclass(frozen=True, slots=True)
class Described:
    """A tool.

    Attributes:
        name: The operation's name.
        title: A few words.
        description: What it does.
        schema: JSON Schema of its arguments.
    """

    name: str
    title: str
    description: str
    schema: dict[str, Any]


@cache
def described(file_words: str) -> tuple[Described, ...]:
    """All tools, in the order of the contract.

    Args:
        file_words: How a file is given, for the fields that accept one.
    """
    found = json.loads(Path(__file__).with_name("tools.json").read_bytes())
    for tool in found:
        for field in tool["schema"]["properties"].values():
            if field.get("format") == "binary":
                # A file arrives as text.
                del field["format"]
                field["description"] += f" {file_words}"
    return tuple(Described(**tool) for tool in found)


def models_of(operation: Operation) -> list[str]:
    """The selectors of the operation's variants; empty without variants."""
    return [one.model for one in operation.variants if one.model]


def file_fields(operation: Operation) -> frozenset[str]:
    """The names of the fields that accept a file."""
    return frozenset(
        field.name
        for variant in operation.variants
        for field in variant.fields
        if field.type == "file"
    )
