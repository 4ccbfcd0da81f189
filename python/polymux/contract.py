"""What the interface is: every operation, its variants, fields, bounds, defaults and rules.

The same tables check requests in the client, in the server and in C++, and make the methods, the
commands and ``docs/reference/operations.md``.

Example:
    >>> from polymux import contract
    >>> field = contract.operation("transcribe").variants[0].field("task")
    >>> field.choices
    ('transcribe', 'translate')
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from polymux._native import core
from polymux._util.deprecation import renamed_arguments
from polymux._util.text import shown
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "CheckedRequest",
    "Field",
    "ObjectType",
    "Operation",
    "Rule",
    "Variant",
    "describe",
    "encoding_of",
    "operation",
    "operations",
    "read_form",
    "read_json",
]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a request, or of an object inside it.

    Attributes:
        name: On the wire.
        python_name: In the Python methods.
        type: ``"string"``, ``"integer"``, ``"number"``, ``"boolean"``, ``"array"``, ``"object"``,
            ``"file"``, or several of them joined by ``" or "``.
        required: Whether a request without it is refused.
        default: What the server takes when it is absent; None where there is none.
        minimum: Lowest number, itself allowed unless `exclusive_minimum`.
        maximum: Highest number, itself allowed unless `exclusive_maximum`.
        exclusive_minimum: Whether `minimum` itself is not allowed.
        exclusive_maximum: Whether `maximum` itself is not allowed.
        multiple_of: What an integer must be a multiple of; None where it need not.
        choices: The only values; None where there is a choice of all.
        unit: Of a number: ``"px"``, ``"s"``, ``"Hz"``; None where it has none.
        extension: Not in the interface's text; sent only when given.
        kind: ``"url"`` for what can make the server fetch, else ``""``.
        aliases: Other names that are understood.
        object: Of an object with known members.
        items: Of an array: its items' type, with `items_object` for objects.
        items_object: Of an array of objects with known members.
        doc: One sentence.
        raw: Everything that the contract says of it, as plain data.
    """

    name: str
    python_name: str
    type: str
    required: bool
    default: Any
    minimum: float | None
    maximum: float | None
    exclusive_minimum: bool
    exclusive_maximum: bool
    multiple_of: int | None
    choices: tuple[Any, ...] | None
    unit: str | None
    extension: bool
    kind: str
    aliases: tuple[str, ...]
    object: ObjectType | None
    items: str | None
    items_object: ObjectType | None
    doc: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule between fields.

    Attributes:
        rule: ``"exactly_one"``, ``"at_most_one"``, ``"needs"``, ``"ascending"``,
            ``"required_unless"`` or ``"names_field"``.
        fields: The fields it speaks of.
    """

    rule: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object with known members, such as a message.

    Attributes:
        name: Such as ``"ChatMessage"``.
        doc: One sentence.
        fields: Its members.
        rules: Rules between them.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]
    rules: tuple[Rule, ...]

    def field(self, name: str) -> Field:
        """The member of that name or alias.

        Raises:
            KeyError: There is none.
        """
        return _field_named(self.fields, name)


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of an operation's request.

    Attributes:
        id: ``"A"``, ``"B"``, ...; empty where there is one only.
        model: Value of the query parameter ``model`` that selects it; None where there is none.
        summary: One sentence; empty where the operation's says it all.
        encoding: What the client sends: ``"json"`` or ``"multipart"``.
        accepts: What a server takes.
        unknown_fields: What a server does with fields that are not here: ``"warn"`` leaves them out
            and says so, ``"pass"`` passes them on.
        fields: The body's fields.
        rules: Rules between them.
    """

    id: str
    model: str | None
    summary: str
    encoding: str
    accepts: tuple[str, ...]
    unknown_fields: str
    fields: tuple[Field, ...]
    rules: tuple[Rule, ...]

    def field(self, name: str) -> Field:
        """The field of that name or alias.

        Raises:
            KeyError: There is none.
        """
        return _field_named(self.fields, name)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: a POST to `path`.

    Attributes:
        name: The method's name, such as ``"transcribe"``.
        path: Such as ``"/api/v1/modelhost/stt"``.
        family: ``"chat"``, ``"image"``, ``"audio"``, ``"video"`` or ``"text"``.
        title: A few words.
        summary: One sentence.
        first: The field that methods and commands take first.
        result: Name of the result's class.
        variants: At least one.
    """

    name: str
    path: str
    family: str
    title: str
    summary: str
    first: str
    result: str
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A received request that keeps the contract.

    Attributes:
        operation: The operation's name.
        variant: The variant's id.
        model: Its model, or empty.
        values: Wire name to value, aliases resolved, a form's texts read; absent fields are absent.
        warnings: Such as fields that are not known and were left out.
    """

    operation: str
    variant: str
    model: str
    values: dict[str, Any]
    warnings: tuple[str, ...]


def describe(name: str | None = None) -> list[dict[str, Any]]:
    """The contract as plain data: what ``polymux operations --json`` prints.

    Args:
        name: A method's name, a command, a path or its last segment. Default: all operations.

    Returns:
        A list of ``{path, method, variants: [{model, encoding, accepts, fields: [...]}]}``.

    Raises:
        InvalidRequestError: There is no such operation.
    """
    described: list[dict[str, Any]] = json.loads(core.describe(name))
    return described


@cache
def operations() -> tuple[Operation, ...]:
    """All operations, in the order of the interface's text."""
    return tuple(_operation(one) for one in describe())


@cache
def operation(name: str) -> Operation:
    """One operation.

    Args:
        name: A method's name, a command, a path or its last segment.

    Raises:
        InvalidRequestError: There is no such operation.
    """
    (described,) = describe(name)
    return next(one for one in operations() if one.name == described["name"])


