"""Every field of every variant of every operation, in JSON and in forms."""

from __future__ import annotations

import json
from typing import Any

import polymux
import pytest
from polymux import contract
from support import requests
from support.requests import EACH_VARIANT, each_field

LONG_BYTES = 64 * 1024


def read(
    operation: contract.Operation, variant: contract.Variant, values: dict[str, Any], encoding: str
) -> contract.CheckedRequest:
    if encoding == "json":
        return read_in_both_ways(operation.name, json.dumps(values).encode(), variant.model)
    fields = [(name, form_text(value)) for name, value in values.items()]
    return contract.read_form(operation.name, fields, model=variant.model)


def read_in_both_ways(name: str, body: bytes, model: str | None) -> contract.CheckedRequest:
    """Long bodies are checked before they are read, short ones in one pass. Results are equal."""
    found = []
    for blanks in (0, LONG_BYTES):
        try:
            found.append(contract.read_json(name, body + b" " * blanks, model=model))
        except polymux.InvalidRequestError as error:
            found.append(error)
    short, long = found
    assert repr(long) == repr(short)  # `repr` distinguishes 1, True and 1.0.
    if isinstance(short, polymux.InvalidRequestError):
        raise short
    return short


def form_text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is requests.FILE or isinstance(value, str) else json.dumps(value)


def encodings(variant: contract.Variant, names: Any) -> list[str]:
    """The encodings that the variant accepts and that can carry the fields."""
    if any(variant.field(name).type == "file" for name in names):
        return ["multipart"]
    return list(variant.accepts)


def problem(
    operation: contract.Operation, variant: contract.Variant, values: dict[str, Any], encoding: str
) -> polymux.Problem:
    with pytest.raises(polymux.InvalidRequestError) as caught:
        read(operation, variant, values, encoding)
    assert len(str(caught.value)) <= 2048
    (found,) = caught.value.problems
    return found


@EACH_VARIANT
def test_the_smallest_request_passes_and_needs_all_it_has(
    operation: contract.Operation, variant: contract.Variant
) -> None:
    values = requests.smallest(variant)
    for encoding in encodings(variant, values):
        checked = read(operation, variant, values, encoding)
        assert (checked.operation, checked.variant) == (operation.name, variant.id)
        assert set(checked.values) == set(values)
        for name in values:
            less = {key: value for key, value in values.items() if key != name}
            assert name in problem(operation, variant, less, encoding).message


@each_field
def test_a_field_takes_what_it_should(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    sample = requests.sample(field)
    good = [sample, *(field.choices or ())]
    for bound, exclusive in (
        (field.minimum, field.exclusive_minimum),
        (field.maximum, field.exclusive_maximum),
    ):
        if bound is not None and not exclusive and "string" not in field.type:
            good.append(int(bound) if field.type == "integer" else bound)
    if field.default is not None:
        good.append(field.default)
    for value in good:
        values = requests.with_field(variant, field, value)
        for encoding in encodings(variant, values):
            given = read(operation, variant, values, encoding).values[field.name]
            if field.raw.get("written_as") == "string":
                assert given == int(value)
            elif encoding == "json" or not isinstance(value, (int, float)):
                assert given == value
            else:
                assert float(given) == float(value)
    values = requests.with_field(variant, field, sample)
    for alias in field.aliases:
        renamed = {alias if name == field.name else name: one for name, one in values.items()}
        for encoding in encodings(variant, values):
            assert read(operation, variant, renamed, encoding).values[field.name] == sample
    smallest = requests.smallest(variant)
    if field.name not in smallest and field.type != "file":
        for encoding in encodings(variant, smallest):
            if encoding == "json":
                found = read(operation, variant, {**smallest, field.name: None}, encoding)
                assert field.name not in found.values
            if encoding == "multipart" or "string" in field.type:
                found = read(operation, variant, {**smallest, field.name: ""}, encoding)
                expected = {field.name: ""} if requests.accepts_any_text(field) else {}
                assert found.values.keys() - smallest.keys() == expected.keys()


@each_field
def test_whole_numbers_are_integers(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    sample = requests.sample(field)
    if field.type != "integer" or not isinstance(sample, int):
        return
    values = requests.with_field(variant, field, sample)
    for encoding in encodings(variant, values):
        found = read(operation, variant, values | {field.name: float(sample)}, encoding)
        assert repr(found.values[field.name]) == repr(sample)


@each_field
def test_a_field_refuses_what_it_should(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    for value, words in requests.refused(field):
        values = requests.with_field(variant, field, value)
        for encoding in encodings(variant, values):
            found = problem(operation, variant, values, encoding)
            # Only the limits are compared.
            assert all(one in found.message for one in words.split() if one.isdigit())
            assert found.field == field.name
            assert field.name in found.message


@each_field
def test_a_field_refuses_other_types(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    wrong: list[tuple[str, Any]] = []
    if field.type == "file":
        wrong += [("multipart", "text"), ("multipart", "0")]
    else:
        if "json" in variant.accepts:
            wrong += [("json", value) for value in requests.wrong_types(field)]
        if "multipart" in variant.accepts:
            wrong.append(("multipart", requests.FILE))
            if not {"string", "array", "object"} & set(field.type.split(" or ")):
                foreign = ("\uff11\uff10", "\u0665")  # digits of other scripts
                texts = ("NaN", "inf", "1e309", "0x10", "1_000", *foreign, " 5 ", "null")
                wrong += [("multipart", text) for text in texts]
            if field.type == "integer":
                wrong += [("multipart", "1.5"), ("multipart", str(2**63))]
    for encoding, value in wrong:
        values = requests.with_field(variant, field, value)
        found = problem(operation, variant, values, encoding)
        assert found.field == field.name
