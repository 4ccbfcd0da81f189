"""Schemas that answers must keep: how large they may be for a model's engine to keep to them.

llama.cpp makes a grammar of a schema and, for each token, holds it against every way in which the
answer may go on. All conversations of an engine wait for that meanwhile, and nothing can stop it:
a thousand ways take seconds for a token, fifty thousand hours.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeGuard

from polymux.service.failures import invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES = 128 << 10
MOST_CHOICES = 500
MOST_LEVELS = 64
#: The library takes no more repetitions of one thing.
MOST_REPEATED = 2000
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "not")
#: What makes a pattern go on in one way more: another branch, or a piece that may be left out.
_BRANCHES = re.compile(r"[|?*]|\{0?,")
_RANGES = (
    ("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum"),
    ("minProperties", "maxProperties"),
)  # fmt: skip
_REPEATED = ("minLength", "minItems", "maxItems")


def check_schemas(values: Mapping[str, Any]) -> None:
    """Looks at the schemas of a chat: that of ``response_format`` and those of ``tools``.

    Raises:
        BadRequestError: One is larger than an engine can keep to.
    """
    wanted = values.get("response_format")
    if isinstance(wanted, dict):
        _check_bytes(wanted, "response_format")
        named = wanted.get("json_schema")
        for one in (wanted.get("schema"), named.get("schema") if isinstance(named, dict) else None):
            _check(one, "response_format")
    tools = values.get("tools")
    if isinstance(tools, list) and tools:
        _check_bytes(tools, "tools")
        _check_choices(len(tools), "tools")
        for tool in tools:
            function = tool.get("function") if isinstance(tool, dict) else None
            _check(function.get("parameters") if isinstance(function, dict) else None, "tools")


def _check_bytes(value: Any, param: str) -> None:
    size_bytes = len(json.dumps(value))
    if size_bytes > MOST_BYTES:
        raise invalid(
            f"{param}: {size_bytes} bytes are more than the {MOST_BYTES} that this engine takes of "
            "schemas: describe less",
            param,
        )


def _check_choices(count: int, param: str) -> None:
    if count > MOST_CHOICES:
        raise invalid(
            f"{param}: {count} choices in one place (values of an enum, alternatives, branches of "
            f"a pattern, optional properties) are more than the {MOST_CHOICES} that this engine "
            "takes: offer fewer, or ask for a string",
            param,
        )


def _check(schema: Any, param: str) -> None:
    if isinstance(schema, dict):
        _check_choices(_Choices(schema, param).of(schema, 0), param)


class _Choices:
    """Counts in how many ways a schema goes on at most, in any one place."""

    def __init__(self, root: dict[str, Any], param: str) -> None:
        self._root = root
        self._param = param
        #: Of references; 1 while they are followed, as one to itself adds nothing.
        self._known: dict[str, int] = {}

    def of(self, schema: Any, level: int) -> int:
        """Of this schema; what its parts are among alternatives adds up."""
        if level > MOST_LEVELS:
            raise invalid(
                f"{self._param}: the schema has more than {MOST_LEVELS} levels: nest less",
                self._param,
            )
        if not isinstance(schema, dict):
            return 1
        self._check_ranges(schema)
        found = [1, _length(schema.get("enum")), _length(schema.get("type"))]
        found.append(len(_BRANCHES.findall(str(schema.get("pattern", "")))) + 1)
        properties = schema.get("properties")
        if isinstance(properties, dict):
            needed = schema.get("required")
            needed_count = _length(needed) if isinstance(needed, list) else 0
            found.append(1 + max(0, len(properties) - needed_count))
            found += (self.of(one, level + 1) for one in properties.values())
        found += (self.of(schema.get(name), level + 1) for name in _ONE)
        for name in _MANY:
            several = schema.get(name)
            if isinstance(several, list):
                found.append(sum(self.of(one, level + 1) for one in several))
        if isinstance(schema.get("$ref"), str):
            found.append(self._referred(schema["$ref"], level + 1))
        return max(found)

    def _check_ranges(self, schema: dict[str, Any]) -> None:
        """A range that nothing lies in would be computed for ever."""
        for least, most in _RANGES:
            low, high = schema.get(least), schema.get(most)
            if _is_number(low) and _is_number(high) and low > high:
                raise invalid(
                    f"{self._param}: {least} {low} is more than {most} {high}", self._param
                )
        for name in _REPEATED:
            count = schema.get(name)
            if _is_number(count) and count > MOST_REPEATED:
                raise invalid(
                    f"{self._param}: {name} {count} is more than the {MOST_REPEATED} that this "
                    "engine counts to: ask for less",
                    self._param,
                )

    def _referred(self, reference: str, level: int) -> int:
        if reference not in self._known:
            self._known[reference] = 1
            place: Any = self._root
            for name in reference.removeprefix("#").split("/")[1:]:
                place = place.get(name) if isinstance(place, dict) else None
            self._known[reference] = self.of(place, level)
        return self._known[reference]


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
