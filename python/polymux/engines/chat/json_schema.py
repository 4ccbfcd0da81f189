"""JSON schemas in chats: limits before the model runs, and validation of its responses.

llama.cpp converts a schema to a grammar. For each token it compares the grammar with every possible
continuation, and all conversations of the engine wait meanwhile. With a thousand possible
continuations, one token takes seconds. Therefore the complexity of schemas is limited. The grammar
ignores some keywords, such as `uniqueItems`; jsonschema-rs validates the finished response against
all of them.

JSON Schema 2020-12: https://json-schema.org/draft/2020-12/json-schema-validation.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.engines.base import missing_package
from polymux.service.errors import bad_request, engine_failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from polymux.errors import BadRequestError

MAX_BYTES = 128 << 10
MAX_NODES = 5000
MAX_CHOICES = 500
MAX_DEPTH = 64
#: Nesting of objects and lists. One level of a schema has two or three of them.
_MAX_NESTING = 4 * MAX_DEPTH
#: llama.cpp rejects grammars with more repetitions of one element.
MAX_REPETITIONS = 2000
_SUBSCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems", "items", "additionalProperties", "not")
_RANGES = (
    ("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties"),
)  # fmt: skip
_REPEATED = ("minLength", "minItems", "maxItems")
#: References within the schema. Their names must not be escaped: llama.cpp does not decode ~0 and
#: ~1.
_REFERENCE = re.compile(r"#(?:/[^/~%]+)*")
#: Keywords whose values are data, not schemas.
_DATA = frozenset(("const", "enum", "default", "examples"))
#: Keywords whose values map names chosen by the client to schemas.
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions"))
#: Backtracking limit for one pattern in one text of a response.
_BACKTRACK_LIMIT = 10_000

# Patterns for which llama.cpp generates strings that are valid JSON without escapes, and follows
# few ways at a time. Groups are not nested, and a repeated group has neither repetitions nor
# alternatives inside.
_ONE = (
    r"(?:[^.\\\[\](){}*+?|^$\"\x00-\x1f\x7f]|\\[.+*?()\[\]{}|^$]"
    r"|\[(?!\^)[^\\\[\]\"\x00-\x1f\x7f]+\])"
)
_TIMES = r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})"
_GROUP = rf"\((?:\?:)?(?:{_ONE}*\){_TIMES}|(?:{_ONE}{_TIMES}?|\|)*\)(?![*+?{{]))"
_PLAIN_PATTERN = re.compile(rf"\^(?:{_ONE}{_TIMES}?|{_GROUP}|\|)*\$")
_MAX_PATTERN_CHARACTERS = 500
#: A repetition whose end is open. llama.cpp follows each way to divide a text among several.
_OPEN = re.compile(r"(?<!\\)(?:[*+?](?!:)|\{\d+,)")
_MAX_OPEN = 3
_GROUPS = re.compile(r"\(([^()]*)\)")
_COUNTS = re.compile(r"(\d+)(?=\d*[,}])")
#: Maximum combinations of the alternatives in a pattern.
_MAX_COMBINATIONS = 50
#: Maximum alternatives of one type at one place. Each is followed until the text decides.
_MAX_ALIKE = 16
_MAX_OBJECTS_ALIKE = 100
_WEIGHT_OF_RANGE = 8
#: Maximum ways to read the beginning of a value with this many levels.
_MAX_WAYS, _NESTED = 64, 8
_TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")


class ChatSchemas:
    """The schemas of one request: those of `response_format` and of `tools`.

    Attributes:
        constrain: Whether the text of the response has one. llama.cpp sends it token by token,
            unlike a tool call.

    Raises:
        BadRequestError: A schema is invalid or too complex for the engine.
        NoBackendError: There is a schema, and jsonschema-rs is not installed.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._answer: list[_Checked] = []
        self._tools: dict[str, _Checked] = {}
        wanted = values.get("response_format")
        if isinstance(wanted, dict):
            _check_size(wanted, "response_format")
            named = wanted.get("json_schema")
            for form in (wanted, named if isinstance(named, dict) else {}):
                if isinstance(form.get("schema"), dict):
                    self._answer.append(_checked(form, "schema", "response_format"))
        tools = values.get("tools")
        self.constrain = bool(self._answer)
        if not isinstance(tools, list) or not tools:
            return
        _check_size(tools, "tools")
        if len(tools) > MAX_CHOICES:
            raise bad_request(
                f"tools: too many tools (got {len(tools)}, allowed {MAX_CHOICES})", "tools"
            )
        for function in functions_of(tools):
            if isinstance(function.get("parameters"), dict):
                found = _checked(function, "parameters", "tools")
                self._tools[str(function.get("name"))] = found
        if values.get("disable_tool_validation") is True:
            self._tools.clear()

    def check(self, choices: Sequence[Mapping[str, Any]], log: Callable[[str], None]) -> None:
        """Validate finished responses.

        Args:
            choices: Choices in OpenAI's format with a `message` each. Truncated ones are skipped.
            log: Called with violations of schemas that are not `strict`.

        Raises:
            InternalServerError: A response violates a `strict` schema.
        """
        if not self._answer and not self._tools:
            return
        for choice in choices:
            if choice.get("finish_reason") not in ("stop", "tool_calls"):
                continue
            message = choice["message"]
            if message.get("content"):
                for schema in self._answer:
                    schema.check(message["content"], "the answer", log)
            for function in functions_of(message.get("tool_calls") or ()):
                schema_of_tool = self._tools.get(function["name"])
                if schema_of_tool is not None:
                    subject = f"the call of {function['name'][:64]!r}"
                    schema_of_tool.check(function["arguments"], subject, log)


