"""Requests as JSON Schema (draft 2020-12), out of the contract."""

from __future__ import annotations

import html
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.contract import Field, ObjectType, Rule, Variant

_TYPES = frozenset(("integer", "number", "boolean", "string", "array", "object", "null"))
#: Of integers without bounds of their own: they must fit 64 bits.
_LARGEST = (1 << 63) - 1
_MAX_NAME_CHARACTERS = 256
#: Texts with a form of their own, as people are advised to write them.
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
_MAX_URL_CHARACTERS = 8192


def body_schema(variant: Variant, refused: Sequence[str], *, form: bool) -> dict[str, Any]:
    """The schema of a body.

    Args:
        variant: Whose.
        refused: Names that no member may have.
        form: Whether it is a form, which has no null; an empty text is absent there.
    """
    # What is not known is left out with a warning, or passed on.
    schema = _object(variant.fields, variant.rules, form=form)
    if refused:
        schema["propertyNames"] = {"not": {"enum": list(refused)}}
    return schema | {"title": variant.model or variant.id or "body"}


def _object(fields: Sequence[Field], rules: Sequence[Rule], *, form: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one.name: _field(one, form=form) for one in fields},
    }
    required = [one.name for one in fields if one.required]
    if required:
        schema["required"] = required
    if form:
        # Of files, schemas can say little that programs understand.
        words = " ".join(_in_words(rule) for rule in rules)
        return schema | ({"description": words} if words else {})
    found = [part for rule in rules for part in _rule(rule, fields)]
    return schema | ({"allOf": found} if found else {})


def _in_words(rule: Rule) -> str:
    first, *others = rule.fields
    words = {
        "exactly_one": f"Exactly one of {', '.join(rule.fields)} is given.",
        "at_most_one": f"At most one of {', '.join(rule.fields)} is given.",
        "needs": f"{first} needs {others[0] if others else ''}.",
        "ascending": f"{first} is less than {others[0] if others else ''}.",
    }
    return words.get(rule.rule, "")


def _rule(rule: Rule, fields: Sequence[Field]) -> list[dict[str, Any]]:
    """What a schema can say of it; that one is less than another, it cannot."""
    first, *others = rule.fields
    there = {name: _given(name, fields) for name in rule.fields}
    if rule.rule == "exactly_one":
        return [{"oneOf": list(there.values())}]
    if rule.rule == "at_most_one":
        return [{"not": {"allOf": list(there.values())}}]
    if rule.rule == "needs":
        return [{"if": there[first], "then": there[others[0]]}]
    if rule.rule == "required_unless":
        return [{"anyOf": list(there.values())}]
    if rule.rule == "names_field":
        kinds = next(one.choices or () for one in fields if one.name == first)
        known = {one.name for one in fields}
        return [
            {
                "if": {"required": [first], "properties": {first: {"const": kind}}},
                "then": _given(kind, fields),
            }
            for kind in kinds
            if kind in known
        ]
    return []


def _given(name: str, fields: Sequence[Field]) -> dict[str, Any]:
    one = next(field for field in fields if field.name == name)
    given: dict[str, Any] = {"required": [name]}
    # Null is as good as absent.
    return given if one.required else given | {"properties": {name: {"not": {"type": "null"}}}}


def _field(one: Field, *, form: bool) -> dict[str, Any]:
    types = one.type.split(" or ")
    if types == ["file"]:
        return {"type": "string", "format": "binary", "description": one.doc}
    found = [_typed(kind, one, form=form) for kind in types if kind in _TYPES]
    if one.raw.get("written_as") == "string":
        found.append(_written(one))
    if not one.required and not form and "null" not in types:
        found.append({"type": "null"})
    schema: dict[str, Any] = found[0] if len(found) == 1 else {"anyOf": found}
    schema["description"] = one.doc
    if one.default is not None:
        schema["default"] = one.default
    return schema


