"""The C++ tables: one source file for each family, and the list of all operations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from contract.model import VALUE_TYPES, nested

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contract.model import Contract, Field, ObjectType, Operation, Rule, Variant

HEAD = "// Made by scripts/generate from contract/; do not edit.\n// clang-format off\n"


def files(contract: Contract) -> dict[str, str]:
    """Map paths, relative to the repository root, to contents."""
    folder = "cpp/src/contract/generated"
    made = {f"{folder}/{name}.cpp": _family(contract, name) for name in contract.families}
    made[f"{folder}/operations.hpp"] = _header(contract)
    return made


def _header(contract: Contract) -> str:
    names = [operation.name for operation in contract.operations]
    externs = "\n".join(f"extern const Operation {name};" for name in names)
    pointers = "\n".join(f"    &{name}," for name in names)
    return (
        f"{HEAD}#pragma once\n\n#include <array>\n\n"
        '#include "polymux/contract/contract.hpp"\n\n'
        f"namespace polymux::contract::generated {{\n\n{externs}\n\n"
        f"constexpr std::array<const Operation*, {len(names)}> all = {{\n{pointers}\n}};\n\n"
        "}  // namespace polymux::contract::generated\n"
    )


def _family(contract: Contract, family: str) -> str:
    writer = _Writer()
    types = contract.types_of(family)
    bodies = "".join(writer.object_type(one) for one in types)
    mine = [operation for operation in contract.operations if operation.family == family]
    operations = "".join(writer.operation(one) for one in mine)
    return (
        f'{HEAD}#include "contract/generated/operations.hpp"\n\n'
        "namespace polymux::contract::generated {\nnamespace {\n\n"
        f"{bodies}{''.join(writer.parts)}"
        "}  // namespace\n\n"
        f"{operations}}}  // namespace polymux::contract::generated\n"
    )


def text(value: str) -> str:
    literal = json.dumps(value, ensure_ascii=True)
    if "\\u" in literal:
        raise ValueError(f"C++ literal: non-ASCII text is not supported (got {value!r})")
    return literal


class _Writer:
    """Collects the declarations that C++ needs before the operations."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def operation(self, one: Operation) -> str:
        variants = [self._variant(one, variant) for variant in one.variants]
        prefix = f"{one.name}_"
        self.parts.append(f"constexpr Variant {prefix}variants[] = {{\n{''.join(variants)}}};\n\n")
        refused = ""
        if one.refused_fields:
            self.parts.append(_strings(f"{prefix}refused", one.refused_fields))
            refused = f"    .refused_fields = {prefix}refused,\n"
        aliases = ""
        if one.aliases:
            self.parts.append(_strings(f"{prefix}aliases", one.aliases))
            aliases = f"    .aliases = {prefix}aliases,\n"
        stream = f"    .stream_result = {text(one.stream_result)},\n" if one.stream_result else ""
        job = "    .job = true,\n" if one.job else ""
        return (
            f"constinit const Operation {one.name} = {{\n"
            f"    .name = {text(one.name)},\n"
            f"    .path = {text('/api/v1/' + one.path)},\n"
            f"    .family = {text(one.family)},\n"
            f"    .title = {text(one.title)},\n"
            f"    .summary = {text(one.summary)},\n"
            f"    .first = {text(one.first)},\n"
            f"    .result = {text(one.result)},\n"
            f"{stream}{job}{aliases}{refused}"
            f"    .variants = {prefix}variants,\n"
            "};\n\n"
        )

    def _variant(self, operation: Operation, one: Variant) -> str:
        prefix = f"{operation.name}_{one.id}_" if one.id else f"{operation.name}_"
        self.parts.append(self._fields(prefix, one.fields))
        self.parts.append(_rules(prefix, one.rules))
        chosen = ""
        if one.chosen_by:
            self.parts.append(_strings(f"{prefix}chosen_by", one.chosen_by))
            chosen = f"     .chosen_by = {prefix}chosen_by,\n"
        rules = f", .rules = {prefix}rules" if one.rules else ""
        return (
            f"    {{.id = {text(one.id)},\n     .model = {text(one.model)},\n"
            f"     .summary = {text(one.summary)},\n     .encoding = Encoding::{one.encoding},\n"
            f"     .accepts_json = {_bool('json' in one.accepts)},\n"
            f"     .accepts_multipart = {_bool('multipart' in one.accepts)},\n{chosen}"
            f"     .body = {{.name = {text(operation.name)}, "
            f".documentation = {text(operation.summary)},\n"
            f"              .fields = {prefix}fields{rules},\n"
            f"              .unknown_fields = UnknownFields::{operation.unknown_fields}}}}},\n"
        )

    def object_type(self, one: ObjectType) -> str:
        rules = f"    .rules = {one.name}_rules,\n" if one.rules else ""
        return (
            f"{self._fields(f'{one.name}_', one.fields)}{_rules(f'{one.name}_', one.rules)}"
            f"constexpr ObjectType {one.name} = {{\n    .name = {text(one.name)},\n"
            f"    .documentation = {text(one.doc)},\n    .fields = {one.name}_fields,\n{rules}"
            f"    .unknown_fields = UnknownFields::{one.unknown_fields},\n}};\n\n"
        )

    def _fields(self, prefix: str, fields: tuple[Field, ...]) -> str:
        if len(fields) > 64:
            raise ValueError(f"{prefix}: too many fields (got {len(fields)}, allowed 64)")
        before, lines = [], []
        for one in fields:
            helpers, members = _field(f"{prefix}{one.name}", one)
            before.append(helpers)
            lines.append(f"    {{{members}}},\n")
        return f"{''.join(before)}constexpr Field {prefix}fields[] = {{\n{''.join(lines)}}};\n\n"


