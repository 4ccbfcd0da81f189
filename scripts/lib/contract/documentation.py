"""docs/reference/operations.md: every operation with all its fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from contract.docstrings import bounds
from contract.model import VALUE_TYPES, nested

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contract.model import Contract, Field, ObjectType, Operation, Rule, Variant

HEAD = """\
<!-- Written by scripts/generate from contract/. Do not edit. -->
# Operations reference

This page lists every field of the fourteen operations.

Each operation is a POST request with the header `Authorization: Bearer API_KEY`. The
[HTTP API](http-api.md) describes headers, jobs and files. An error is a JSON object,
`{"error": TEXT, "code": CODE}`, with `param` and `request_id` if they apply: see
[errors](errors.md#http-status-codes).

"Extension" marks fields that polymux adds to the original API of an operation. They are optional,
and clients send them only if you set them. "The server downloads it" marks URLs, to which
[SSRF protection](../explanation/ssrf-protection.md) applies.

In forms (`multipart/form-data`) all values are text. Booleans are `1`, `t`, `true`, `yes`, `on` or
`0`, `f`, `false`, `no`, `off`, in any case. Numbers are decimal and contain no spaces. An empty
text means that the field is absent, like `null` in JSON.
"""

_BODIES = {"json": "JSON", "multipart": "a form (`multipart/form-data`)"}


def files(contract: Contract) -> dict[str, str]:
    """Map paths, relative to the repository root, to contents."""
    return {"docs/reference/operations.md": "".join(_document(contract))}


def _document(contract: Contract) -> Iterator[str]:
    yield HEAD
    yield "\n| operation | path | method |\n|---|---|---|\n"
    for operation in contract.operations:
        anchor = operation.title.lower().replace(" ", "-")
        path = f"`/api/v1/{operation.path}`"
        yield f"| [{operation.title}](#{anchor}) | {path} | `{operation.name}` |\n"
    for operation in contract.operations:
        yield from _operation(operation)
    yield "\n## Types inside requests\n"
    for one in contract.types.values():
        yield from _object(one)
    yield "\n## Results\n"
    for one in contract.results.values():
        yield from _object(one)


def _operation(one: Operation) -> Iterator[str]:
    yield f"\n## {one.title}\n\n{one.summary}\n\n"
    methods = f" (or {', '.join(f'`{name}`' for name in one.aliases)})" if one.aliases else ""
    commands = ", ".join(f"`{name}`" for name in one.command_aliases)
    yield f"`POST /api/v1/{one.path}`, method `{one.name}`{methods}, "
    yield f"command `polymux {one.command}` (or {commands}). "
    yield f"Returns [{one.result}](#{one.result.lower()})"
    yield (
        f", or a stream of [{one.stream_result}](#{one.stream_result.lower()})"
        if one.stream_result
        else ""
    )
    yield ".\n"
    if one.output is not None:
        yield f"\nThe job's `output` ({_types(one.output)}): {one.output.doc}\n"
    if one.unknown_fields == "pass":
        refused = ", ".join(f"`{name}`" for name in one.refused_fields)
        yield "\nThe server forwards other fields to the model's server. "
        yield f"It rejects these fields: {refused}.\n"
    for variant in one.variants:
        yield from _variant(variant, several=len(one.variants) > 1)


def _variant(one: Variant, *, several: bool) -> Iterator[str]:
    if several:
        yield f"\n### Variant {one.id}: {one.model}\n\n{one.summary}\n"
    parameter = f"Query parameter: `model={one.model}`. " if one.model else ""
    first, *others = (one.encoding, *(name for name in one.accepts if name != one.encoding))
    also = f", or {' or '.join(_BODIES[name] for name in others)}" if others else ""
    yield f"\n{parameter}Body: {_BODIES[first]}{also}.\n\n"
    yield from _table(one.fields)
    yield from _rules(one.rules)


def _object(one: ObjectType) -> Iterator[str]:
    yield f"\n### {one.name}\n\n{one.doc}\n\n"
    if one.items:
        yield f"A list of [{one.items}](#{one.items.lower()}).\n"
        return
    yield from _table(one.fields)
    yield from _rules(one.rules)


def _table(fields: Iterable[Field]) -> Iterator[str]:
    yield "| field | type | default | values | meaning |\n|---|---|---|---|---|\n"
    for one in fields:
        default = (
            "required"
            if one.required
            else f"`{json.dumps(one.default)}`"
            if one.has_default
            else ""
        )
        cells = (f"`{one.name}`", _types(one), default, _values(one), _meaning(one))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _types(one: Field) -> str:
    names = []
    for name in one.type:
        inner = one.of if name == "object" and one.of in nested(one) else ""
        if name == "array" and one.items:
            linked = one.items in nested(one)
            names.append(f"array of {_link(one.items) if linked else one.items}")
        else:
            names.append(_link(inner) if inner else name)
    return " or ".join(names)


def _link(name: str) -> str:
    return name if name in VALUE_TYPES else f"[{name}](#{name.lower()})"


def _values(one: Field) -> str:
    facts = bounds(one)
    if one.unit and one.minimum is None and one.above is None:
        facts.append(one.unit)
    if one.min_items:
        facts.append(f"at least {one.min_items} {'item' if one.min_items == 1 else 'items'}")
    if one.max_length:
        facts.append(f"at most {one.max_length} characters")
    if one.choices:
        facts.append(", ".join(f"`{choice}`" for choice in one.choices))
    if one.schemes:
        facts.append(" or ".join(f"`{scheme}:`" for scheme in one.schemes))
    return "; ".join(facts)


def _meaning(one: Field) -> str:
    text = one.doc
    if one.aliases:
        text += " Alias: " + ", ".join(f"`{name}`" for name in one.aliases) + "."
    if one.python_name != one.name:
        text += f" In Python: `{one.python_name}`."
    if one.written_as:
        text += " Sent as a string; a number is also accepted."
    if one.upstream_default:
        text += f" If it is absent, the model uses `{one.upstream_default}`."
    if one.kind == "url" and "socks5" not in one.schemes:
        text += " The server downloads it."
    if one.deprecated:
        text += f" Deprecated: use `{one.deprecated}`."
    if one.extension:
        text += " Extension."
    return text


def _rules(rules: tuple[Rule, ...]) -> Iterator[str]:
    for rule in rules:
        names = [f"`{name}`" for name in rule.fields]
        listed = ", ".join(names)
        yield "\n" + {
            "exactly_one": f"Set exactly one of {listed}.",
            "at_most_one": f"Set at most one of {listed}.",
            "needs": f"{names[0]} requires {names[-1]}.",
            "ascending": f"{names[0]} must be less than {names[-1]}.",
            "required_unless": f"{names[0]} is required unless {' or '.join(names[1:])} is set.",
            "names_field": f"If the value of {names[0]} names a field, that field is required.",
        }[rule.kind] + "\n"  # fmt: skip
