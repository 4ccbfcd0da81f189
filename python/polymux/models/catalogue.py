"""The catalogue: which models can be pulled, from where, under which licence, which bytes.

Most are pinned, every byte. Of some nobody here knows the hashes: for those the catalogue names
repositories, whose own lists `polymux.models.repositories` asks and trusts on first use.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, shown
from polymux.models import manifest
from polymux.models.errors import ModelError
from polymux.models.families import FAMILIES, is_name
from polymux.models.manifest import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The catalogue of this package.
FILE = Path(__file__).with_name("catalogue.toml")
#: Beside it: the models of diffusion.
FURTHER = "catalogue-diffusion.toml"

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")
_MEMBER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+/-]{0,299}")
_BEGINNING = re.compile(r"[0-9a-f]{0,64}")
_MAX_FOLDERS = 4
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
_SHOWN_DIGITS = 12
_QUERY = re.compile("[?#].*", re.DOTALL)
_PROJECT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VERSION = re.compile(r"[0-9][0-9a-z.]*")
_WHEEL = re.compile(r"[A-Za-z0-9_.]+(-[A-Za-z0-9_.]+){4,5}\.whl")


@dataclass(frozen=True, slots=True)
class Source:
    """Something to fetch: a wheel, what is at an address, or a file of a repository.

    Attributes:
        file: Name of the file.
        sha256: Of the whole file, in hexadecimal digits; empty where `git_oid` says what it is.
        bytes: Its length; None where nobody knows.
        project: Of a wheel.
        version: Of a wheel.
        url: Where it is; empty for a wheel and for a repository's.
        repository: Whose file it is, such as ``"owner/model"``; else empty.
        revision: Of the repository: a commit, or a branch.
        path: In the repository.
        git_oid: Git's SHA-1 of it as a blob, which repositories tell of small files.
    """

    file: str
    sha256: str
    bytes: int | None
    project: str = ""
    version: str = ""
    url: str = ""
    repository: str = ""
    revision: str = ""
    path: str = ""
    git_oid: str = ""

    @property
    def origin(self) -> str:
        """As people are told where a model comes from."""
        if self.repository:
            return f"{self.repository} at {self.revision[:_SHOWN_DIGITS]}"
        return str(self)

    def __str__(self) -> str:
        """As people are told of it: an address without its query, which may hold a secret."""
        place = f"{self.path} of {self.repository}" if self.repository else _QUERY.sub("", self.url)
        return place or f"the wheel {self.file} of {self.project} {self.version}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a model needs of a repository that alone knows the hashes.

    Attributes:
        repository: Such as ``"owner/model"``.
        revision: A commit, or a branch.
        path: Of a file, or of a folder, ``"."`` for the top.
        name: What the file is called here; empty for a folder, whose needed files keep their names.
        sha256_begins: With which digits the file's SHA-256 begins, where that much is known.
    """

    repository: str
    revision: str
    path: str
    name: str = ""
    sha256_begins: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a file: a member of a wheel, or a whole source where `member` is empty."""

    source: Source
    member: str
    sha256: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class File:
    """A file of a model, joined from its parts, or `converted` from a pickle to safetensors."""

    name: str
    sha256: str
    bytes: int | None
    parts: tuple[Part, ...]
    converted: bool = False


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
        files: What it consists of, as far as its bytes are known.
        wanted: What else it consists of, as repositories will tell.
        about_bytes: What it takes with that, about; None where all is known.
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
    wanted: tuple[Wanted, ...] = ()
    about_bytes: int | None = None

    @property
    def origins(self) -> tuple[str, ...]:
        """Where it comes from, each once."""
        named = [one.origin for one in self.sources]
        folders = [one.rpartition("/")[0] for one in named]
        # Of many files that lie together at an address, the place alone.
        together = [
            f"{folder}/" if "://" in one and folders.count(folder) > 1 else one
            for one, folder in zip(named, folders, strict=True)
        ]
        open_ones = (f"{one.repository} at {one.revision[:_SHOWN_DIGITS]}" for one in self.wanted)
        return tuple(dict.fromkeys([*together, *open_ones]))

    @property
    def repositories(self) -> tuple[str, ...]:
        """The repositories that it comes from, each once."""
        named = (
            *(one.repository for one in self.sources),
            *(one.repository for one in self.wanted),
        )
        return tuple(dict.fromkeys(one for one in named if one))

    @property
    def sources(self) -> tuple[Source, ...]:
        """What is fetched for it, each once."""
        return tuple(dict.fromkeys(part.source for one in self.files for part in one.parts))

    @property
    def bytes(self) -> int | None:
        """What it takes on disk, about where `about_bytes` says so; None where nobody knows."""
        return self.about_bytes or _sum([one.bytes for one in self.files])

    @property
    def download_bytes(self) -> int | None:
        """What is fetched for it, about where `about_bytes` says so; None where nobody knows."""
        return self.about_bytes or _sum([one.bytes for one in self.sources])


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
    table = Table(f"the catalogue {name}", plain)
    sources = {}
    for key, one in table.take("source", dict, {}).items():
        sources[key] = _source(Table(f"{table.where}: source.{key}", one))
    models: list[Model] = []
    for number, one in enumerate(table.take("model", list, []), 1):
        models.append(_model(Table(f"{table.where}: model {number}", one), sources, models))
    table.end()
    names = [one.name for one in models]
    for twice in {one for one in names if names.count(one) > 1}:
        table.fail(f"{twice} stands there twice")
    return tuple(models)


def all_models() -> tuple[Model, ...]:
    """The models of this package's catalogue."""
    return read(FILE) + (read(further) if (further := FILE.with_name(FURTHER)).is_file() else ())


