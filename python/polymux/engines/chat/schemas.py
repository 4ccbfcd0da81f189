"""Schemas that answers must keep: how large they may be for a model's engine to keep to them.

llama.cpp makes a grammar of a schema and, for each token, holds it against every way in which the
answer may go on. All conversations of an engine wait for that meanwhile, and nothing can stop it:
a thousand ways take seconds for a token, fifty thousand hours.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, TypeGuard

from polymux.engines.chat.schema_references import odd_step, referred
from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux.errors import BadRequestError

MAX_BYTES = 128 << 10
MAX_CHOICES = 500
MAX_LEVELS = 64
#: Of lists and objects in one another, whatever they are: a level of a schema takes two or three.
_MAX_NESTING = 4 * MAX_LEVELS
#: The library takes no more repetitions of one thing.
MAX_REPETITIONS = 2000
#: What has a schema in it, or a list of them, such as one for each place of an array.
_PARTS = ("anyOf", "oneOf", "allOf", "prefixItems", "items", "additionalProperties", "not")
#: What makes a pattern go on in one way more: another branch, or a piece that may be left out.
_BRANCHES = re.compile(r"[|?*]|\{0?,")
_RANGES = (
    ("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties"),
)  # fmt: skip
_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
_REPEATED = ("minLength", "minItems", "maxItems")


def check_schemas(values: Mapping[str, Any]) -> None:
    """Looks at the schemas of a chat: that of ``response_format`` and those of ``tools``.

    Raises:
        BadRequestError: One is larger than an engine can keep to.
    """
    wanted = values.get("response_format")
    if isinstance(wanted, dict):
        _check_nesting(wanted, "response_format")
        _check_bytes(wanted, "response_format")
        named = wanted.get("json_schema")
        for one in (wanted.get("schema"), named.get("schema") if isinstance(named, dict) else None):
            _check(one, "response_format")
    tools = values.get("tools")
    if isinstance(tools, list) and tools:
        _check_nesting(tools, "tools")
        _check_bytes(tools, "tools")
        _check_choices(len(tools), "tools")
        for tool in tools:
            function = tool.get("function") if isinstance(tool, dict) else None
            _check(function.get("parameters") if isinstance(function, dict) else None, "tools")


def _check_nesting(value: Any, param: str) -> None:
    """Of whatever is in it, before anything goes through it that calls itself."""
    level, here = 0, [value]
    while here:
        if level > _MAX_NESTING:
            raise _too_deep(param)
        lists = (one.values() if isinstance(one, dict) else one for one in here)
        here = [one for each in lists for one in each if isinstance(one, (dict, list))]
        level += 1


def _check_bytes(value: Any, param: str) -> None:
    size_bytes = len(json.dumps(value))
    if size_bytes > MAX_BYTES:
        raise bad_request(
            f"{param}: {size_bytes} bytes are more than the {MAX_BYTES} that this engine takes of "
            "schemas: describe less",
            param,
        )


def _check_choices(count: int, param: str) -> None:
    if count > MAX_CHOICES:
        raise bad_request(
            f"{param}: {count} choices in one place (values of an enum, alternatives, branches of "
            f"a pattern, optional properties) are more than the {MAX_CHOICES} that this engine "
            "takes: offer fewer, or ask for a string",
            param,
        )


def _too_deep(param: str) -> BadRequestError:
    return bad_request(f"{param}: the schema has more than {MAX_LEVELS} levels: nest less", param)


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
        if level > MAX_LEVELS:
            raise _too_deep(self._param)
        if not isinstance(schema, dict):
            return 1
        self._check_kinds(schema.get("type"))
        self._check_ranges(schema)
        found = [1, _length(schema.get("enum")), _length(schema.get("type"))]
        found.append(len(_BRANCHES.findall(str(schema.get("pattern", "")))) + 1)
        properties = schema.get("properties")
        if isinstance(properties, dict):
            needed = schema.get("required")
            needed = needed if isinstance(needed, list) else []
            names = {one for one in needed if isinstance(one, str)}
            found.append(1 + len(properties.keys() - names))
            found += (self.of(one, level + 1) for one in properties.values())
        for name in _PARTS:
            part = schema.get(name)
            parts = part if isinstance(part, list) else [part]
            found.append(sum(self.of(one, level + 1) for one in parts))
        if isinstance(schema.get("$ref"), str):
            found.append(self._referred(schema["$ref"], level + 1))
        return max(found)

    def _check_kinds(self, kinds: Any) -> None:
        """A kind that is named twice has its parts made twice, on each level: no end of them."""
        names = [one for one in kinds if isinstance(one, str)] if isinstance(kinds, list) else []
        if len(names) > len(set(names)):
            raise bad_request(f"{self._param}: type names a kind twice", self._param)

    def _check_ranges(self, schema: dict[str, Any]) -> None:
        """A range that nothing lies in would be computed for ever, or not be kept."""
        for least, most in _RANGES:
            low, high = schema.get(least), schema.get(most)
            if _is_number(low) and _is_number(high) and low > high:
                raise bad_request(
                    f"{self._param}: {least} {low} is more than {most} {high}", self._param
                )
        if not _has_numbers(schema):
            bounds = [f"{name} {json.dumps(schema[name])}" for name in _BOUNDS if name in schema]
            raise bad_request(f"{self._param}: no number fits {' and '.join(bounds)}", self._param)
        for name in _REPEATED:
            count = schema.get(name)
            if _is_number(count) and count > MAX_REPETITIONS:
                raise bad_request(
                    f"{self._param}: {name} {count} is more than the {MAX_REPETITIONS} that this "
                    "engine counts to: ask for less",
                    self._param,
                )

    def _referred(self, reference: str, level: int) -> int:
        if reference not in self._known:
            self._known[reference] = 1
            odd = odd_step(self._root, reference)
            if odd is not None:
                raise bad_request(
                    f"{self._param}: the reference {reference[:100]!r} goes into a list by "
                    f"{odd[:50]!r}, which is no number of a place in it",
                    self._param,
                )
            self._known[reference] = self.of(referred(self._root, reference), level)
        return self._known[reference]


def _has_numbers(schema: dict[str, Any]) -> bool:
    """Whether a number lies within the bounds; an integer, where it is to be one."""
    low, low_excluded = _bound(schema, "minimum", "exclusiveMinimum", max)
    high, high_excluded = _bound(schema, "maximum", "exclusiveMaximum", min)
    if low is None or high is None:
        return True
    if schema.get("type") == "integer" and max(abs(low), abs(high)) < math.inf:
        first = math.floor(low) + 1 if low_excluded else math.ceil(low)
        last = math.ceil(high) - 1 if high_excluded else math.floor(high)
        return first <= last
    return low < high or (low == high and not (low_excluded or high_excluded))


def _bound(
    schema: dict[str, Any], plain: str, exclusive: str, tighter: Callable[..., float]
) -> tuple[float | None, bool]:
    """The bound on one side, and whether it is left out itself; draft 4 says that by ``true``."""
    found = [schema.get(plain), schema.get(exclusive)]
    known = [one for one in found if _is_number(one)]
    if not known:
        return None, False
    bound = tighter(known)
    return bound, found[1] is True or (_is_number(found[1]) and found[1] == bound)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