def _field(prefix: str, one: Field) -> tuple[str, str]:
    """Return the helper arrays of a field, and its members."""
    helpers = ""
    members = [f".name = {text(one.name)}"]
    if one.python_name != one.name:
        members.append(f".python_name = {text(one.python_name)}")
    members.append(f".types = {_types(one.type)}")
    for key, name in (("required", "required"), ("extension", "extension")):
        if getattr(one, key):
            members.append(f".{name} = true")
    if one.kind == "url":
        members.append(".url = true")
    if one.written_as:
        members.append(".written_as_text = true")
    if one.format:
        members.append(f".format = Format::{one.format}")
    members += _bounds(one)
    if one.choices:
        integers = isinstance(one.choices[0], int)
        helpers += _integers(f"{prefix}_choices", one.choices) if integers else _strings(
            f"{prefix}_choices", [str(choice) for choice in one.choices]
        )  # fmt: skip
        members.append(f".{'integer_choices' if integers else 'choices'} = {prefix}_choices")
    for key in ("aliases", "schemes"):
        if values := getattr(one, key):
            helpers += _strings(f"{prefix}_{key}", values)
            members.append(f".{key} = {prefix}_{key}")
    inner = nested(one)
    if one.of:
        members.append(f".object = &{one.of}")
    if one.items:
        known = one.items in inner
        item = f"type_object, .object = &{one.items}" if known else _types((one.items,))
        helpers += f'constexpr Field {prefix}_item = {{.name = "", .types = {item}}};\n'
        members.append(f".item = &{prefix}_item")
    if one.has_default:
        members.append(f".default_json = {text(json.dumps(one.default))}")
    if one.upstream_default is not None:
        members.append(f".upstream_default = {text(one.upstream_default)}")
    for key in ("unit", "media", "deprecated"):
        if value := getattr(one, key):
            members.append(f".{key} = {text(value)}")
    members.append(f".documentation = {text(one.doc)}")
    members.append(f".title = {text(one.title)}")
    return helpers, ", ".join(members)


def _bounds(one: Field) -> list[str]:
    low = one.above if one.above is not None else one.minimum
    high = one.below if one.below is not None else one.maximum
    members = []
    if low is not None:
        members.append(f".minimum = {low}")
    if high is not None:
        members.append(f".maximum = {high}")
    if one.above is not None:
        members.append(".above_minimum = true")
    if one.below is not None:
        members.append(".below_maximum = true")
    keys = ("multiple_of", "min_length", "max_length", "min_items", "max_items")
    return members + [f".{key} = {value}" for key in keys if (value := getattr(one, key))]


def _rules(prefix: str, rules: tuple[Rule, ...]) -> str:
    if not rules:
        return ""
    arrays = "".join(
        _strings(f"{prefix}rule_{number}", rule.fields) for number, rule in enumerate(rules)
    )
    lines = "".join(
        f"    {{.kind = Rule::Kind::{rule.kind}, .fields = {prefix}rule_{number}}},\n"
        for number, rule in enumerate(rules)
    )
    return f"{arrays}constexpr Rule {prefix}rules[] = {{\n{lines}}};\n\n"


def _strings(name: str, values: Iterable[str]) -> str:
    return f"constexpr std::string_view {name}[] = {{{', '.join(map(text, values))}}};\n"


def _integers(name: str, values: Iterable[str | int]) -> str:
    return f"constexpr std::int64_t {name}[] = {{{', '.join(map(str, values))}}};\n"


def _types(names: Iterable[str]) -> str:
    assert set(names) <= set(VALUE_TYPES)
    return " | ".join(f"type_{name}" for name in names)


def _bool(value: bool) -> str:  # noqa: FBT001 - a value to write
    return "true" if value else "false"
