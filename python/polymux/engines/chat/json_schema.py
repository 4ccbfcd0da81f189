"""What of a JSON schema llama.cpp's grammars do not keep, so that nobody takes it for kept.

The library makes a grammar of a schema, and leaves out in silence what it knows no grammar for:
answers may break that. Which words it keeps, and beside which others, was seen in its grammars;
`test_schema_promises` holds what is said here against them. What is called unkept may be kept by
chance; what is not called so is.

Keywords: JSON Schema 2020-12, https://json-schema.org/draft/2020-12/json-schema-validation.
"""

from __future__ import annotations

import re
from typing import Any

from polymux.engines.chat.schema_patterns import is_plain
from polymux.engines.chat.schema_references import referred

#: What constrains values of one kind, and is nothing to those of others.
_OF_KINDS = {
    "string": frozenset(
        ("pattern", "format", "minLength", "maxLength", "contentEncoding", "contentMediaType",
         "contentSchema")
    ),
    "number": frozenset(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    ),
    "array": frozenset(
        ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minItems",
         "maxItems", "uniqueItems")
    ),
    "object": frozenset(
        ("properties", "required", "additionalProperties", "patternProperties", "propertyNames",
         "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies",
         "unevaluatedProperties")
    ),
}  # fmt: skip
_OF_ALL = frozenset(
    ("$ref", "$dynamicRef", "$recursiveRef", "const", "enum", "type", "allOf", "anyOf", "oneOf",
     "not", "if")
)  # fmt: skip
_SIDES = (frozenset(("minimum", "exclusiveMinimum")), frozenset(("maximum", "exclusiveMaximum")))
_BOUNDS = _SIDES[0] | _SIDES[1]
#: Any number with more digits is written with these at most.
_MAX_DIGITS = 15
_FORMATS = re.compile(r"uuid[1-5]?|date|time|date-time")
_COMPARED_IN_PAIRS = 64


class MalformedError(ValueError):
    """A schema is none, in a way that the library takes nevertheless."""


def unsupported_keywords(schema: Any) -> list[str]:
    """What an answer may break of a schema: keywords and where they stand; none twice.

    Raises:
        MalformedError: It is no schema, in a word that matters and that the library lets pass; what
            else is wrong, the library says when it refuses it.

    Example:
        >>> from polymux.engines.chat.json_schema import unsupported_keywords
        >>> a = {"type": "number", "minimum": 1}
        >>> unsupported_keywords({"type": "object", "properties": {"a": a}})
        ['minimum (#/properties/a)']
        >>> unsupported_keywords({"type": "integer", "minimum": 1})
        []
    """
    promises = _Promises(schema)
    promises.look(schema, "#")
    return list(promises.broken)


