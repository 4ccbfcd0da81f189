"""The contract of the API: operations, variants, fields, bounds, defaults and rules.

The client, the server and the C++ core validate requests with the same tables. The methods, the
commands and ``docs/reference/operations.md`` are generated from them.

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
    from collections.abc import Container, Iterable, Mapping

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
        name: Name on the wire.
        python_name: Name in the Python methods.
        type: ``"string"``, ``"integer"``, ``"number"``, ``"boolean"``, ``"array"``, ``"object"``,
            ``"file"``, or several of them joined by ``" or "``.
        required: Whether a request without it is invalid.
        default: The server's default; None if there is no default.
        minimum: Minimum number, inclusive unless `exclusive_minimum`.
        maximum: Maximum number, inclusive unless `exclusive_maximum`.
        exclusive_minimum: Whether `minimum` itself is not allowed.
        exclusive_maximum: Whether `maximum` itself is not allowed.
        multiple_of: Required divisor of an integer; None without.
        choices: Allowed values; None if any value is allowed.
        unit: Unit of a number: ``"px"``, ``"s"``, ``"Hz"``; None without.
        extension: Whether it is an addition to the original API, sent only if given.
        kind: ``"url"`` if the server downloads it, else ``""``.
        aliases: Other accepted names.
        object: Type of an object with known members.
        items: Type of an array's items, with `items_object` for objects.
        items_object: Type of an array's objects with known members.
        doc: Description.
        raw: All facts of the contract, including ``title``, as plain data.
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
        fields: Names of the fields.
    """

    rule: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object with known members, such as a message.

    Attributes:
        name: Name, such as ``"ChatMessage"``.
        doc: Description.
        fields: Members.
        rules: Rules between the members.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]
    rules: tuple[Rule, ...]

    def field(self, name: str) -> Field:
        """Return the member with that name or alias.

        Raises:
            KeyError: Unknown name.
        """
        return _field_named(self.fields, name)


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of an operation's request.

    Attributes:
        id: ``"A"``, ``"B"``, ...; empty if there is only one.
        model: Value of the query parameter ``model`` that selects it; None without.
        summary: Description; empty if that of the operation is sufficient.
        encoding: Encoding that the client sends: ``"json"`` or ``"multipart"``.
        accepts: Encodings that a server accepts.
        unknown_fields: How a server handles other fields: ``"warn"`` ignores them with a warning,
            ``"pass"`` forwards them.
        fields: Fields of the body.
        rules: Rules between the fields.
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
        """Return the field with that name or alias.

        Raises:
            KeyError: Unknown name.
        """
        return _field_named(self.fields, name)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: a POST to `path`.

    Attributes:
        name: Name of the method, such as ``"transcribe"``.
        path: Path, such as ``"/api/v1/modelhost/stt"``.
        family: ``"chat"``, ``"image"``, ``"audio"``, ``"video"`` or ``"text"``.
        title: Short name.
        summary: Description.
        first: First parameter of the method and the command.
        result: Name of the result's class.
        variants: Variants, at least one.
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
    """A received request that was validated.

    Attributes:
        operation: Name of the operation.
        variant: ID of the variant.
        model: Model of the variant; may be empty.
        values: Values by wire name, with aliases resolved and form texts converted, without absent
            fields.
        warnings: Warnings, for example about unknown fields that were ignored.
    """

    operation: str
    variant: str
    model: str
    values: dict[str, Any]
    warnings: tuple[str, ...]


def describe(name: str | None = None) -> list[dict[str, Any]]:
    """Return the contract as plain data, as printed by ``polymux operations --json``.

    Args:
        name: A method's name, a command, a path or its last segment. Default: all operations.

    Returns:
        A list of ``{path, method, variants: [{model, encoding, accepts, fields: [...]}]}``.

    Raises:
        InvalidRequestError: Unknown operation.
    """
    described: list[dict[str, Any]] = json.loads(core.describe(name))
    return described


@cache
def operations() -> tuple[Operation, ...]:
    """Return all operations in the order of the API."""
    return tuple(_operation(one) for one in describe())


@cache
def operation(name: str) -> Operation:
    """Return one operation.

    Args:
        name: A method's name, a command, a path or its last segment.

    Raises:
        InvalidRequestError: Unknown operation.
    """
    (described,) = describe(name)
    return next(one for one in operations() if one.name == described["name"])


def encoding_of(
    content_type: str | None, accepted: Container[str] = ("json", "multipart")
) -> Literal["json", "multipart"]:
    """Return the encoding that a received Content-Type names (RFC 9110, 8.3).

    Args:
        content_type: Value of the header field; None if missing.
        accepted: Encodings that the endpoint accepts. Default: both.

    Returns:
        ``"json"`` for application/json, ``"multipart"`` for multipart/form-data with a boundary.

    Raises:
        UnsupportedEncodingError: Another type, a charset other than UTF-8, or no type; the message
            names the accepted types. Types that a web page may send to another site without a CORS
            preflight are never accepted as JSON.

    Example:
        >>> from polymux import contract
        >>> contract.encoding_of("application/json; charset=utf-8")
        'json'
    """
    found = core.encoding_of(content_type, "json" in accepted, "multipart" in accepted)
    return "json" if found == "json" else "multipart"


@renamed_arguments(longest_bytes="max_bytes")
def read_json(
    name: str,
    body: bytes | bytearray | memoryview,
    *,
    model: str | None = None,
    max_bytes: int = 32 << 20,
) -> CheckedRequest:
    """Parse and validate a JSON body as a server receives it.

    Args:
        name: The operation.
        body: The body.
        model: Value of the query parameter ``model``; None if missing.
        max_bytes: Maximum size in bytes. Default: 32 MiB.

    Raises:
        UnsupportedEncodingError: The operation or its model does not support JSON.
        InvalidRequestError: Invalid JSON, or an invalid request; `problems` lists all problems.

    Example:
        >>> from polymux import contract
        >>> contract.read_json("musicsearch", b'{"song": "Blue Danube", "limit": "3"}').values
        {'song': 'Blue Danube', 'limit': 3}
    """
    variant, chosen, values, warnings = core.read_json(name, model, body, True, max_bytes)  # noqa: FBT003
    return CheckedRequest(operation(name).name, variant, chosen, values, _warnings(warnings, model))


def read_form(
    name: str, fields: Iterable[tuple[str, Any]], *, model: str | None = None
) -> CheckedRequest:
    """Validate a form as a server receives it.

    Args:
        name: The operation.
        fields: Names and values: a str for a field, any other object for a file, which is returned
            unchanged.
        model: Value of the query parameter ``model``; None if missing.

    Raises:
        UnsupportedEncodingError: The operation or its model does not support forms.
        InvalidRequestError: The request is invalid; `problems` lists all problems.

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
                f"fields: each item must be a tuple of name (str) and value (got {shown(field)})"
            )
    variant, chosen, values, warnings = core.read_form(name, model, given, True)  # noqa: FBT003
    return CheckedRequest(operation(name).name, variant, chosen, values, _warnings(warnings, model))


def _warnings(warnings: list[str], model: str | None) -> tuple[str, ...]:
    """Add a warning if `model` names a version, because the server selects the version."""
    version = "" if model is None else model.partition(":")[2]
    if not version:
        return tuple(warnings)
    note = f"model: the version {shown(version)} is ignored. The server uses its installed version"
    return (*warnings, note)


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
