"""Settings classes: rules of their fields, and validation of TOML files and Python values.

A settings class is a frozen dataclass with typed fields and defaults. `rule` adds rules for a
field. `TableReader` reads such classes from TOML tables, and `check` in ``__post_init__`` validates
values from Python. This module imports little, because clients import it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from polymux._util.deprecation import new_names_of, with_new_keys
from polymux._util.imports import IMPORTING
from polymux._util.text import display_name, shown
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_Kind = TypeVar("_Kind")

_MAX_FILE_BYTES = 1 << 20
#: Limits of timers and clocks for floats, and of 64-bit integers in databases and files.
_BOUNDS = {"int": (0, (1 << 63) - 1), "float": (1e-9, 1e10)}
#: Maps the type of a field to its TOML types and a description for messages.
_TYPES: dict[str, tuple[Any, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "an integer"),
    "float": ((int, float), "a number"),
    "str": (str, "a string"),
    "Path": (str, "the path of a file or directory"),
    "tuple[str, ...]": (list, "an array of strings"),
    "tuple[int, ...]": (list, "an array of integers"),
    "Mapping": (dict, "a table"),
}


class Rule(NamedTuple):
    """The rule of a setting.

    Attributes:
        kind: Its type, a key of `_TYPES`.
        min: Minimum number. Default: 0 for integers; above 0 for floats.
        max: Maximum number.
        choices: Allowed texts. In an array, `choices`, `pattern` and `parse` apply to each item.
        pattern: Regular expression of allowed texts, ASCII only.
        parse: Returns the converted value. Raises ValueError, or InvalidRequestError with a text.
        read: Replaces all of the above for values in files.
        must: Description of allowed values. Default: derived from the other attributes.
        hidden: Whether messages omit the value.
        required: Whether there is no default.
        table: Settings class of a nested table.
        tables: Settings class of each table inside it; their names are free.
        prepare: Called with name, table and `warn` for each table of `tables`; returns the table.
    """

    kind: str = ""
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    parse: Callable[[Any], Any] | None = None
    read: Callable[[Any], Any] | None = None
    must: str = ""
    hidden: bool = False
    required: bool = False
    table: type | None = None
    tables: type | None = None
    prepare: Callable[[str, dict[str, Any], Callable[[str], object]], dict[str, Any]] | None = None

    def convert(self, value: Any) -> Any:
        """Convert a value from a file; raise ValueError if it is invalid."""
        if self.read is not None:
            return self.read(value)
        is_bool = isinstance(value, bool)
        if not isinstance(value, _TYPES[self.kind][0]) or is_bool is not (self.kind == "bool"):
            raise ValueError
        if self.kind == "Path":
            value = _path(value)
        if isinstance(value, list):
            item = self._replace(kind=self.kind[6:9])
            value = tuple(item.convert(one) for one in value)
            if self.choices and len(set(value)) < len(value):
                raise ValueError
            return value
        return self._kept(value)

    def accept(self, name: str, value: Any) -> None:
        """Raise InvalidRequestError if a value from Python is out of range."""
        try:
            if self.kind.startswith("tuple"):
                self.convert(list(value))
            else:
                self._kept(value)
        except ValueError as error:
            raise InvalidRequestError(self.problem(name, value, error)) from None

    def _kept(self, value: Any) -> Any:
        import re

        if (
            (self.kind in _BOUNDS and not self._bounds[0] <= value <= self._bounds[1])
            or (self.choices and value not in self.choices)
            or (self.pattern and not re.fullmatch(self.pattern, value, re.ASCII))
        ):
            raise ValueError
        return value if self.parse is None else self.parse(value)

    @property
    def _bounds(self) -> tuple[float, float]:
        low, high = _BOUNDS[self.kind]
        return low if self.min is None else self.min, high if self.max is None else self.max

    @property
    def words(self) -> str:
        """Description of allowed values, for messages."""
        if self.must:
            return self.must
        words = _TYPES[self.kind][1]
        if self.choices:
            of = ", ".join(self.choices)
            is_array = self.kind.startswith("tuple")
            return f"an array of {of}, without duplicates" if is_array else f"one of {of}"
        if self.kind not in _BOUNDS:
            return words
        low, high = self._bounds
        if self.kind == "float" and self.min is None:
            return f"{words} above 0, at most {high:g}"
        return f"{words}, {low} or more" if self.max is None else f"{words} from {low} to {high}"

    def problem(self, name: str, value: object, error: ValueError) -> str:
        """Return the message for an invalid value."""
        if isinstance(error, InvalidRequestError):
            return f"{name}: {error.message}"
        return f"{name if self.hidden else f'{name}={shown(value)}'}: must be {self.words}"


_RULES: dict[type, dict[str, Rule]] = {}


def rule(**what: Any) -> dict[str, Rule]:
    """Return the metadata of a dataclass field: attributes of its `Rule` other than defaults.

    Example:
        >>> from dataclasses import dataclass, field
        >>> @dataclass(frozen=True)
        ... class Queue:
        ...     length: int = field(default=32, metadata=rule(min=1))
        >>> reader = TableReader(print)
        >>> reader.read(Queue, {"length": 0}, "queue.")
        >>> reader.problems
        ['queue.length=0: must be an integer, 1 or more']
    """
    return {"rule": Rule(**what)}


def rules_of(kind: type) -> dict[str, Rule]:
    """Return the rules of a settings class by field name."""
    if kind not in _RULES:
        _RULES[kind] = _made_rules(kind)
    return _RULES[kind]


def _made_rules(kind: type) -> dict[str, Rule]:
    from dataclasses import MISSING, fields, is_dataclass

    rules = {}
    for one in fields(kind):
        found: Rule = one.metadata.get("rule", Rule())
        name = str(one.type).split(" | ")[0]
        for whole in ("Path", "Mapping"):
            name = whole if whole in str(one.type) else name
        factory: Any = one.default_factory
        group: Any = factory if is_dataclass(factory) else found.table
        required = one.default is MISSING and one.default_factory is MISSING
        rules[one.name] = found._replace(kind=name, table=group, required=required)
    return rules


def check(settings: Any) -> None:
    """Validate values from Python; called by ``__post_init__`` of settings classes.

    The class may have a method `problems` that yields problems of several fields together.

    Raises:
        InvalidRequestError: The first invalid value.
    """
    for name, one in rules_of(type(settings)).items():
        value = getattr(settings, name)
        if value is not None:
            one.accept(name, value)
    for problem in getattr(settings, "problems", tuple)():
        raise InvalidRequestError(problem)


class TableReader:
    """Reads settings from TOML tables.

    Args:
        warn: Called with a line for each deprecated name of a setting. Default: ignored.

    Attributes:
        problems: A line for each problem.
    """

    def __init__(self, warn: Callable[[str], object] = lambda _: None) -> None:
        self.problems: list[str] = []
        self._warn = warn

    def read(self, kind: type[_Kind], table: object, prefix: str = "") -> _Kind | None:
        """Return an instance of a settings class; None if there are problems."""
        before = len(self.problems)
        values = self.values(rules_of(kind), table, prefix, new_names_of(kind))
        if len(self.problems) > before:
            return None
        try:
            made = kind(**values)
        except InvalidRequestError as error:
            self.problems.append(f"{prefix}{error.message}")
            return None
        self.problems += [f"{prefix}{one}" for one in getattr(made, "problems", tuple)()]
        return made

    def values(
        self,
        rules: Mapping[str, Rule],
        table: object,
        prefix: str = "",
        new_names: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the valid values of a table by name."""
        found: dict[str, Any] = {}
        if not isinstance(table, dict):
            self.problems.append(f"{prefix.removesuffix('.')}: must be a table")
            return found
        table = with_new_keys(table, new_names or {}, self._warn, prefix)
        for name, value in table.items():
            if name in rules:
                try:
                    found[name] = self._value(rules[name], value, f"{prefix}{name}")
                except ValueError as error:
                    self.problems.append(prefix + rules[name].problem(name, value, error))
            else:
                self.problems.append(prefix + _unknown(name, rules))
        missing = (name for name, one in rules.items() if one.required and name not in table)
        self.problems += [f"{prefix}{name}: missing" for name in missing]
        return found

    def whole(self, kind: type[_Kind], table: object, where: str = "", prefix: str = "") -> _Kind:
        """Return an instance of a settings class; raise InvalidRequestError like `end`."""
        made = self.read(kind, table, prefix)
        self.end(where)
        return cast("_Kind", made)

    def end(self, where: str = "") -> None:
        """Raise InvalidRequestError if there are problems; the message starts with `where`."""
        if self.problems:
            raise InvalidRequestError(where + "; ".join(self.problems[:20]))

    def _value(self, one: Rule, value: Any, name: str) -> Any:
        if one.table is not None:
            return self.read(one.table, value, f"{name}.")
        if one.tables is None:
            return one.convert(value)
        if not isinstance(value, dict):
            self.problems.append(f"{name}: must be a table")
            return {}
        made: dict[str, Any] = {}
        for key, table in value.items():
            if one.prepare is not None and isinstance(table, dict):
                try:
                    table = one.prepare(key, table, self._warn)
                except InvalidRequestError as error:
                    self.problems.append(f"{name}.{key}.{error.message}")
                    continue
            made[key] = self.read(one.tables, table, f"{name}.{key}.")
        return made