class _Checked(NamedTuple):
    validator: Any
    param: str
    strict: bool

    def check(self, text: str, subject: str, log: Callable[[str], None]) -> None:
        problem = self._problem(text)
        if problem is None:
            return
        words = f"{self.param}: {subject} violates the schema: {problem}"
        if self.strict:
            raise engine_failed(f"{words}. Try again, or set strict to false")
        log(words)

    def _problem(self, text: str) -> str | None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return "not valid JSON"
        error = next(self.validator.iter_errors(value), None)
        return (
            None if error is None else f"{error.message[:200]} (at {_pointer(error.instance_path)})"
        )


def functions_of(calls: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the functions of tools or of tool calls."""
    for one in calls:
        function = one.get("function") if isinstance(one, dict) else None
        if isinstance(function, dict):
            yield function


def _pointer(path: Sequence[str | int]) -> str:
    return "/".join(("#", *(str(one)[:50] for one in path[:_MAX_NESTING])))


def _checked(owner: Mapping[str, Any], name: str, param: str) -> _Checked:
    try:
        import jsonschema_rs
    except ImportError:
        raise missing_package("chat", "jsonschema-rs", "chat") from None
    schema = owner[name]
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT)
    try:
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=True, pattern_options=patterns, offline=True
        )
    except jsonschema_rs.ValidationError as error:
        place = _pointer(error.instance_path)
        message = f"{param}: the schema is invalid at {place}: {error.message[:300]}"
        raise bad_request(message, param) from None
    try:
        choices = _Ways(schema, param).of(schema, 0)
    except (AttributeError, TypeError):
        # llama.cpp reads a keyword that the draft in `$schema` does not define and validate.
        message = f"{param}: the schema is invalid. Use only keywords of JSON Schema 2020-12"
        raise bad_request(message, param) from None
    _check_choices(choices, param)
    return _Checked(validator, param, owner.get("strict") is True)


def _check_size(value: Any, param: str) -> None:
    """Check size and depth iteratively, before other functions recurse into the value."""
    nodes, depth, level = 0, 0, [value]
    while level:
        nodes += len(level)
        depth += 1
        if depth > _MAX_NESTING:
            raise _too_deep(param)
        if nodes > MAX_NODES:
            raise bad_request(f"{param}: schema too large (allowed: {MAX_NODES} values)", param)
        lists = (one.values() if isinstance(one, dict) else one for one in level
                 if isinstance(one, dict | list))  # fmt: skip
        level = [one for each in lists for one in each]
    size_bytes = len(json.dumps(value))
    if size_bytes > MAX_BYTES:
        raise bad_request(
            f"{param}: schema too large (got {size_bytes} bytes, allowed {MAX_BYTES})",
            param,
        )


def _check_choices(count: int, param: str) -> None:
    if count > MAX_CHOICES:
        raise bad_request(
            f"{param}: schema too complex: too many choices in one place (got {count}, allowed "
            f"{MAX_CHOICES}). Choices are enum values, alternatives, branches of a pattern and "
            'optional properties. Offer fewer, or use type "string" without an enum',
            param,
        )


def _too_deep(param: str) -> BadRequestError:
    return bad_request(f"{param}: schema nested too deeply (allowed {MAX_DEPTH} levels)", param)


class _Ways:
    """Counts the maximum number of possible continuations at any position of a valid response."""

    def __init__(self, root: dict[str, Any], param: str) -> None:
        self._root = root
        self._param = param
        #: Counts by reference. 1 while a reference is followed, because recursion adds no choices.
        self._known: dict[str, int] = {}
        #: By the identity of a part of the schema.
        self._alike_known: dict[int, Counter[str]] = {}
        self._ways_known: dict[tuple[int, int], int] = {}

    def of(self, schema: Any, depth: int) -> int:
        """Return the maximum in this schema. Alternatives add up."""
        if depth > MAX_DEPTH:
            raise _too_deep(self._param)
        if not isinstance(schema, dict):
            return 1
        self._check_ranges(schema)
        self._check_alike(schema)
        found = [1, *(len(schema[name]) for name in ("enum", "type") if _is_list(schema, name))]
        properties = schema.get("properties", {})
        found.append(1 + len(properties.keys() - set(schema.get("required", ()))))
        found += (self.of(one, depth + 1) for one in properties.values())
        for name in _SUBSCHEMAS:
            parts = schema[name] if _is_list(schema, name) else [schema.get(name)]
            found.append(sum(self.of(one, depth + 1) for one in parts))
        if "$ref" in schema:
            found.append(self._referred(schema["$ref"], depth + 1))
        return max(found)

    def _check_alike(self, schema: dict[str, Any]) -> None:
        """Reject many alternatives that begin with the same character, and their combinations."""
        for kind, count in self._alike(schema).items():
            most = _MAX_OBJECTS_ALIKE if kind == "object" else _MAX_ALIKE
            if count > most:
                raise bad_request(
                    f"{self._param}: schema too complex: too many alternatives of type {kind} in "
                    f"one place (got {count}, allowed {most})",
                    self._param,
                )
        ways = self._ways(schema, _NESTED)
        if ways > _MAX_WAYS:
            raise bad_request(
                f"{self._param}: schema too complex: too many alternatives that are alike within "
                f"alternatives (got {ways} ways into {_NESTED} levels, allowed {_MAX_WAYS}). Let "
                "each object begin with a required property of another name or constant",
                self._param,
            )

    def _alike(self, schema: Any) -> Counter[str]:
        """Count the alternatives for one value by type."""
        if id(schema) not in self._alike_known:
            self._alike_known[id(schema)] = Counter()  # A reference to itself adds none.
            found = Counter(_types(schema))
            if (
                "integer" in found
                and isinstance(schema, dict)
                and {"minimum", "maximum"} & schema.keys()
            ):
                found["integer"] = _WEIGHT_OF_RANGE  # llama.cpp writes it with many alternatives.
            for one in self._parts(schema):
                found += self._alike(one)
            self._alike_known[id(schema)] = found
        return self._alike_known[id(schema)]

    def _ways(self, schema: Any, levels: int) -> int:
        """Count the ways to read the same text down to a level of nested arrays and objects.

        llama.cpp follows each of them. In a recursive schema, two ways for each level would be
        thousands soon.
        """
        key = id(schema), levels
        if levels == 0:
            return 1
        if key not in self._ways_known:
            self._ways_known[key] = 1  # A reference to itself adds none.
            arrays, objects = 0, Counter[str]()
            for one in self._leaves(schema, set()):
                types = _types(one)
                if "array" in types:
                    arrays += max(self._ways(item, levels - 1) for item in _items(one))
                if "object" in types:
                    inner = (self._ways(each, levels - 1) for each in _members(one))
                    objects[_beginning(one)] += max(inner, default=1)
            self._ways_known[key] = max(1, arrays, *objects.values())
        return self._ways_known[key]

    def _leaves(self, schema: Any, seen: set[str]) -> Iterator[Any]:
        """Yield a schema and all that describe the same value. References to one are the same."""
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if reference in seen:
            return
        if reference is not None:
            seen.add(reference)
        yield schema
        for one in self._parts(schema):
            yield from self._leaves(one, seen)

    def _parts(self, schema: Any) -> Iterator[Any]:
        """Yield the schemas that describe the same value."""
        if isinstance(schema, dict):
            if "$ref" in schema:
                yield self._target(schema["$ref"])
            for name in ("anyOf", "oneOf", "allOf"):
                yield from schema[name] if _is_list(schema, name) else ()

    def _check_ranges(self, schema: dict[str, Any]) -> None:
        """Reject empty ranges, with which llama.cpp would run forever, and long repetitions."""
        kinds = schema.get("type")
        low, high = _integers(schema)
        if "integer" in (kinds if isinstance(kinds, list) else [kinds]) and low > high:
            raise bad_request(
                f"{self._param}: the range of an integer is empty (minimum {low}, maximum {high})",
                self._param,
            )
        for least, most in _RANGES:
            if schema.get(least, 0) > schema.get(most, math.inf):
                raise bad_request(
                    f"{self._param}: {least}={schema[least]} is larger than {most}={schema[most]}",
                    self._param,
                )
        for name in _REPEATED:
            if schema.get(name, 0) > MAX_REPETITIONS:
                raise bad_request(
                    f"{self._param}: {name}={schema[name]} is too large (allowed: "
                    f"{MAX_REPETITIONS})",
                    self._param,
                )

    def _referred(self, reference: str, depth: int) -> int:
        if reference not in self._known:
            self._known[reference] = 1
            self._known[reference] = self.of(self._target(reference), depth)
        return self._known[reference]

    def _target(self, reference: str) -> Any:
        target: Any = self._root if _REFERENCE.fullmatch(reference) else None
        for before, name in pairwise(reference.split("/")):
            is_data = name in _DATA and before not in _NAMED
            target = None if is_data else _step(target, name)
        if not isinstance(target, dict | bool):
            raise bad_request(
                f"{self._param}: unknown reference {reference[:100]!r}. Refer to a part of this "
                "schema, such as #/$defs/name",
                self._param,
            )
        return target


def _types(schema: Any) -> Sequence[str]:
    """Return the types of a schema without its parts. Constants count as choices instead."""
    if not isinstance(schema, dict):
        return _TYPES
    if any(name in schema for name in ("const", "enum")):
        return ()
    if (kinds := schema.get("type")) is not None:
        return kinds if isinstance(kinds, list) else [kinds]
    if "properties" in schema or "additionalProperties" in schema:
        return ["object"]
    if "items" in schema or "prefixItems" in schema:
        return ["array"]
    return () if any(name in schema for name in ("anyOf", "oneOf", "allOf", "$ref")) else _TYPES


def _items(schema: Any) -> Sequence[Any]:
    """Return the schemas of an array's elements."""
    if not isinstance(schema, dict):
        return [True]
    first, rest = schema.get("prefixItems") or [], schema.get("items", True)
    return [*first, *(rest if isinstance(rest, list) else [rest])]


def _members(schema: Any) -> Sequence[Any]:
    """Return the schemas of an object's members."""
    if not isinstance(schema, dict):
        return ()
    return [*schema.get("properties", {}).values(), schema.get("additionalProperties")]


def _beginning(schema: Any) -> str:
    """Return what tells an object from others: its first member, with its constants."""
    required = schema.get("required", ()) if isinstance(schema, dict) else ()
    for name, member in schema.get("properties", {}).items() if required else ():
        if name in required:
            known = isinstance(member, dict) and (member.get("enum") or [member.get("const")])
            return json.dumps([name, known])
    return ""


def _is_list(schema: Mapping[str, Any], name: str) -> bool:
    return isinstance(schema.get(name), list)


def _step(target: Any, name: str) -> Any:
    if isinstance(target, dict):
        return target.get(name)
    if isinstance(target, list) and name.isascii() and name.isdecimal() and len(name) < 7:
        return target[int(name)] if str(int(name)) == name and int(name) < len(target) else None
    return None


def _integers(schema: Mapping[str, Any]) -> tuple[float, float]:
    """Return the first and last allowed integer. Exclusive bounds are booleans in draft 4."""
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    above, below = (
        schema.get("exclusiveMinimum", -math.inf),
        schema.get("exclusiveMaximum", math.inf),
    )
    above = (low if above else -math.inf) if isinstance(above, bool) else above
    below = (high if below else math.inf) if isinstance(below, bool) else below
    first = max(_rounded(math.ceil, low), _rounded(math.floor, above) + 1)
    return first, min(_rounded(math.floor, high), _rounded(math.ceil, below) - 1)


def _rounded(how: Callable[[float], int], bound: float) -> float:
    return how(bound) if abs(bound) < math.inf else bound


def is_plain(pattern: object) -> bool:
    """Whether llama.cpp quickly generates only strings that are valid JSON for a pattern.

    Example:
        >>> from polymux.engines.chat.json_schema import is_plain
        >>> is_plain("^[a-z]+$"), is_plain("[a-z]"), is_plain("^.$"), is_plain("^(a+)+$")
        (True, False, False, False)
        >>> is_plain("^a?a?a?$"), is_plain("^a?a?a?a?$")
        (True, False)
    """
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN_CHARACTERS:
        return False
    groups = _GROUPS.findall(pattern)
    combinations = _GROUPS.sub("", pattern).count("|") + 1
    for group in groups:
        combinations *= group.count("|") + 1
    return (
        _PLAIN_PATTERN.fullmatch(pattern) is not None
        and len(_OPEN.findall(pattern)) <= _MAX_OPEN
        and combinations <= _MAX_COMBINATIONS
        and sum(map(int, _COUNTS.findall(pattern))) <= MAX_REPETITIONS
    )


def for_grammar(value: Any, *, root: str = "#", is_named: bool = False) -> Any:
    """Copy a request's schemas without the patterns that llama.cpp does not support.

    For some patterns, its grammar generates strings that are not valid JSON. The finished response
    is validated against them instead.

    Args:
        value: A schema, or an object or list that contains schemas.
        root: Reference to the place of the schema, which its own references begin with.
        is_named: Whether the object maps names chosen by the client to schemas.

    Example:
        >>> from polymux.engines.chat.json_schema import for_grammar
        >>> for_grammar({"items": {"type": "string", "pattern": "^.$"}})
        {'items': {'type': 'string'}}
        >>> for_grammar({"$ref": "#/$defs/city"}, root="#/$defs/tool")
        {'$ref': '#/$defs/tool/$defs/city'}
    """
    if isinstance(value, list):
        return [for_grammar(one, root=root) for one in value]
    if not isinstance(value, dict):
        return value
    if is_named:
        return {name: for_grammar(one, root=root) for name, one in value.items()}
    if str(value.get("$ref")).startswith("#"):
        value = {**value, "$ref": root + value["$ref"][1:]}
    return {
        name: one if name in _DATA else for_grammar(one, root=root, is_named=name in _NAMED)
        for name, one in value.items()
        if name != "pattern" or not isinstance(one, str) or is_plain(one)
    }
