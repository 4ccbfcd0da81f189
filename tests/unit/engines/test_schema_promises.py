"""What is said of schemas' words; `test_schemas_kept` holds it to the library."""

from __future__ import annotations

from typing import Any

import pytest
from polymux.engines.chat.json_schema import MalformedError, unsupported_keywords
from polymux.engines.chat.schema_patterns import without_odd_patterns


def words(schema: Any) -> list[str]:
    return [one.partition(" ")[0] for one in unsupported_keywords(schema)]


@pytest.mark.parametrize(
    ("schema", "broken"),
    [
        ({}, []),
        (True, []),
        ({"type": "integer", "minimum": 3, "maximum": 9}, []),
        ({"type": "integer", "minimum": 2.5}, ["minimum"]),
        ({"type": "integer", "minimum": 10**16}, ["minimum"]),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": 3}, ["exclusiveMinimum", "minimum"]),
        ({"type": "number", "minimum": 3}, ["minimum"]),
        ({"type": "integer", "multipleOf": 3}, ["multipleOf"]),
        ({"type": "string", "minimum": 3}, []),
        ({"type": "string", "minLength": 3, "maxLength": 4}, []),
        ({"type": "string", "pattern": "^a$", "minLength": 1}, ["minLength"]),
        ({"type": "string", "format": "email"}, ["format"]),
        ({"type": "string", "format": "date-time"}, []),
        ({"type": "string", "format": "date", "maxLength": 3}, ["maxLength"]),
        ({"type": "array", "items": {"type": "number", "maximum": 1}}, ["maximum"]),
        ({"type": "array", "uniqueItems": True}, ["uniqueItems"]),
        ({"type": "array", "uniqueItems": False, "minItems": 2}, []),
        ({"maxItems": 2}, ["maxItems"]),
        ({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1}, []),
        ({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 2}, ["minItems"]),
        ({"type": "array", "prefixItems": [{}], "items": {"type": "null"}}, ["prefixItems"]),
        ({"type": "array", "contains": {"const": 1}}, ["contains"]),
        ({"type": "object", "required": ["a"]}, ["required"]),
        ({"properties": {"a": {}}, "required": ["a"], "minProperties": 1}, []),
        ({"properties": {"a": {}}, "minProperties": 1}, ["minProperties"]),
        ({"properties": {"a": {}}, "required": ["b"]}, ["required"]),
        ({"properties": {"a": {}}, "maxProperties": 1}, []),
        ({"properties": {"a": {}}, "additionalProperties": {}, "maxProperties": 1},
         ["maxProperties"]),
        ({"type": "object", "patternProperties": {"^x": {}}}, ["patternProperties"]),
        ({"type": "object", "propertyNames": {"maxLength": 1}}, ["propertyNames"]),
        ({"type": "object", "properties": {}, "dependentRequired": {"a": ["b"]}},
         ["dependentRequired"]),
        ({"type": "string", "not": {"const": "a"}}, ["not"]),
        ({"type": "string", "if": {"const": "a"}, "then": False}, ["if"]),
        ({"type": "string", "enum": ["a", 1]}, ["type"]),
        ({"type": ["string", "integer"], "enum": ["a", 1]}, []),
        ({"enum": [1, 2], "minimum": 2, "minLength": 5}, ["minimum"]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, []),
        ({"anyOf": [{"type": "number", "minimum": 1}]}, ["minimum"]),
        ({"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]},
         ["properties", "type", "required"]),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, ["oneOf"]),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, []),
        ({"oneOf": [{"const": 1}, {"enum": [1, 2]}]}, ["oneOf"]),
        ({"type": ["string", "null"], "format": "email"}, ["format"]),
        ({"type": ["number", "string"], "minimum": 3}, ["minimum"]),
        ({"allOf": [{"type": "integer"}]}, ["allOf"]),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, []),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"a": {}}}]}, ["allOf"]),
        ({"minimum": 1, "minLength": 3}, ["minLength", "minimum"]),
        ({"type": "string", "contentEncoding": "base64"}, ["contentEncoding"]),
        ({"type": "string", "title": "x", "description": "y", "examples": ["z"]}, []),
    ],
)  # fmt: skip
def test_words(schema: Any, broken: list[str]) -> None:
    assert words(schema) == broken