def read_toml(path: str | os.PathLike[str], what: str, *, optional: bool = False) -> dict[str, Any]:
    """Read a TOML file. `what` names it in messages; an `optional` file may be missing.

    Raises:
        InvalidRequestError: It cannot be read, is larger than 1 MiB, or is not valid TOML.
    """
    name = f"{what} {display_name(os.fspath(path))}"
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - `pathlib` is slow to load
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        if optional and isinstance(error, FileNotFoundError):
            return {}
        raise InvalidRequestError(f"cannot read {name}: {error.strerror}") from error
    if len(data) > _MAX_FILE_BYTES:
        raise InvalidRequestError(f"{name} is too large (allowed 1 MiB)")
    with IMPORTING:
        import tomllib

    try:
        return tomllib.loads(data.removeprefix(b"\xef\xbb\xbf").decode())
    except (ValueError, RecursionError) as error:  # Also for numbers with thousands of digits.
        # The error does not quote the line, which may contain a key.
        raise InvalidRequestError(f"{name} is not valid TOML: {error}") from None


def _unknown(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    like = get_close_matches(name.replace("-", "_"), known, 1)
    hint = f"did you mean {like[0]}?" if like else f"known: {', '.join(known) or 'none'}"
    return f"{shown(name)[1:-1]}: unknown setting ({hint})"


def _path(text: str) -> Any:
    from pathlib import Path

    if not text or "\0" in text:
        raise ValueError
    try:
        return Path(text).expanduser()
    except RuntimeError:  # The home directory of that user is unknown.
        raise ValueError from None
