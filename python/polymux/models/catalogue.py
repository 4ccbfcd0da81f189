"""The catalogue: which models can be pulled, from where, under which licence, which bytes."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from polymux._text import display_name, shown
from polymux.models import manifest
from polymux.models.failures import ModelError
from polymux.models.families import FAMILIES, is_name

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The catalogue of this package.
FILE = Path(__file__).with_name("catalogue.toml")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")
_MEMBER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+/-]{0,299}")
_PROJECT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VERSION = re.compile(r"[0-9][0-9a-z.]*")
_WHEEL = re.compile(r"[A-Za-z0-9_.]+(-[A-Za-z0-9_.]+){4,5}\.whl")


@dataclass(frozen=True, slots=True)
class Source:
    """Something to fetch: a wheel, or what is at an address.

    Attributes:
        file: Name of the file.
        sha256: Of the whole file, in hexadecimal digits.
        bytes: Its length; None where nobody knows.
        project: Of a wheel.
        version: Of a wheel.
        url: Where it is; empty for a wheel.
    """

    file: str
    sha256: str
    bytes: int | None
    project: str = ""
    version: str = ""
    url: str = ""

    def __str__(self) -> str:
        """As people are told where a model comes from."""
        return self.url or f"the wheel {self.file} of {self.project} {self.version}"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a file: a member of a wheel, or a whole source where `member` is empty."""

    source: Source
    member: str
    sha256: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class File:
    """A file of a model, put together of its parts."""

    name: str
    sha256: str
    bytes: int | None
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be pulled.

    Attributes:
        name: As commands and settings call it.
        family: The engine that it is for.
        title: A few words.
        license: As SPDX has it, or words.
        license_source: Where that is said.
        license_note: What to know beyond it; mostly empty.
        paths: Which of its files the engine's options of these names are; ``"."`` is its folder.
        options: Further options that the engine needs for it.
        files: What it consists of.
    """

    name: str
    family: str
    title: str
    license: str
    license_source: str
    license_note: str
    paths: Mapping[str, str]
    options: Mapping[str, Any]
    files: tuple[File, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        """What is fetched for it, each once."""
        return tuple(dict.fromkeys(part.source for one in self.files for part in one.parts))

    @property
    def bytes(self) -> int | None:
        """What it takes on disk; None where nobody knows."""
        return _sum([one.bytes for one in self.files])

    @property
    def download_bytes(self) -> int | None:
        """What is fetched for it; None where nobody knows."""
        return _sum([one.bytes for one in self.sources])


def _sum(counts: list[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


@cache
def read(path: Path) -> tuple[Model, ...]:
    """The models in a catalogue file, the first of each family the one that is recommended.

    Raises:
        ModelError: Something in the file is wrong; the message says what.
    """
    name = display_name(str(path))
    try:
        plain = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"the catalogue {name} cannot be read: {error}") from error
    table = _Table(f"the catalogue {name}", plain)
    sources = {}
    for key, one in table.take("source", dict, {}).items():
        sources[key] = _source(_Table(f"{table.where}: source.{key}", one))
    models = [
        _model(_Table(f"{table.where}: model {number}", one), sources)
        for number, one in enumerate(table.take("model", list, []), 1)
    ]
    table.end()
    names = [one.name for one in models]
    for twice in {one for one in names if names.count(one) > 1}:
        table.fail(f"{twice} stands there twice")
    return tuple(models)


def all_models() -> tuple[Model, ...]:
    """The models of this package's catalogue."""
    return read(FILE)


def find(name: str) -> Model | None:
    """The model of that name; None where there is none."""
    return next((one for one in all_models() if one.name == name), None)


def recommended(family: str) -> Model | None:
    """The first model of a family; None where there is none."""
    return next((one for one in all_models() if one.family == family), None)