def encoding_of(content_type: str | None) -> Literal["json", "multipart"]:
    """The encoding that a received request's Content-Type names (RFC 9110, 8.3).

    Args:
        content_type: The header field's value; None where it is missing.

    Returns:
        ``"json"`` for application/json, ``"multipart"`` for multipart/form-data with a boundary.

    Raises:
        UnsupportedEncodingError: Any other type, a charset other than UTF-8, or none at all. What a
            web page may send to another site without asking is never taken.

    Example:
        >>> from polymux import contract
        >>> contract.encoding_of("application/json; charset=utf-8")
        'json'
    """
    return "json" if core.encoding_of(content_type) == "json" else "multipart"


@renamed_arguments(longest_bytes="max_bytes")
def read_json(
    name: str,
    body: bytes | bytearray | memoryview,
    *,
    model: str | None = None,
    max_bytes: int = 32 << 20,
) -> CheckedRequest:
    """Parses and checks a JSON body as a server receives it.

    Args:
        name: The operation.
        body: The bytes.
        model: Value of the query parameter ``model``; None where it is missing.
        max_bytes: Longer bodies are refused. Default: 32 MiB.

    Raises:
        UnsupportedEncodingError: The operation, or its model, takes no JSON.
        InvalidRequestError: No JSON, or a request that does not keep the contract; `problems` holds
            everything that is wrong.

    Example:
        >>> from polymux import contract
        >>> contract.read_json("musicsearch", b'{"song": "Blue Danube", "limit": "3"}').values
        {'song': 'Blue Danube', 'limit': 3}
    """
    variant, chosen, values, warnings = core.read_json(name, model, body, True, max_bytes)  # noqa: FBT003
    return CheckedRequest(operation(name).name, variant, chosen, values, _told(warnings, model))


def read_form(
    name: str, fields: Iterable[tuple[str, Any]], *, model: str | None = None
) -> CheckedRequest:
    """Checks a form as a server receives it.

    Args:
        name: The operation.
        fields: Names and values: a str for a field, anything else for a file, which is passed on.
        model: Value of the query parameter ``model``; None where it is missing.

    Raises:
        UnsupportedEncodingError: The operation, or its model, takes no form.
        InvalidRequestError: The request does not keep the contract; `problems` holds everything
            that is wrong.

    Example:
        >>> from polymux import contract
        >>> fields = [("prompt", "waves"), ("fps", "12"), ("remove_watermark", "no")]
        >>> contract.read_form("generate_video", fields).values
        {'prompt': 'waves', 'fps': 12, 'remove_watermark': False}
    """
    given = list(fields)
    for field in given:
        if not isinstance(field, tuple) or len(field) != 2 or not isinstance(field[0], str):
            raise InvalidRequestError(
                f"a form's field is a pair of name and value, not {shown(field)}"
            )
    variant, chosen, values, warnings = core.read_form(name, model, given, True)  # noqa: FBT003
    return CheckedRequest(operation(name).name, variant, chosen, values, _told(warnings, model))


def _told(warnings: list[str], model: str | None) -> tuple[str, ...]:
    """The warnings, with one of a version that a selector names: the server chooses which it is."""
    version = "" if model is None else model.partition(":")[2]
    if not version:
        return tuple(warnings)
    said = f"model: the version {shown(version)} is not looked at; the one that is here answers"
    return (*warnings, said)


def _field_named(fields: tuple[Field, ...], name: str) -> Field:
    for field in fields:
        if name == field.name or name in field.aliases:
            return field
    raise KeyError(name)


def _operation(raw: Mapping[str, Any]) -> Operation:
    names = ("name", "path", "family", "title", "summary", "first", "result")
    variants = tuple(_variant(one) for one in raw["variants"])
    return Operation(**{name: raw[name] for name in names}, variants=variants)


def _variant(raw: Mapping[str, Any]) -> Variant:
    return Variant(
        id=raw.get("id", ""),
        model=raw["model"],
        summary=raw.get("summary", ""),
        encoding=raw["encoding"],
        accepts=tuple(raw["accepts"]),
        unknown_fields=raw["unknown_fields"],
        fields=tuple(_field(one) for one in raw["fields"]),
        rules=_rules(raw),
    )


def _object(raw: Mapping[str, Any] | None) -> ObjectType | None:
    if raw is None:
        return None
    return ObjectType(
        name=raw["name"],
        doc=raw["doc"],
        fields=tuple(_field(one) for one in raw["fields"]),
        rules=_rules(raw),
    )


def _rules(raw: Mapping[str, Any]) -> tuple[Rule, ...]:
    return tuple(Rule(one["rule"], tuple(one["fields"])) for one in raw.get("rules", ()))


def _field(raw: Mapping[str, Any]) -> Field:
    items = raw.get("items", {})
    choices = raw["choices"]
    return Field(
        name=raw["name"],
        python_name=raw.get("python_name", raw["name"]),
        type=raw["type"],
        required=raw["required"],
        default=raw["default"],
        minimum=raw["minimum"],
        maximum=raw["maximum"],
        exclusive_minimum=raw.get("exclusive_minimum", False),
        exclusive_maximum=raw.get("exclusive_maximum", False),
        multiple_of=raw.get("multiple_of"),
        choices=None if choices is None else tuple(choices),
        unit=raw["unit"],
        extension=raw["extension"],
        kind=raw.get("kind", ""),
        aliases=tuple(raw.get("aliases", ())),
        object=_object(raw.get("object")),
        items=items.get("type"),
        items_object=_object(items.get("object")),
        doc=raw["doc"],
        raw=raw,
    )