class _Promises:
    """Walks through a schema, as the library does."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._followed: set[str] = set()
        #: In the order in which they were found.
        self.broken: dict[str, None] = {}

    def look(self, schema: Any, place: str) -> None:
        """At a schema; which word decides is the library's order."""
        if not isinstance(schema, dict):
            return
        names = _present(schema)
        several = schema.get("type")
        if several is not None and not isinstance(several, str) and not _are_names(several):
            raise MalformedError(f"type ({place}) is neither a name nor a list of names")
        if "$ref" in names:
            self._tell(names - {"$ref"}, place)
            self._follow(str(schema["$ref"]))
        elif names & {"oneOf", "anyOf"}:
            self._alternatives(schema, names, place)
        elif names & {"const", "enum"}:
            self._values(schema, names, place)
        elif isinstance(several, list):
            for one in dict.fromkeys(several):
                self.look({**schema, "type": one}, place)
        else:
            self._of_kind(schema, names, place)

    def _tell(self, names: frozenset[str], place: str) -> None:
        for name in sorted(names):
            self.broken.setdefault(f"{name} ({place})")

    def _follow(self, reference: str) -> None:
        if reference not in self._followed:
            self._followed.add(reference)
            self.look(referred(self._root, reference), reference)

    def _alternatives(self, schema: dict[str, Any], names: frozenset[str], place: str) -> None:
        word = "oneOf" if "oneOf" in names else "anyOf"
        given = schema[word] if isinstance(schema[word], list) else []
        said = [_kinds_of(self._resolved(one)) for one in given]
        allowed = schema.get("type")
        kept = {word}
        if all(one and one <= _named(allowed) for one in said):
            kept.add("type")
        if word == "oneOf" and not self._exclusive(given):
            self._tell(frozenset((word,)), place)
        self._tell(names - kept, place)
        for number, one in enumerate(given):
            self.look(one, f"{place}/{word}/{number}")

    def _resolved(self, schema: Any) -> Any:
        for _ in range(8):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            schema = referred(self._root, schema["$ref"])
        return schema

    def _exclusive(self, given: list[Any]) -> bool:
        """Whether no value can fit two of them."""
        found = [self._resolved(one) for one in given]
        if len(found) > _COMPARED_IN_PAIRS:
            return False
        return all(
            self._apart(one, other) for n, one in enumerate(found) for other in found[n + 1 :]
        )

    def _apart(self, one: Any, other: Any) -> bool:
        if not isinstance(one, dict) or not isinstance(other, dict):
            return False
        kinds = [_named(_numbers(_kinds_of(each))) for each in (one, other)]
        if all(kinds) and not kinds[0] & kinds[1]:
            return True
        values = [_values_of(each) for each in (one, other)]
        if values[0] is not None and values[1] is not None:
            return not any(each in values[1] for each in values[0])
        needed = [_names(each.get("required")) for each in (one, other)]
        parts = [each.get("properties") for each in (one, other)]
        if not all(isinstance(each, dict) for each in parts):
            return False
        for name in needed[0] & needed[1] & set(parts[0]) & set(parts[1]):  # type: ignore[arg-type]
            left, right = (_values_of(self._resolved(each[name])) for each in parts)  # type: ignore[index]
            if left is not None and right is not None and not any(each in right for each in left):
                return True
        return False

    def _values(self, schema: dict[str, Any], names: frozenset[str], place: str) -> None:
        values = _values_of(schema) or []
        kept = {"const" if "const" in names else "enum"}
        if all(_kind(one) in _named(schema.get("type")) for one in values):
            kept.add("type")
        self._tell(_about(names - kept, {_numbers_kind(_kind(one)) for one in values}), place)

    def _of_kind(self, schema: dict[str, Any], names: frozenset[str], place: str) -> None:
        """What nothing but its kind decides, or, where it names none, what its words are about."""
        kind = schema.get("type")
        about = {one for one, words in _OF_KINDS.items() if names & words}
        if kind is None and len(about) > 1:
            self._tell(names, place)
            return
        found = _numbers_kind(str(kind)) if kind is not None else next(iter(about), None)
        here = names - {"type"} if found is None else _about(names - {"type"}, {found})
        if found == "object" and {"properties", "additionalProperties"} & set(schema):
            kept = self._object(schema, place)
        elif "allOf" in here and found in (None, "object"):
            kept = self._merged(schema, place)
        elif found == "array" and (kind is not None or {"items", "prefixItems"} & set(schema)):
            kept = self._array(schema, place)
        elif found == "string":
            kept = _string(schema, here)
        elif kind == "integer":
            kept = {name for name in here & _BOUNDS if _whole(schema[name])}
            for pair in _SIDES:  # Of two on one side, one is looked at.
                kept -= pair if pair <= kept else frozenset()
        else:
            kept = set()
        self._tell(here - kept, place)

    def _object(self, schema: dict[str, Any], place: str) -> set[str]:
        properties = schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        more = schema.get("additionalProperties")
        for name, one in known.items():
            self.look(one, f"{place}/properties/{name}")
        self.look(more, f"{place}/additionalProperties")
        kept = {"properties", "additionalProperties", "unevaluatedProperties"}
        needed = _needed(schema, place)
        if "required" in schema and all(one in known for one in needed):
            kept.add("required")
            if _at_most(schema.get("minProperties"), len(needed)):
                kept.add("minProperties")
        if more in (None, False) and _at_most(len(known), schema.get("maxProperties")):
            kept.add("maxProperties")
        return kept

    def _merged(self, schema: dict[str, Any], place: str) -> set[str]:
        """Objects that hold what all of them ask for; of other things nothing is merged."""
        parts = schema["allOf"] if isinstance(schema["allOf"], list) else []
        kept = {"allOf"}
        for number, one in enumerate(parts):
            found = self._resolved(one)
            inner = f"{place}/allOf/{number}"
            if not isinstance(found, dict) or not isinstance(found.get("properties"), dict):
                kept.discard("allOf")
                continue
            self._tell(_present(found) - {"properties", "required", "type"}, inner)
            if not set(_needed(found, inner)) <= set(found["properties"]):
                self._tell(frozenset(("required",)), inner)
            for name, each in found["properties"].items():
                self.look(each, f"{inner}/properties/{name}")
        # The same property of two of them is one of theirs.
        named = [name for one in parts for name in _properties(self._resolved(one))]
        if len(named) != len(set(named)):
            kept.discard("allOf")
        return kept

    def _array(self, schema: dict[str, Any], place: str) -> set[str]:
        first = schema.get("prefixItems")
        items = schema.get("items", first)
        if isinstance(items, list):
            # As many as there are, of the kinds that are told: neither fewer nor more.
            for number, one in enumerate(items):
                self.look(one, f"{place}/prefixItems/{number}")
            kept = {"items", "prefixItems", "additionalItems", "unevaluatedItems"}
            if _at_most(schema.get("minItems"), len(items)):
                kept.add("minItems")
            if _at_most(len(items), schema.get("maxItems")):
                kept.add("maxItems")
            return kept - ({"prefixItems"} if first is not None and "items" in schema else set())
        self.look(items, f"{place}/items")
        return {"items", "minItems", "maxItems", "additionalItems", "unevaluatedItems"}