class _Table:
    """A table of the file, whose members are taken one by one, checked; what is left is wrong."""

    def __init__(self, where: str, plain: object) -> None:
        self.where = where
        if not isinstance(plain, dict):
            self.fail("must be a table")
        self._left = dict(plain)

    def fail(self, what: str) -> NoReturn:
        raise ModelError(f"{self.where}: {what}")

    def take(self, key: str, kind: type[Any], default: Any = None) -> Any:
        """A member of that type; one without a default must be there."""
        value = self._left.pop(key, default)
        if not isinstance(value, kind) or isinstance(value, bool):
            self.fail(f"{key} must be there, and of the type {kind.__name__}")
        return value

    def text(self, key: str, form: re.Pattern[str] | None = None, default: str = "") -> str:
        """A text of that form; without a default it must be there and not be empty."""
        value: str = self.take(key, str, default)
        if form is not None and not form.fullmatch(value):
            self.fail(f"{key}={shown(value)} is not of its form")
        return value

    def size(self) -> int:
        value: int = self.take("bytes", int)
        if not 0 < value < 1 << 50:
            self.fail(f"bytes={value} is no size of a file")
        return value

    def has(self, key: str) -> bool:
        return key in self._left

    def end(self) -> None:
        if self._left:
            self.fail(f"{', '.join(sorted(self._left))} is not known")


def _source(table: _Table) -> Source:
    is_wheel = not table.has("url")
    made = Source(
        file=table.text("file", _WHEEL if is_wheel else _FILE_NAME),
        sha256=table.text("sha256", _SHA256),
        bytes=table.size(),
        project=table.text("project", _PROJECT) if is_wheel else "",
        version=table.text("version", _VERSION) if is_wheel else "",
        url="" if is_wheel else table.text("url"),
    )
    if made.url and not made.url.startswith(("https://", "http://")):
        table.fail(f"url={shown(made.url)} begins with neither https:// nor http://")
    table.end()
    return made


def _model(table: _Table, sources: Mapping[str, Source]) -> Model:
    name = table.take("name", str)
    if not is_name(name):
        table.fail(f"{shown(name)} cannot be a model's name")
    table.where = f"{table.where} ({name})"
    family = table.take("family", str)
    if family not in FAMILIES:
        table.fail(f"there is no family {shown(family)}")
    made = Model(
        name=name,
        family=family,
        title=table.take("title", str),
        license=table.take("license", str),
        license_source=table.take("license_source", str),
        license_note=table.text("license_note"),
        paths=table.take("paths", dict),
        options=table.take("options", dict, {}),
        files=tuple(
            _file(_Table(f"{table.where}: file {number}", one), sources)
            for number, one in enumerate(table.take("file", list), 1)
        ),
    )
    table.end()
    names = [one.name for one in made.files]
    if manifest.FILE_NAME in names:
        table.fail(f"{manifest.FILE_NAME} is the manifest's name")
    if len(set(names)) < len(names):
        table.fail("two files have one name")
    for key, value in made.paths.items():
        if value not in (".", *names):
            table.fail(f"paths.{key}={shown(value)} is none of its files")
    if "model" not in made.paths:
        table.fail("paths.model must be there")
    return made


def _file(table: _Table, sources: Mapping[str, Source]) -> File:
    name, sha256, size = table.text("name", _FILE_NAME), table.text("sha256", _SHA256), table.size()
    if table.has("part"):
        parts = []
        for number, one in enumerate(table.take("part", list), 1):
            inner = _Table(f"{table.where}: part {number}", one)
            found = _part(inner, sources, inner.text("sha256", _SHA256), inner.size())
            parts.append(found)
    else:
        parts = [_part(table, sources, sha256, size, end=False)]
    table.end()
    if not parts or sum(one.bytes or 0 for one in parts) != size:
        table.fail(f"the parts of {name} are not as long as the whole")
    return File(name, sha256, size, tuple(parts))


def _part(
    table: _Table, sources: Mapping[str, Source], sha256: str, size: int, *, end: bool = True
) -> Part:
    key = table.take("source", str)
    source = sources.get(key)
    if source is None:
        table.fail(f"there is no source {shown(key)}")
    member = ""
    if not source.url:
        member = table.text("member", _MEMBER)
        if any(one in ("", ".", "..") for one in member.split("/")):
            table.fail(f"member={shown(member)} is no plain path")
    elif source.sha256 != sha256:
        table.fail(f"it is the whole of {key}, whose SHA-256 is another")
    if end:
        table.end()
    return Part(source, member, sha256, size)