def _typed(kind: str, one: Field, *, form: bool) -> dict[str, Any]:
    if kind in ("integer", "number"):
        return _number(kind, one)
    if kind == "string":
        return _text(one)
    if kind == "object" and one.object is not None:
        return _nested(one.object, form=form)
    if kind == "array":
        counts = {"minItems": one.raw.get("min_items"), "maxItems": one.raw.get("max_items")}
        given = {name: value for name, value in counts.items() if value is not None}
        return {"type": "array", "items": _items(one, form=form)} | given
    return {"type": kind}


def _number(kind: str, one: Field) -> dict[str, Any]:
    if one.choices is not None:
        return {"type": kind, "enum": list(one.choices)}
    lower = "exclusiveMinimum" if one.exclusive_minimum else "minimum"
    upper = "exclusiveMaximum" if one.exclusive_maximum else "maximum"
    bounds = {lower: one.minimum, upper: one.maximum, "multipleOf": one.multiple_of}
    schema: dict[str, Any] = {"type": kind}
    if kind == "integer":
        schema |= {"format": "int64", "minimum": -_LARGEST - 1, "maximum": _LARGEST}
    return schema | {name: value for name, value in bounds.items() if value is not None}


def _text(one: Field) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if one.choices is not None:
        return schema | {"enum": list(one.choices)}
    lengths = {"minLength": one.raw.get("min_length"), "maxLength": one.raw.get("max_length")}
    schema |= {name: value for name, value in lengths.items() if value is not None}
    if one.kind == "url":
        schema |= _address(one.raw["schemes"])
    return schema | _FORMATS.get(one.raw.get("format", ""), {})


def _address(schemes: Sequence[str]) -> dict[str, Any]:
    plain = "|".join(re.escape(one) for one in schemes if one != "data")
    pattern = rf"({plain})://[^/?#\x00-\x20\x7f][^\x00-\x20\x7f]*"
    if "data" in schemes:
        # A picture itself is as long as the body may be.
        return {"pattern": rf"^({pattern}|data:image/.*)$"}
    return {"pattern": rf"^{pattern}$", "maxLength": _MAX_URL_CHARACTERS}


def _written(one: Field) -> dict[str, Any]:
    """A number that stands as a text."""
    if one.minimum is None or one.maximum is None:
        return {"type": "string", "pattern": "^-?[0-9]{1,18}$"}
    whole = range(int(one.minimum), int(one.maximum) + 1)
    return {"type": "string", "enum": [str(number) for number in whole]}


def _items(one: Field, *, form: bool) -> dict[str, Any]:
    if one.items_object is not None:
        return _nested(one.items_object, form=form)
    return {"type": one.items} if one.items in _TYPES else {}


def _nested(kind: ObjectType, *, form: bool) -> dict[str, Any]:
    return _object(kind.fields, kind.rules, form=form) | {"description": kind.doc}


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border:1px solid #8884;padding:.3rem .5rem;"
    "text-align:left;vertical-align:top}code{font-size:.9em}"
)


@cache
def reference_page() -> bytes:
    """All operations and their fields on one page, with no script and nothing from elsewhere."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>polymux</title>",
        f"<style>{_STYLE}</style><h1>polymux {html.escape(__version__)}</h1>",
        "<p>All requests need <code>Authorization: Bearer KEY</code>. The same as OpenAPI: "
        "<a href=/openapi.json>openapi.json</a>.</p>",
    ]
    for one in contract.operations():
        parts.append(
            f"<h2 id={one.name}>{html.escape(one.title)}</h2><p>{html.escape(one.summary)}</p>"
            f"<p><code>POST {html.escape(one.path)}</code></p>"
        )
        for variant in one.variants:
            if variant.model:
                parts.append(f"<h3><code>?model={html.escape(variant.model)}</code></h3>")
            parts.append(_table(variant))
    return "".join(parts).encode()


def _table(variant: Variant) -> str:
    rows = "".join(
        f"<tr><td><code>{html.escape(one.name)}</code>{' *' if one.required else ''}"
        f"<td>{html.escape(one.type)}"
        f"<td>{'' if one.default is None else html.escape(str(one.default))}"
        f"<td>{html.escape(one.doc)}"
        for one in variant.fields
    )
    return f"<table><tr><th>field<th>type<th>default<th>{rows}</table>"