def _string(schema: dict[str, Any], names: frozenset[str]) -> set[str]:
    """A pattern before a format, and a format before lengths: one of them is kept.

    Where the pattern is left out, it is as if there were none.
    """
    if "pattern" in names and is_plain(schema["pattern"]):
        return {"pattern"}
    if "format" in names and _FORMATS.fullmatch(str(schema["format"])):
        return {"format"}
    return {"minLength", "maxLength"}


def _present(schema: dict[str, Any]) -> frozenset[str]:
    """The words of a schema that ask for something."""
    known = _OF_ALL.union(*_OF_KINDS.values())
    return frozenset(name for name in known & set(schema) if not _is_idle(name, schema[name]))


def _is_idle(name: str, value: Any) -> bool:
    """Whether every value fits this."""
    if name in ("minLength", "minItems", "minProperties", "uniqueItems", "$ref"):
        return not value
    if name in ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items",
                "propertyNames", "additionalItems"):  # fmt: skip
        return value is True or value == {}
    if name == "multipleOf":
        return False
    return name not in ("const", "enum", "not", "if", "contains") and value in ({}, [], None)


def _about(names: frozenset[str], kinds: set[str]) -> frozenset[str]:
    """Those of the words that constrain values of these kinds."""
    others = [words for kind, words in _OF_KINDS.items() if kind not in kinds]
    return names.difference(*others)


def _values_of(schema: Any) -> list[Any] | None:
    if isinstance(schema, dict) and "const" in schema:
        return [schema["const"]]
    found = schema.get("enum") if isinstance(schema, dict) else None
    return found if isinstance(found, list) else None


def _kinds_of(schema: Any) -> set[str]:
    """The kinds that a schema names for itself; none where it names none."""
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("type")
    values = _values_of(schema)
    if kind is None and values is not None:
        return {_kind(one) for one in values}
    return _named(kind)


def _properties(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _needed(schema: dict[str, Any], place: str) -> list[str]:
    """The names under ``required``.

    Raises:
        MalformedError: There is something else.
    """
    found = schema.get("required")
    if found is not None and not _are_names(found):
        raise MalformedError(f"required ({place}) is no list of names")
    return found or []


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _names(value: Any) -> set[str]:
    several = value if isinstance(value, list | set) else ()
    return {one for one in several if isinstance(one, str)}


def _named(kind: Any) -> set[str]:
    found = {kind} if isinstance(kind, str) else _names(kind)
    return found | ({"integer"} if "number" in found else set())


def _numbers(kinds: set[str]) -> set[str]:
    return {_numbers_kind(one) for one in kinds}


def _numbers_kind(kind: str) -> str:
    return "number" if kind == "integer" else kind


def _kind(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array",
             dict: "object"}  # fmt: skip
    return names.get(type(value), "null")


def _whole(value: Any) -> bool:
    """A bound that the library's grammar of digits keeps."""
    return type(value) is int and len(str(abs(value))) <= _MAX_DIGITS


def _at_most(less: Any, more: Any) -> bool:
    return isinstance(less, int) and isinstance(more, int) and less <= more
