"""Read and validate contract/*.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Describes the server's routes other than operations; only `openapi` reads it.
ROUTES = "routes.toml"
VALUE_TYPES = ("string", "integer", "number", "boolean", "array", "object", "file", "null")
ENCODINGS = ("json", "multipart")
UNKNOWN_FIELDS = ("refuse", "warn", "pass")
FORMATS = ("bitrate", "time", "resolution", "languages", "name")
RULES = {
    "exactly_one": "exactly one of them is required",
    "at_most_one": "at most one of them is allowed",
    "needs": "the first requires the second",
    "ascending": "the first must be less than the second",
    "required_unless": "required unless one of `present` is present",
    "names_field": "its value is the name of another field, which is then required",
}


class ContractError(Exception):
    """A mistake in contract/*.toml."""


@dataclass(frozen=True)
class Field:
    """One field of a request, a nested type or a result. contract/README.md lists the keys."""

    name: str
    type: tuple[str, ...]
    doc: str
    python_name: str
    title: str
    required: bool = False
    extension: bool = False
    default: Any = None
    has_default: bool = False
    upstream_default: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    multiple_of: int = 0
    min_length: int = 0
    max_length: int = 0
    min_items: int = 0
    max_items: int = 0
    choices: tuple[str | int, ...] = ()
    aliases: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    kind: str = ""
    format: str = ""
    media: str = ""
    unit: str = ""
    items: str = ""
    of: str = ""
    written_as: str = ""
    deprecated: str = ""


@dataclass(frozen=True)
class Rule:
    """A rule between fields: its kind (a key of RULES) and the names of the fields."""

    kind: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class ObjectType:
    """A JSON object with known fields."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    rules: tuple[Rule, ...] = ()
    unknown_fields: str = "pass"
    items: str = ""


@dataclass(frozen=True)
class Variant:
    """One form of an operation's request, selected by the query parameter `model`."""

    id: str
    model: str
    summary: str
    encoding: str
    accepts: tuple[str, ...]
    chosen_by: tuple[str, ...]
    fields: tuple[Field, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Operation:
    """One operation of the API."""

    name: str
    order: int
    path: str
    family: str
    title: str
    summary: str
    first: str
    result: str
    stream_result: str
    job: bool
    errors: tuple[str, ...]
    example: str
    unknown_fields: str
    refused_fields: tuple[str, ...]
    output: Field | None
    variants: tuple[Variant, ...]
    aliases: tuple[str, ...] = ()

    @property
    def selects_model(self) -> bool:
        """Whether the query parameter `model` selects the variant."""
        return bool(self.variants[0].model)

    @property
    def command(self) -> str:
        return self.name.replace("_", "-")

    @property
    def command_aliases(self) -> tuple[str, ...]:
        """The other names of the command. The first one is the path's last segment."""
        names = (name.replace("_", "-") for name in self.aliases)
        return (self.path.rsplit("/", 1)[-1], *names)

    def all_fields(self) -> tuple[Field, ...]:
        """Return the fields of all variants without duplicate names, in order of the variants."""
        seen: dict[str, Field] = {}
        for variant in self.variants:
            for one in variant.fields:
                seen.setdefault(one.name, one)
        return tuple(seen.values())


@dataclass
class Contract:
    """The content of all files."""

    folder: Path
    operations: list[Operation] = field(default_factory=list)
    types: dict[str, ObjectType] = field(default_factory=dict)
    results: dict[str, ObjectType] = field(default_factory=dict)

    @property
    def families(self) -> list[str]:
        """The names of the files, in the order of their first operation."""
        return list(dict.fromkeys(operation.family for operation in self.operations))

    def types_of(self, family: str) -> list[ObjectType]:
        """Return the nested types of a family's requests, each after the types that it uses."""
        found: dict[str, ObjectType] = {}

        def visit(name: str) -> None:
            for one in self.types[name].fields:
                for inner in nested(one):
                    visit(inner)
            found.setdefault(name, self.types[name])

        for operation in self.operations:
            if operation.family == family:
                for variant in operation.variants:
                    for one in variant.fields:
                        for name in nested(one):
                            visit(name)
        return list(found.values())


def nested(one: Field) -> list[str]:
    """Return the names of the object types that a field refers to."""
    return [name for name in (one.of, one.items) if name and name not in VALUE_TYPES]


def load(folder: Path) -> Contract:
    """Read and validate contract/*.toml.

    Raises:
        ContractError: A key or a name is unknown, or a default violates its bounds.
    """
    contract = Contract(folder)
    for path in sorted(folder.glob("*.toml")):
        if path.name == ROUTES:
            continue
        with path.open("rb") as file:
            document = tomllib.load(file)
        _known(path.name, document, {"operation", "type", "result"})
        for name, table in document.get("operation", {}).items():
            contract.operations.append(_operation(name, path.stem, table))
        for kind, home in (("type", contract.types), ("result", contract.results)):
            for name, table in document.get(kind, {}).items():
                if name in home:
                    raise ContractError(f"{kind}.{name}: defined twice")
                home[name] = _object(name, table)
    contract.operations.sort(key=lambda one: one.order)
    _check_references(contract)
    return contract


def _operation(name: str, family: str, table: dict[str, Any]) -> Operation:
    shared = {"order", "path", "title", "summary", "first", "result", "stream_result", "errors"}
    shared |= {"example", "unknown_fields", "refused_fields", "output", "job", "aliases"}
    alone = {"model", "encoding", "accepts", "fields", "rules"}
    _known(name, table, shared | ({"variant"} if "variant" in table else alone))
    variants = table.get("variant") or {"": {key: table[key] for key in alone if key in table}}
    operation = Operation(
        name=name,
        family=family,
        stream_result=table.get("stream_result", ""),
        job=table.get("job", False),
        aliases=tuple(table.get("aliases", ())),
        refused_fields=tuple(table.get("refused_fields", ())),
        output=_field("output", table["output"]) if "output" in table else None,
        variants=tuple(_variant(name, key, value) for key, value in variants.items()),
        errors=tuple(table["errors"]),
        **{
            key: table[key]
            for key in ("order", "path", "title", "summary", "first", "result", "example")
        },
        unknown_fields=_one_of(name, table["unknown_fields"], UNKNOWN_FIELDS),
    )
    if operation.first not in {one.name for one in operation.all_fields()}:
        raise ContractError(f"{name}: unknown field {operation.first!r} in `first`")
    return operation


def _variant(operation: str, key: str, table: dict[str, Any]) -> Variant:
    where = f"{operation}.{key}"
    _known(
        where,
        table,
        {"model", "summary", "encoding", "accepts", "chosen_by", "fields", "rules"},
    )
    encoding = _one_of(where, table["encoding"], ENCODINGS)
    fields = tuple(_field(name, value) for name, value in table["fields"].items())
    return Variant(
        id=key,
        model=table.get("model", ""),
        summary=table.get("summary", ""),
        encoding=encoding,
        accepts=tuple(table.get("accepts", (encoding,))),
        chosen_by=tuple(table.get("chosen_by", ())),
        fields=fields,
        rules=_rules(where, table.get("rules", ()), fields),
    )


def _object(name: str, table: dict[str, Any]) -> ObjectType:
    _known(name, table, {"doc", "fields", "rules", "unknown_fields", "items"})
    fields = tuple(_field(key, value) for key, value in table.get("fields", {}).items())
    return ObjectType(
        name=name,
        doc=table["doc"],
        fields=fields,
        rules=_rules(name, table.get("rules", ()), fields),
        unknown_fields=_one_of(name, table.get("unknown_fields", "pass"), UNKNOWN_FIELDS),
        items=table.get("items", ""),
    )


def _field(name: str, table: dict[str, Any]) -> Field:
    _known(name, table, set(Field.__dataclass_fields__) - {"name", "has_default"})
    values = dict(table)
    types = values.pop("type")
    types = (types,) if isinstance(types, str) else tuple(types)
    for one in types:
        _one_of(name, one, VALUE_TYPES)
    for key in ("choices", "aliases", "schemes"):
        values[key] = tuple(values.get(key, ()))
    values.setdefault("python_name", name)
    values.setdefault("title", derived_title(name))
    made = Field(name=name, type=types, has_default="default" in table, **values)
    if made.format:
        _one_of(name, made.format, FORMATS)
    if made.kind not in {"", "url"} or (made.kind == "url") != bool(made.schemes):
        raise ContractError(f'{name}: `kind = "url"` and `schemes` must be used together')
    if made.required and made.has_default:
        raise ContractError(f"{name}: a required field must not have a default")
    if made.has_default:
        _check_default(made)
    return made


def derived_title(name: str) -> str:
    """Return the title of a field that does not define one."""
    return name.replace("_", " ").capitalize()


def _check_default(one: Field) -> None:
    value = one.default
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low = one.minimum is None or value >= one.minimum
        high = one.maximum is None or value <= one.maximum
        if not (low and high) or (one.multiple_of and value % one.multiple_of):
            raise ContractError(f"{one.name}: the default {value} violates the bounds of the field")
    if one.choices and value not in one.choices:
        raise ContractError(f"{one.name}: the default {value!r} is not one of the choices")


def _rules(where: str, tables: Any, fields: tuple[Field, ...]) -> tuple[Rule, ...]:
    names = {one.name for one in fields}
    found = []
    for table in tables:
        kinds = [key for key in table if key in RULES]
        if len(kinds) != 1:
            raise ContractError(
                f"{where}: invalid rule (got {', '.join(kinds) or 'none'}, allowed exactly one of "
                f"{', '.join(RULES)})"
            )
        value = table[kinds[0]]
        speaks_of = [value] if isinstance(value, str) else list(value)
        speaks_of += table.get("present", [])
        if unknown := set(speaks_of) - names:
            raise ContractError(f"{where}: unknown fields in a rule: {', '.join(sorted(unknown))}")
        found.append(Rule(kinds[0], tuple(speaks_of)))
    return tuple(found)


def _check_references(contract: Contract) -> None:
    def references() -> Iterator[tuple[str, str, dict[str, ObjectType]]]:
        for operation in contract.operations:
            yield operation.name, operation.result, contract.results
            for one in operation.all_fields():
                yield from ((one.name, name, contract.types) for name in nested(one))
        for home in (contract.types, contract.results):
            for kind in home.values():
                for one in kind.fields:
                    either = {**contract.types, **home}
                    yield from ((f"{kind.name}.{one.name}", name, either) for name in nested(one))

    for where, name, home in references():
        if name not in home:
            raise ContractError(f"{where}: unknown type {name}")


def _known(where: str, table: dict[str, Any], allowed: set[str]) -> None:
    if unknown := set(table) - allowed:
        raise ContractError(f"{where}: unknown keys: {', '.join(sorted(unknown))}")


def _one_of(where: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ContractError(f"{where}: invalid value {value!r} (allowed: {', '.join(allowed)})")
    return value