def find(name: str) -> Model | None:
    """The model of that name; None where there is none."""
    return next((one for one in all_models() if one.name == name), None)


def recommended(family: str) -> Model | None:
    """The first model of a family; None where there is none."""
    return next((one for one in all_models() if one.family == family), None)


def _source(table: Table) -> Source:
    if table.has("repository"):
        made = Source(
            file="",
            sha256="",
            bytes=None,
            repository=table.text("repository", _REPOSITORY),
            revision=table.text("revision", _REVISION),
        )
        table.end()
        return made
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


def _model(table: Table, sources: Mapping[str, Source], before: Sequence[Model]) -> Model:
    name = table.take("name", str)
    if not is_name(name):
        table.fail(f"{shown(name)} cannot be a model's name")
    table.where = f"{table.where} ({name})"
    family = table.take("family", str)
    if family not in FAMILIES:
        table.fail(f"there is no family {shown(family)}")
    shared = _shared(table, before) if table.has("with") else ()
    made = Model(
        name=name,
        family=family,
        title=table.take("title", str),
        license=table.take("license", str),
        license_source=table.take("license_source", str),
        license_note=table.text("license_note"),
        paths=table.take("paths", dict),
        options=table.take("options", dict, {}),
        files=shared
        + tuple(
            _file(Table(f"{table.where}: file {number}", one), sources)
            for number, one in enumerate(table.take("file", list, []), 1)
        ),
        wanted=tuple(
            _wanted(Table(f"{table.where}: wanted {number}", one), sources)
            for number, one in enumerate(table.take("wanted", list, []), 1)
        ),
        about_bytes=table.size("about_bytes") if table.has("about_bytes") else None,
    )
    table.end()
    _check_model(table, made)
    return made


def _shared(table: Table, before: Sequence[Model]) -> tuple[File, ...]:
    """The files of a model further up that this one has too."""
    inner = Table(f"{table.where}: with", table.take("with", dict))
    name, without = inner.take("model", str), inner.take("without", list, [])
    inner.end()
    found = next((one for one in before if one.name == name), None)
    if found is None:
        inner.fail(f"there is no model {shown(name)} before it")
    if not set(without) <= {one.name for one in found.files}:
        inner.fail(f"without={shown(without)} is none of the files of {name}")
    return tuple(one for one in found.files if one.name not in without)


