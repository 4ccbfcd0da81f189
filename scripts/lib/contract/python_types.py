"""Python types of fields, for the methods' signatures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from contract.model import VALUE_TYPES, nested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract.model import Contract, Field, ObjectType, Operation, Variant

#: Types that also accept a message that a model returned.
_MESSAGES = ("ChatMessage", "TextMessage")
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
#: Longer lists of choices become a named type alias.
MAX_LITERAL = 4
HEAD = '"""{title} Made by scripts/generate from contract/; do not edit."""\n'


def named_choices(operation: Operation, variant: Variant, one: Field) -> str:
    """Return the name of the type alias of a field's choices; empty if they are inlined."""
    if len(one.choices) <= MAX_LITERAL:
        return ""
    words = f"{operation.name}_{variant.id.lower()}_{one.python_name}".split("_")
    return "".join(word.capitalize() for word in words)


def literal(one: Field) -> str:
    return f"Literal[{', '.join(json.dumps(choice) for choice in one.choices)}]"


def of_field(one: Field, choices: str = "") -> str:
    """Return the type of a field's values, without None for an absent field."""
    names: list[str] = []
    for kind in one.type:
        if kind in {"string", "integer"} and one.choices:
            names.append(choices or literal(one))
        elif kind == "file":
            names.append("Upload")
        elif kind == "array":
            names.append(f"Sequence[{_item(one)}]")
        elif kind == "object":
            names.append(_object(one.of) if one.of in nested(one) else "Mapping[str, Any]")
        elif kind == "number" and "integer" in one.type:
            continue
        elif kind != "null":
            names.append(PLAIN[kind])
    return " | ".join(dict.fromkeys(names))


def _item(one: Field) -> str:
    if one.items in nested(one):
        return _object(one.items)
    if one.items == "object":
        return "Mapping[str, Any]"
    return PLAIN[one.items] if one.items in VALUE_TYPES else "Any"


def _object(name: str) -> str:
    # Plain dictionaries are also accepted. A model's answer is sent back in its conversation.
    answered = "AnswerMessage | " if name in _MESSAGES else ""
    return f"{answered}{name} | Mapping[str, Any]"


def types_file(contract: Contract) -> str:
    """Return polymux/client/methods/types.py: objects inside requests, and lists of choices."""
    body = "".join(_typed_dicts(contract)) + "".join(_aliases(contract))
    return (
        f"{HEAD.format(title='Types inside requests.')}\n"
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping, Sequence\n"
        "from typing import Any, Literal, Required, TypeAlias, TypedDict\n"
        f"{body}"
    )


def _typed_dicts(contract: Contract) -> Iterator[str]:
    written: dict[str, ObjectType] = {}
    for family in contract.families:
        for one in contract.types_of(family):
            written.setdefault(one.name, one)
    for one in written.values():
        yield f'\n\nclass {one.name}(TypedDict, total=False):\n    """{one.doc}"""\n\n'
        for member in one.fields:
            kind = of_field(member)
            if "null" in member.type:
                kind += " | None"
            yield f"    {member.name}: {f'Required[{kind}]' if member.required else kind}\n"


def _aliases(contract: Contract) -> Iterator[str]:
    for operation in contract.operations:
        for variant in operation.variants:
            for one in variant.fields:
                if name := named_choices(operation, variant, one):
                    yield f'\n\n{name}: TypeAlias = "{literal(one).replace(chr(34), chr(39))}"\n'


def type_names(contract: Contract, family: str) -> Iterator[str]:
    """Return the names in types.py that belong to a family."""
    yield from (one.name for one in contract.types_of(family))
    for operation in contract.operations:
        if operation.family == family:
            for variant in operation.variants:
                for one in variant.fields:
                    if name := named_choices(operation, variant, one):
                        yield name
