"""Patterns of JSON schemas: those that llama.cpp makes a grammar of that gives strings of JSON."""

from __future__ import annotations

import re
from typing import Any

from polymux.engines.chat.schema_references import referred

#: Patterns that become a grammar: plain text, lists of characters, groups, and how often each.
_PLAIN = r"[^.\\\[\](){}*+?|^$\"\x00-\x1f\x7f]"
_ESCAPED = r"\\[.+*?()\[\]{}|^$]"
_LISTED = r"\[(?!\^)[^\\\[\]\"\x00-\x1f\x7f]+\]"
_OFTEN = r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})?(?![*+?{])"
_PIECE = re.compile(f"(?:{_PLAIN}|{_ESCAPED}|{_LISTED}){_OFTEN}|\\|")
_GROUP = re.compile(rf"\((?:\?:)?((?:[^()\\\[\]]|{_ESCAPED}|{_LISTED})*)\){_OFTEN}")
_MAX_PATTERN_CHARACTERS = 2000
#: Where a schema has schemas in it: under names, in lists, and alone.
_BY_NAME = frozenset(("properties", "$defs", "definitions"))
_LISTS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items"))
_INNER = frozenset(("items", "additionalProperties"))


def is_plain(pattern: object) -> bool:
    """Whether a pattern becomes a grammar, and one whose texts need no escapes in JSON.

    Example:
        >>> from polymux.engines.chat.schema_patterns import is_plain
        >>> is_plain("^[a-z]+$"), is_plain("[a-z]"), is_plain("^.$")
        (True, False, False)
    """
    if not isinstance(pattern, str) or not 2 <= len(pattern) <= _MAX_PATTERN_CHARACTERS:
        return False
    if pattern[0] != "^" or pattern[-1] != "$" or pattern.endswith("\\$"):
        return False
    rest, before = pattern[1:-1], None
    while rest != before:
        before = rest
        # Innermost first; what a group was is as good as a letter.
        rest = _GROUP.sub(lambda found: "x" if _all_pieces(found[1]) else "(", rest)
    return _all_pieces(rest)


def _all_pieces(text: str) -> bool:
    end = 0
    while end < len(text):
        found = _PIECE.match(text, end)
        if found is None:
            return False
        end = found.end()
    return True


def without_odd_patterns(schema: Any) -> Any:
    """A schema without the patterns that are not kept.

    Of some the library makes a grammar all the same, by which strings come that are none in JSON,
    and in the end it understands its own answer no more.

    Example:
        >>> from polymux.engines.chat.schema_patterns import without_odd_patterns
        >>> without_odd_patterns({"items": {"type": "string", "pattern": "^.$"}})
        {'items': {'type': 'string'}}
    """
    found = _copied(schema)
    waiting, seen = [found], set()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        if "pattern" in one and not is_plain(one["pattern"]):
            del one["pattern"]
        for name, value in one.items():
            if name in _BY_NAME and isinstance(value, dict):
                waiting += value.values()
            elif name in _LISTS and isinstance(value, list):
                waiting += value
            elif name in _INNER:
                waiting.append(value)
        if isinstance(one.get("$ref"), str):
            # Wherever it leads: what stands under words that nobody knows is a schema by that.
            waiting.append(referred(found, one["$ref"]))
    return found


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value
