from __future__ import annotations

import json
from typing import Any

import pytest
from polymux.engines.chat.json_schema import (
    MAX_BYTES,
    MAX_CHOICES,
    MAX_NODES,
    ChatSchemas,
    for_grammar,
    is_plain,
)
from polymux.errors import BadRequestError, InternalServerError


def forms(schema: Any, **more: Any) -> list[dict[str, Any]]:
    """The three places for a schema in a chat request."""
    named = {"name": "x", "schema": schema, **more}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema, **more}}
    return [
        {"response_format": {"type": "json_schema", "json_schema": named}},
        {"response_format": {"type": "json_object", "schema": schema, **more}},
        {"tools": [tool]},
    ]


def enum_of(count: int) -> dict[str, Any]:
    return {"enum": [f"x{number}" for number in range(count)]}


def chained(count: int) -> dict[str, Any]:
    """Alternatives that refer to alternatives: a short schema with very many combinations."""
    definitions = {
        f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 10}
        for number in range(count)
    }
    return {"$ref": "#/$defs/d0", "$defs": definitions | {f"d{count}": enum_of(2)}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def node(name: str, **more: Any) -> dict[str, Any]:
    """An object of a recursive schema."""
    tree = {"$ref": "#/a"}
    members = {"type": {"const": name}, "left": tree, "right": tree}
    return {"type": "object", "properties": members, "required": ["type"], **more}


TOO_MUCH = {
    "an enum": enum_of(MAX_CHOICES + 1),
    "an enum within": {"type": "object", "properties": {"a": {"items": enum_of(MAX_CHOICES + 1)}}},
    "strings alike": {"anyOf": [{"type": "string", "pattern": "^a?$"}] * 17},
    "ways into arrays": {
        "$ref": "#/a",
        "a": {
            "anyOf": [{"type": "array", "items": {"$ref": "#/a"}, "maxItems": n} for n in (1, 2)]
        },
    },
    "ways into objects": {
        "$ref": "#/a",
        "a": {"anyOf": [node(name="b", left=n) for n in (1, 2)]},
    },
    "ranges": {"anyOf": [{"type": "integer", "minimum": n} for n in range(3)]},
    "properties": {"type": "object", "properties": {f"p{n}": {} for n in range(600)}},
    "references": chained(3),
    # A check in quadratic time would seem to hang here.
    "many references to much": {"anyOf": [{"$ref": "#/d"}] * 400, "d": {"anyOf": [{}] * 3000}},
    "places of an array": {"type": "array", "prefixItems": [enum_of(300), enum_of(300)]},
    "an enum under a number": {"$ref": "#/x/0", "x": [enum_of(MAX_CHOICES + 1)]},
    "levels": nested(70),
    "levels of something else": {"default": nested(400)},
    "bytes": {"type": "string", "description": "x" * MAX_BYTES},
    "values": {"type": "string", "examples": [0] * MAX_NODES},
    "repetitions": {"type": "string", "minLength": 1_000_000},
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_schemas_that_would_hold_up_everybody_are_refused(name: str) -> None:
    for values in forms(TOO_MUCH[name]):
        with pytest.raises(BadRequestError, match=r"\d+") as refused:
            ChatSchemas(values)
        (param,) = values
        assert (refused.value.status, refused.value.param) == (400, param)


ENOUGH = {
    "an enum": enum_of(MAX_CHOICES),
    "a reference to itself": {
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/tree"}}]}},
    },
    "nodes of a tree that differ": {
        "$ref": "#/a",
        "a": {"anyOf": [{"type": "number"}, *(node(name) for name in "+-*/")]},
    },
    "properties that are needed": {
        "type": "object",
        "properties": {f"p{n}": {"type": "string"} for n in range(600)},
        "required": [f"p{n}" for n in range(600)],
    },
    "nothing": None,
    "anything, or a string": {"anyOf": [True, {"type": "string"}]},
    "a reference into a list": {"$ref": "#/x/1", "x": [enum_of(600), enum_of(2)]},
    "a reference to a property": {
        "properties": {"default": {"type": "string"}, "b": {"$ref": "#/properties/default"}}
    },
    "two kinds": {"type": ["array", "null"], "items": enum_of(MAX_CHOICES)},
    "an older draft": {
        "$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}],
    },
    "one integer": {"type": "integer", "exclusiveMinimum": 4.5, "maximum": 5},
    "numbers": {"type": "number", "exclusiveMinimum": 5, "maximum": 5.1},
    "large bounds": {"type": "integer", "minimum": -(10**400), "maximum": 1e308},
}  # fmt: skip


@pytest.mark.parametrize("name", ENOUGH)
def test_schemas_of_a_usual_size_are_taken(name: str) -> None:
    for values in forms(ENOUGH[name]):
        ChatSchemas(values)
    # The contract reports values that are not schemas.
    ChatSchemas({"response_format": {"type": "text"}, "tools": [None, {"function": 3}]})


INVALID: dict[str, dict[str, Any]] = {
    "type": {"type": "nonsense"},
    "type names": {"type": ["array", "array"]},
    "allOf": {"allOf": ["x"]},
    "required": {"properties": {"a": {"required": [{}]}}},
    "an integer": {"type": "integer", "minimum": 10, "exclusiveMaximum": 10},
    "between integers": {"type": ["integer", "null"], "exclusiveMinimum": 5, "maximum": 5.9},
    "lengths": {"items": {"minLength": 5, "maxLength": 3}},
    "items": {"minItems": 3, "maxItems": 2},
    "a reference to nothing": {"$ref": "#/nowhere"},
    "a reference elsewhere": {"$ref": "http://127.0.0.1:9/x"},
    "a reference to a value": {"$ref": "#/const", "const": {"type": "string"}},
    "a reference without a slash": {"$ref": "#0/d", "d": {}},
    "a keyword of a newer draft": {
        "$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"minItems": "x"}],
    },
    "an unknown draft": {"$schema": "http://127.0.0.1:9/x"},
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_invalid_schemas_are_refused(name: str) -> None:
    for values in forms(INVALID[name]):
        with pytest.raises(BadRequestError) as refused:
            ChatSchemas(values)
        (param,) = values
        assert refused.value.param == param
        assert param in str(refused.value)


def answered(content: str | None, *calls: tuple[str, str], reason: str = "stop") -> Any:
    tool_calls = [{"function": {"name": name, "arguments": text}} for name, text in calls]
    return [{"finish_reason": reason, "message": {"content": content, "tool_calls": tool_calls}}]


PERSON = {
    "type": "object",
    "properties": {
        "age": {"type": "number", "minimum": 0},
        "mail": {"format": "email"},
        "back": {"pattern": "^(a+)+(?=b)$"},
    },
    "required": ["age"],
}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"age": 1}', None), ('{"age": -1}', "#/age"), ('{"age": 1, "mail": "x"}', "#/mail"),
        ("{}", "(at #)"), ("{", "not valid JSON"), ("[" * 100_000, "not valid JSON"),
        # A backtracking pattern must end.
        (json.dumps({"age": 1, "back": "a" * 100}), "#/back"),
    ],
)  # fmt: skip
def test_answers_are_checked(text: str, place: str | None) -> None:
    whole, plain, tool = (ChatSchemas(values) for values in forms(PERSON))
    for schemas, choices in (
        (whole, answered(text)), (plain, answered(text)), (tool, answered(None, ("f", text))),
    ):  # fmt: skip
        warnings: list[str] = []
        schemas.check(choices, warnings.append)
        assert len(warnings) == (place is not None)
        assert place is None or place in warnings[0]


