"""Every field of every variant of every operation, as JSON and as a form, against its own words."""

from __future__ import annotations

import json
from typing import Any

import polymux
import pytest
from polymux import contract
from support import requests

LONG_BYTES = 64 * 1024
VARIANTS = [
    (operation, variant) for operation in contract.operations() for variant in operation.variants
]
IDS = [f"{operation.name}{variant.id}" for operation, variant in VARIANTS]
FIELDS = [
    (operation, variant, field) for operation, variant in VARIANTS for field in variant.fields
]
FIELD_IDS = [f"{operation.name}{variant.id}-{field.name}" for operation, variant, field in FIELDS]


def read(
    operation: contract.Operation, variant: contract.Variant, values: dict[str, Any], encoding: str
) -> contract.CheckedRequest:
    if encoding == "json":
        return read_in_both_ways(operation.name, json.dumps(values).encode(), variant.model)
    fields = [(name, form_text(value)) for name, value in values.items()]
    return contract.read_form(operation.name, fields, model=variant.model)


def read_in_both_ways(name: str, body: bytes, model: str | None) -> contract.CheckedRequest:
    """Long bodies are checked and then read, short ones in one go: it comes to the same."""
    found = []
    for blanks in (0, LONG_BYTES):
        try:
            found.append(contract.read_json(name, body + b" " * blanks, model=model))
        except polymux.InvalidRequestError as error:
            found.append(error)
    short, long = found
    if isinstance(short, polymux.InvalidRequestError):
        assert (str(long), type(long)) == (str(short), type(short))
        raise short
    assert long == short
    assert repr(long) == repr(short)  # Where 1 is no True and no 1.0.
    return short


def form_text(value: Any) -> Any:
    if value is requests.FILE:
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def encodings(variant: contract.Variant, *fields: contract.Field) -> list[str]:
    """Encodings that the variant accepts and that can carry the fields."""
    if any(field.type == "file" for field in fields):
        return ["multipart"]
    return list(variant.accepts)


def problems(
    operation: contract.Operation, variant: contract.Variant, values: dict[str, Any], encoding: str
) -> tuple[polymux.Problem, ...]:
    with pytest.raises(polymux.InvalidRequestError) as caught:
        read(operation, variant, values, encoding)
    assert len(str(caught.value)) <= 2048
    return caught.value.problems


@pytest.mark.parametrize(("operation", "variant"), VARIANTS, ids=IDS)
def test_the_smallest_request_passes_and_needs_all_it_has(
    operation: contract.Operation, variant: contract.Variant
) -> None:
    values = requests.smallest(variant)
    for encoding in encodings(variant, *(variant.field(name) for name in values)):
        checked = read(operation, variant, values, encoding)
        assert checked.operation == operation.name
        assert checked.variant == variant.id
        assert set(checked.values) == set(values)
        for name in values:
            less = {key: value for key, value in values.items() if key != name}
            (problem,) = problems(operation, variant, less, encoding)
            assert name in problem.message
            assert "is missing" in problem.message or "must be given" in problem.message


@pytest.mark.parametrize(("operation", "variant", "field"), FIELDS, ids=FIELD_IDS)
def test_a_field_takes_what_it_should(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    good = [requests.sample(field), *(field.choices or ())]
    if field.minimum is not None and not field.exclusive_minimum and "string" not in field.type:
        good.append(int(field.minimum) if field.type == "integer" else field.minimum)
    if field.maximum is not None and not field.exclusive_maximum and "string" not in field.type:
        good.append(int(field.maximum) if field.type == "integer" else field.maximum)
    if field.default is not None:
        good.append(field.default)
    for value in good:
        values = requests.with_field(variant, field, value)
        for encoding in encodings(variant, *(variant.field(name) for name in values)):
            checked = read(operation, variant, values, encoding)
            given = checked.values[field.name]
            if field.raw.get("written_as") == "string":
                assert given == int(value)
            elif encoding == "json" or not isinstance(value, (int, float)):
                assert given == value
            else:
                assert float(given) == float(value)


@pytest.mark.parametrize(("operation", "variant", "field"), FIELDS, ids=FIELD_IDS)
def test_a_field_refuses_what_it_should(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    for value, words in requests.refused(field):
        values = requests.with_field(variant, field, value)
        for encoding in encodings(variant, *(variant.field(name) for name in values)):
            (problem,) = problems(operation, variant, values, encoding)
            if encoding == "multipart" and value == "":
                assert "is missing" in problem.message
            else:
                assert words in problem.message
            assert problem.field == field.name
            assert problem.message.startswith(field.name)


@pytest.mark.parametrize(("operation", "variant", "field"), FIELDS, ids=FIELD_IDS)
def test_a_field_refuses_other_types(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    if field.type == "file":
        for text in ("text", "0"):
            values = requests.with_field(variant, field, text)
            (problem,) = problems(operation, variant, values, "multipart")
            assert problem == (field.name, f"{field.name}: must be a file, not a text")
        return
    if "json" in variant.accepts:
        for value in requests.wrong_types(field):
            values = requests.with_field(variant, field, value)
            (problem,) = problems(operation, variant, values, "json")
            assert problem.field == field.name
            assert "must be" in problem.message
    if "multipart" in variant.accepts:
        values = requests.with_field(variant, field, requests.FILE)
        (problem,) = problems(operation, variant, values, "multipart")
        assert problem.field == field.name
        foreign = ("\uff11\uff10", "\u0665")  # digits of other scripts
        for text in ("NaN", "inf", "1e309", "0x10", "1_000", *foreign, " 5 ", "null"):
            if not {"string", "array", "object"} & set(field.type.split(" or ")):
                values = requests.with_field(variant, field, text)
                (problem,) = problems(operation, variant, values, "multipart")
                assert problem.field == field.name


@pytest.mark.parametrize(("operation", "variant", "field"), FIELDS, ids=FIELD_IDS)
def test_an_alias_stands_for_its_field(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    for alias in field.aliases:
        values = requests.with_field(variant, field, requests.sample(field))
        value = values.pop(field.name)
        values[alias] = value
        for encoding in encodings(variant, *(variant.field(name) for name in values)):
            assert read(operation, variant, values, encoding).values[field.name] == value


@pytest.mark.parametrize(("operation", "variant", "field"), FIELDS, ids=FIELD_IDS)
def test_absent_optional_fields_are_absent(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    if field.required or field.type == "file":
        return
    values = {**requests.smallest(variant), field.name: None}
    if field.name in requests.smallest(variant):
        return
    for encoding in encodings(variant, *(variant.field(name) for name in values)):
        assert field.name not in read(operation, variant, values, encoding).values