@pytest.mark.parametrize(
    "pattern",
    ["^a$", "^[a-z0-9_-]+$", "^(a|b){2,3}x?$", "^(?:ab(c|d))*$", r"^\.\+\(\[$", "^$", "^é ü$",
     "^a|b$"],
)  # fmt: skip
def test_patterns_that_are_kept(pattern: str) -> None:
    assert words({"type": "string", "pattern": pattern}) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "a", "^a", "a$", r"^a\$", r"^\d$", "^.$", "^[^a]$", "^a+?$", "^a++$", "^a**$", "^(?=a)b$",
        r"^\bfoo$", '^"$', '^["]$', "^a$|^b$", "^(a$", "^a)$", r"^\n$", "^a{0,3000}$", "^a\n$", 5,
        r"^(a)\1$", "^" + "(" * 1999, "^" + "a" * 3000 + "$",
    ],
)  # fmt: skip
def test_patterns_that_are_not(pattern: Any) -> None:
    assert words({"type": "string", "pattern": pattern}) == ["pattern"]


def test_patterns_that_are_not_kept_are_left_out_where_schemas_are() -> None:
    odd = {"type": "string", "pattern": "^.$", "maxLength": 1}
    plain = {"type": "string", "maxLength": 1}
    kept = {"type": "string", "pattern": "^a$"}
    inner = {"pattern": odd, "b": kept, "c": {"anyOf": [odd, {"items": odd}]}}
    schema = {"properties": inner, "default": odd, "$defs": {"x": odd}, "additionalProperties": odd}
    assert without_odd_patterns(schema) == {
        "properties": {"pattern": plain, "b": kept, "c": {"anyOf": [plain, {"items": plain}]}},
        "default": odd,
        "$defs": {"x": plain},
        "additionalProperties": plain,
    }
    assert inner["pattern"] is odd
    assert unsupported_keywords(odd) == ["pattern (#)"]


def test_references_are_followed_once() -> None:
    node = {"properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "number", "minimum": 1}}}
    found = unsupported_keywords({"$ref": "#/$defs/node", "$defs": {"node": node}})
    assert found == ["minimum (#/$defs/node/properties/n)"]


def test_alternatives_are_told_apart_by_a_property() -> None:
    """As unions are whose members have a tag."""
    members = {
        name: {"type": "object", "properties": {"kind": {"const": name}}, "required": ["kind"]}
        for name in ("cat", "dog")
    }
    union = {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}], "$defs": members}
    assert unsupported_keywords(union) == []
    members["dog"]["required"] = []
    assert unsupported_keywords(union) == ["oneOf (#)"]


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "object", "required": [{}], "properties": {}}, "required (#)"),
        ({"type": "object", "required": 5, "properties": {}}, "required (#)"),
        ({"type": 5, "anyOf": [{"type": "string"}]}, "type (#)"),
        ({"type": ["string", 5]}, "type (#)"),
        ({"oneOf": [{"required": 5, "properties": {}}, {}]}, "required (#/oneOf/0)"),
        ({"allOf": [{"required": 5, "properties": {}}]}, "required (#/allOf/0)"),
        ({"anyOf": [{"type": {}}]}, "type (#/anyOf/0)"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_said_so(schema: Any, place: str) -> None:
    """Of what the library takes as if it were one."""
    with pytest.raises(MalformedError) as found:
        unsupported_keywords(schema)
    assert str(found.value).startswith(f"{place} is n")


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": ["x"]}, {"allOf": [{"properties": 5}]}, {"allOf": "x"}, {"anyOf": 5},
        {"anyOf": ["x", {"properties": ["a"]}]}, {"oneOf": [{"enum": 5}, {"enum": {}}]},
        {"properties": {"a": 5}}, {"items": "x"}, {"prefixItems": {"a": {}}}, {"$ref": 5},
        {"type": "string", "required": True}, {"type": None}, {"enum": [{}, []]},
        {"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": "y"}},
    ],
)  # fmt: skip
def test_what_the_library_refuses_is_left_to_it(schema: Any) -> None:
    unsupported_keywords(schema)
    without_odd_patterns(schema)


@pytest.mark.parametrize("reference", ["#/components/schemas/S", "#/x/1", "#/const", "#/a~1b/S"])
def test_patterns_behind_any_reference_are_left_out(reference: str) -> None:
    odd = {"type": "string", "pattern": '^say "hi"$'}
    plain = {"type": "string"}
    places = {
        "components": {"schemas": {"S": odd}}, "x": [odd, odd], "const": odd, "a/b": {"S": odd},
        "examples": [odd],
    }  # fmt: skip
    found = without_odd_patterns({"items": {"$ref": reference}, **places})
    place: Any = found
    for name in reference[2:].split("/"):
        place = place[int(name) if name.isdecimal() else name.replace("~1", "/")]
    assert place == plain
    # What is no schema stays as it is.
    assert found["examples"] == [odd]
    assert found["x"][0] == odd