def test_what_breaks_a_strict_schema_is_an_error() -> None:
    warnings: list[str] = []
    for values, choices in zip(
        forms(PERSON, strict=True),
        (answered("{}"), answered("{}"), answered(None, ("f", "{}"), reason="tool_calls")),
        strict=True,
    ):
        with pytest.raises(InternalServerError):
            ChatSchemas(values).check(choices, warnings.append)
    assert warnings == []


def test_what_is_not_checked() -> None:
    """A truncated answer, a call of an unknown tool, and calls that need not match a schema."""
    warnings: list[str] = []
    whole, _, tool = (ChatSchemas(values) for values in forms(PERSON, strict=True))
    whole.check(answered("{", reason="length"), warnings.append)
    tool.check(answered("{", ("g", "{}")), warnings.append)
    values = forms(PERSON, strict=True)[2] | {"disable_tool_validation": True}
    ChatSchemas(values).check(answered(None, ("f", "{}")), warnings.append)
    assert warnings == []


PLAIN = ["^a$", "^[a-z0-9_-]+$", "^(a|b|c)x?(d|e)$", "^(?:ab)*c$", r"^\.\+\(\[$", "^$", "^é ü$",
         "^a|b$", "^(a+b)c$"]  # fmt: skip
ODD = [
    "a", "^a", "a$", r"^a\$", r"^\d$", "^.$", "^[^a]$", "^a+?$", "^a++$", "^(?=a)b$", r"^\bfoo$",
    '^"$', '^["]$', "^a$|^b$", "^(a$", "^a)$", r"^\n$", "^a{0,3000}$", "^a\n$", 5, r"^(a)\1$",
    "^" + "(" * 499, "^" + "a" * 3000 + "$", "^(a+)+$", "^(a{2}|b)*$", "^((((a+)+)+)+)$",
    "^(a|b){2,3}x?$", "^a?b?c?d?$", "^(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)$", "^a{999}a{999}a{9}$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", [*PLAIN, *ODD])
def test_patterns_that_the_grammar_has(pattern: Any) -> None:
    assert is_plain(pattern) is (pattern in PLAIN)


def test_patterns_that_the_grammar_has_not_are_left_out_of_schemas_alone() -> None:
    odd = {"type": "string", "pattern": "^.$", "maxLength": 1}
    plain = {"type": "string", "maxLength": 1}
    kept = {"type": "string", "pattern": "^a$"}
    inner = {"pattern": odd, "default": odd, "b": kept, "c": {"anyOf": [odd, {"items": odd}]}}
    schema = {"properties": inner, "default": odd, "$defs": {"x": odd}, "x": [odd]}
    wanted = {"pattern": plain, "default": plain, "b": kept,
              "c": {"anyOf": [plain, {"items": plain}]}}  # fmt: skip
    assert for_grammar(schema) == {
        "properties": wanted, "default": odd, "$defs": {"x": plain}, "x": [plain],
    }  # fmt: skip
    assert inner["pattern"] is odd
