"""JSON Schemas (draft 2020-12) of request bodies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from contract.model import VALUE_TYPES, nested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract.model import Contract, Field, Operation, Rule, Variant

#: Integers must fit 64 bits.
_MAX_INTEGER = (1 << 63) - 1
_MAX_NAME_CHARACTERS = 256
_MAX_URL_CHARACTERS = 8192
#: Patterns of strings with a syntax. The server also accepts other spellings.
_FORMATS: dict[str, dict[str, Any]] = {
    "bitrate": {"pattern": r"^([89]|[1-9][0-9]|[12][0-9]{2}|3[01][0-9]|320)k$"},
    "time": {"pattern": r"^([0-9]{1,6}:)?([0-5]?[0-9]:)?[0-5]?[0-9](\.[0-9]{1,3})?$"},
    "resolution": {
        "pattern": r"^((14[4-9]|1[5-9][0-9]|[2-9][0-9]{2}|[1-3][0-9]{3}|4[0-2][0-9]{2}|43[01][0-9]"
        r"|4320)p?|best)?$"
    },
    "languages": {
        "pattern": r"^[A-Za-z0-9_]+(\+[A-Za-z0-9_]+)*$",
        "maxLength": _MAX_NAME_CHARACTERS,
    },
    "name": {"pattern": r"^[^\x00-\x1f\x7f]+$", "maxLength": _MAX_NAME_CHARACTERS},
}


def body_schema(
    contract: Contract,
    operation: Operation,
    variant: Variant,
    *,
    form: bool,
    titles: bool = True,
    rules: bool = True,
) -> dict[str, Any]:
    """Return the schema of a body.

    A form has no null. Without `rules`, only the description of a form has the rules between its
    fields.
    """
    bodies = _Bodies(contract, form=form, titles=titles, rules=rules)
    schema = bodies.object(variant.fields, variant.rules)
    if operation.refused_fields:
        schema["propertyNames"] = {"not": {"enum": list(operation.refused_fields)}}
    return schema | {"title": variant.model or variant.id or "body"}


class _Bodies:
    def __init__(self, contract: Contract, *, form: bool, titles: bool, rules: bool) -> None:
        self._types = contract.types
        self._form = form
        self._titles = titles
        self._rules = rules

    def object(self, fields: Sequence[Field], rules: Sequence[Rule]) -> dict[str, Any]:
        # Unknown fields are allowed: the server forwards them, or ignores them with a warning.
        properties = {one.name: self._field(one) for one in fields}
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        required = [one.name for one in fields if one.required]
        if required:
            schema["required"] = required
        if self._form:
            # Few programs read schema rules about the fields of a form, so describe them in text.
            words = " ".join(filter(None, map(_in_words, rules)))
            schema |= {"description": words} if words else {}
            # Tools that generate requests fail at `if` and `not` in schemas with files.
            rules = [one for one in rules if self._rules and one.kind == "exactly_one"]
        # In `allOf`, because code generators ignore the properties beside `oneOf` and `anyOf`.
        found = [part for rule in rules for part in _rule(rule, fields, form=self._form)]
        return schema | ({"allOf": found} if found else {})

    def _field(self, one: Field) -> dict[str, Any]:
        if one.type == ("file",):
            return {"type": "string", "format": "binary"} | self._texts(one)
        types = sorted(one.type, key=VALUE_TYPES.index)
        found = [self._typed(kind, one) for kind in types if kind != "file"]
        if one.written_as == "string":
            found.append(_number_as_text(one))
        if not one.required and not self._form and "null" not in one.type:
            found.append({"type": "null"})
        schema: dict[str, Any] = found[0] if len(found) == 1 else {"anyOf": found}
        schema |= self._texts(one)
        if one.has_default:
            schema["default"] = one.default
        return schema

    def _texts(self, one: Field) -> dict[str, Any]:
        title = {"title": one.title} if self._titles else {}
        return title | {"description": one.doc}

    def _typed(self, kind: str, one: Field) -> dict[str, Any]:
        if kind in ("integer", "number"):
            return _number(kind, one)
        if kind == "string":
            return _text(one)
        if kind == "object" and one.of in nested(one):
            return self._nested(one.of)
        if kind == "array":
            counts = {"minItems": one.min_items, "maxItems": one.max_items}
            return {"type": "array", "items": self._items(one)} | _given(counts)
        return {"type": kind}

    def _items(self, one: Field) -> dict[str, Any]:
        if one.items in nested(one):
            return self._nested(one.items)
        return {"type": one.items} if one.items in VALUE_TYPES else {}

    def _nested(self, name: str) -> dict[str, Any]:
        kind = self._types[name]
        return self.object(kind.fields, kind.rules) | {"description": kind.doc}


def _in_words(rule: Rule) -> str:
    first, *others = rule.fields
    return {
        "exactly_one": f"Exactly one of {', '.join(rule.fields)} is required.",
        "at_most_one": f"At most one of {', '.join(rule.fields)} is allowed.",
        "needs": f"{first} requires {', '.join(others)}.",
        "ascending": f"{first} must be less than {', '.join(others)}.",
    }.get(rule.kind, "")


def _rule(rule: Rule, fields: Sequence[Field], *, form: bool) -> list[dict[str, Any]]:
    """Return the rule as schemas; empty for `ascending`, which a schema cannot express."""
    first = rule.fields[0]
    present = [_present(name, fields, form=form) for name in rule.fields]
    if rule.kind == "exactly_one":
        return [{"oneOf": present}]
    if rule.kind == "at_most_one":
        return [{"not": {"allOf": present}}]
    if rule.kind == "needs":
        return [{"if": present[0], "then": present[1]}]
    if rule.kind == "required_unless":
        return [{"anyOf": present}]
    if rule.kind == "names_field":
        names = {one.name for one in fields}
        choices = next(one.choices for one in fields if one.name == first)
        return [
            {
                "if": {"required": [first], "properties": {first: {"const": choice}}},
                "then": _present(str(choice), fields, form=form),
            }
            for choice in choices
            if choice in names
        ]
    return []


def _present(name: str, fields: Sequence[Field], *, form: bool) -> dict[str, Any]:
    required = form or next(one.required for one in fields if one.name == name)
    # An optional field that is null is absent.
    not_null = {} if required else {"properties": {name: {"not": {"type": "null"}}}}
    return {"required": [name], **not_null}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _number(kind: str, one: Field) -> dict[str, Any]:
    if one.choices:
        return {"type": kind, "enum": list(one.choices)}
    bounds = {
        "minimum": one.minimum,
        "exclusiveMinimum": one.above,
        "maximum": one.maximum,
        "exclusiveMaximum": one.below,
        "multipleOf": one.multiple_of or None,
    }
    schema: dict[str, Any] = {"type": kind}
    if kind == "integer":
        schema |= {"format": "int64", "minimum": -_MAX_INTEGER - 1, "maximum": _MAX_INTEGER}
    return schema | {name: value for name, value in bounds.items() if value is not None}


def _text(one: Field) -> dict[str, Any]:
    if one.choices:
        return {"type": "string", "enum": list(one.choices)}
    schema = {"type": "string"} | _given({"minLength": one.min_length, "maxLength": one.max_length})
    if one.kind == "url":
        schema |= _url(one.schemes)
    return schema | _FORMATS.get(one.format, {})


def _url(schemes: Sequence[str]) -> dict[str, Any]:
    plain = "|".join(re.escape(one) for one in schemes if one != "data")
    pattern = rf"({plain})://[^/?#\x00-\x20\x7f][^\x00-\x20\x7f]*"
    if "data" in schemes:
        # A data URL holds the image and may be as long as the body.
        return {"pattern": rf"^({pattern}|data:image/.*)$"}
    return {"pattern": rf"^{pattern}$", "maxLength": _MAX_URL_CHARACTERS}


def _number_as_text(one: Field) -> dict[str, Any]:
    if one.minimum is None or one.maximum is None:
        return {"type": "string", "pattern": "^-?[0-9]{1,18}$"}
    numbers = range(int(one.minimum), int(one.maximum) + 1)
    return {"type": "string", "enum": [str(number) for number in numbers]}