def _check_model(table: Table, made: Model) -> None:
    names = [one.name for one in made.files] + [one.name for one in made.wanted if one.name]
    if not names and not made.wanted:
        table.fail("file must be there, or wanted")
    if bool(made.wanted) != (made.about_bytes is not None):
        table.fail("about_bytes belongs to what is wanted, and must be there with it")
    if manifest.FILE_NAME in names:
        table.fail(f"{manifest.FILE_NAME} is the manifest's name")
    if len(set(names)) < len(names):
        table.fail("two files have one name")
    for key, value in made.paths.items():
        if value not in (".", *names):
            table.fail(f"paths.{key}={shown(value)} is none of its files")
    if "model" not in made.paths:
        table.fail("paths.model must be there")


def _wanted(table: Table, sources: Mapping[str, Source]) -> Wanted:
    source = _source_of(table, sources)
    if not source.repository:
        table.fail("only what a repository has can be wanted without its hash")
    is_file = table.has("name")
    path = table.text("path", None if is_file else re.compile(r"\.|" + _MEMBER.pattern))
    begins = table.text("sha256_begins", _BEGINNING)
    made = Wanted(source.repository, source.revision, path, table.text("name"), begins)
    for one in (made.path, made.name):
        if one not in ("", ".") and not is_plain_path(one):
            table.fail(f"{shown(one)} is no plain path")
    if is_file and made.path in ("", "."):
        table.fail("path must be that of a file")
    table.end()
    return made


def _source_of(table: Table, sources: Mapping[str, Source]) -> Source:
    key = table.take("source", str)
    source = sources.get(key)
    if source is None:
        table.fail(f"there is no source {shown(key)}")
    return source


def is_plain_path(text: str) -> bool:
    """Whether it names a file in a folder or a few folders below it, and nothing else.

    Example:
        >>> from polymux.models.catalogue import is_plain_path
        >>> is_plain_path("unet/config.json"), is_plain_path("../config.json")
        (True, False)
    """
    parts = text.split("/")
    return len(parts) <= _MAX_FOLDERS and all(_FILE_NAME.fullmatch(one) for one in parts)


def _file(table: Table, sources: Mapping[str, Source]) -> File:
    name, sha256, size = table.text("name"), table.text("sha256", _SHA256), table.size()
    if not is_plain_path(name):
        table.fail(f"name={shown(name)} is not of its form")
    if table.has("part"):
        parts = []
        for number, one in enumerate(table.take("part", list), 1):
            inner = Table(f"{table.where}: part {number}", one)
            found = _part(inner, sources, inner.text("sha256", _SHA256), inner.size())
            inner.end()
            parts.append(found)
    else:
        parts = [_part(table, sources, sha256, size, name)]
    table.end()
    if not parts or sum(one.bytes or 0 for one in parts) != size:
        table.fail(f"the parts of {name} are not as long as the whole")
    return File(name, sha256, size, tuple(parts))


def _part(
    table: Table, sources: Mapping[str, Source], sha256: str, size: int, name: str = ""
) -> Part:
    source = _source_of(table, sources)
    member = ""
    if not source.url:
        member = table.text("member", _MEMBER, name if source.repository else "")
        if any(one in ("", ".", "..") for one in member.split("/")):
            table.fail(f"member={shown(member)} is no plain path")
    elif source.sha256 != sha256:
        table.fail(f"it is the whole of {source.file}, whose SHA-256 is another")
    if source.repository:
        file = member.rpartition("/")[2]
        source = replace(source, file=file, sha256=sha256, bytes=size, path=member)
        member = ""
    return Part(source, member, sha256, size)
