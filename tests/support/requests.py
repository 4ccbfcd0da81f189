"""Requests made from the contract: the smallest valid ones, and values that a field refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from polymux.contract import Field, ObjectType, Operation, Variant

FILE = object()

VARIANTS = [
    (operation, variant) for operation in contract.operations() for variant in operation.variants
]
#: For tests that run once for each variant.
EACH_VARIANT = pytest.mark.parametrize(
    ("operation", "variant"), VARIANTS, ids=[f"{one.name}{two.id}" for one, two in VARIANTS]
)


def each_field(check: Callable[[Operation, Variant, Field], None]) -> Callable[..., None]:
    """Run a test for each field of each variant. One test case covers all fields of a variant,
    which saves some 200 cases; a failure names the field.
    """

    @EACH_VARIANT
    def test(operation: Operation, variant: Variant) -> None:
        for field in variant.fields:
            check(operation, variant, field)

    return test


SAMPLES = {
    "languages": "eng",
    "time": "1:30",
    "bitrate": "128k",
    "resolution": "720p",
    "name": "some-model",
}
# One value of each JSON type, for fields of other types.
OF_TYPE: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "integer": 1,
    "number": 1.5,
    "string": "x",
    "array": [],
    "object": {},
}


def sample(field: Field) -> Any:
    if field.choices:
        return field.choices[0]
    if field.kind == "url":
        return f"{field.raw['schemes'][0]}://media.example/thing"
    if field.raw.get("written_as") == "string":
        return str(int(field.minimum or 1))
    if field.raw.get("format"):
        return SAMPLES[field.raw["format"]]
    first = field.type.split(" or ", maxsplit=1)[0]
    if first == "file":
        return FILE
    if first in {"integer", "number"}:
        low = field.minimum or 0
        value = max(low + bool(field.exclusive_minimum), field.multiple_of or 0)
        return int(value) if first == "integer" else float(value)
    if first == "boolean":
        return True
    if first == "array":
        if field.items_object:
            return [object_sample(field.items_object)]
        return [{"a": 1}] if field.items == "object" else ["x"]
    if first == "object":
        return object_sample(field.object) if field.object else {"a": [1, "b", None]}
    return "text"


def object_sample(kind: ObjectType) -> dict[str, Any]:
    values = {field.name: sample(field) for field in kind.fields if field.required}
    for rule in kind.rules:
        if rule.rule == "required_unless":
            values[rule.fields[0]] = "text"
        if rule.rule == "names_field" and values[rule.fields[0]] in {f.name for f in kind.fields}:
            named = values[rule.fields[0]]
            values[named] = sample(kind.field(named))
    return values


def smallest(variant: Variant) -> dict[str, Any]:
    values = {field.name: sample(field) for field in variant.fields if field.required}
    for rule in variant.rules:
        if rule.rule == "exactly_one":
            values[rule.fields[0]] = sample(variant.field(rule.fields[0]))
    return values


def with_field(variant: Variant, field: Field, value: Any) -> dict[str, Any]:
    """The smallest valid request with this field."""
    values = smallest(variant)
    for rule in variant.rules:
        if field.name in rule.fields:
            if rule.rule == "exactly_one":
                for other in rule.fields:
                    values.pop(other, None)
            if rule.rule == "needs" and field.name == rule.fields[0]:
                values[rule.fields[1]] = sample(variant.field(rule.fields[1]))
    values[field.name] = value
    return values


def refused(field: Field) -> Iterator[tuple[Any, str]]:
    """Values that the field must refuse, each with words of the expected error."""
    if field.minimum is not None and "string" not in field.type:
        step = 1 if field.type == "integer" else 0.001
        low = field.minimum if field.exclusive_minimum else field.minimum - step
        yield low, "must be"
    if field.maximum is not None and "string" not in field.type:
        step = 1 if field.type == "integer" else 0.001
        yield (field.maximum if field.exclusive_maximum else field.maximum + step), "must be"
    if field.multiple_of and field.minimum is not None:
        yield field.minimum + 1, f"multiple of {field.multiple_of}"
    if field.choices:
        yield ("no such choice", "must be") if isinstance(field.choices[0], str) else (7, "must be")
    if field.kind == "url":
        for address in ("file:///etc/passwd", "thing", "http//x.example", "http://"):
            yield address, "must be a URL"
    if field.required and field.type == "string":
        yield "", "must not be empty" if not field.kind else "must be a URL"
    if field.raw.get("min_items"):
        yield [], "must not be empty"
    if most := field.raw.get("max_items"):
        item = object_sample(field.items_object) if field.items_object else "x"
        yield [item] * (most + 1), f"at most {most}"


def accepts_any_text(field: Field) -> bool:
    """Whether an empty string is a value of the field."""
    narrow = field.choices or field.kind or field.raw.get("format") or field.raw.get("min_length")
    return "string" in field.type and not narrow


def wrong_types(field: Field) -> Iterator[Any]:
    """A value of each JSON type that the field does not accept."""
    allowed = set(field.type.split(" or "))
    if "number" in allowed:
        allowed.add("integer")
    if field.raw.get("written_as") == "string":
        allowed.add("string")
    if not field.required:
        allowed.add("null")
    for name, value in OF_TYPE.items():
        if name not in allowed:
            yield value
