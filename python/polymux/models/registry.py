"""The model registry: names, sources, licenses and file hashes of the models to download.

Most models are pinned by the hashes of all their files. If hashes are not known, the registry names
repositories, and `polymux.models.repositories` reads the hashes from their file lists, which are
trusted on first use.
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

#: The registry file of this package.
FILE = Path(__file__).with_name("registry.toml")
#: Name of the registry file with the diffusion models, in the same directory.
FURTHER = "registry-diffusion.toml"

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")
_MAX_FOLDERS = 4
#: Licenses that permit commercial use without conditions on who uses the model.
_COMMERCIAL = (
    "Apache-2.0", "MIT", "BSD-3-Clause", "CC0-1.0", "CreativeML Open RAIL-M",
    "CreativeML Open RAIL++-M", "OpenRAIL",
)  # fmt: skip
_SIGNS_OF_PATTERNS = re.compile(r"[*\[\]]")
_SHOWN_DIGITS = 12
_QUERY = re.compile("[?#].*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """Something to download: a wheel, a file at a URL, or a file of a repository.

    Attributes:
        file: Name of the file.
        sha256: SHA-256 of the file in hexadecimal digits; empty if only `git_oid` is known.
        bytes: Size of the file; None if unknown.
        project: Project of a wheel.
        version: Version of a wheel.
        url: URL of the file; empty for a wheel and for a file of a repository.
        repository: Repository of the file, such as ``"owner/model"``; else empty.
        revision: Commit or branch of the repository.
        path: Path in the repository.
        git_oid: Git blob ID (SHA-1), which repositories list for small files.
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
        """The source as shown to users."""
        if self.repository:
            return f"{self.repository} at {self.revision[:_SHOWN_DIGITS]}"
        return str(self)

    def __str__(self) -> str:
        """The source as shown to users. URLs are shown without queries, which may be secret."""
        place = f"{self.path} of {self.repository}" if self.repository else _QUERY.sub("", self.url)
        return place or f"wheel {self.file} of {self.project} {self.version}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Files of a model whose hashes only their repository has.

    Attributes:
        repository: Repository, such as ``"owner/model"``.
        revision: Commit or branch.
        path: Path of a file or directory; ``"."`` for the top level. The path of a file may be a
            pattern with ``*`` and ``[]``, which exactly one file must match.
        name: Name of the file in the model. Empty for a directory, whose files keep their names.
        sha256_begins: First digits of the file's SHA-256, if known.
    """

    repository: str
    revision: str
    path: str
    name: str = ""
    sha256_begins: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file: a member of a wheel, or a complete source if `member` is empty."""

    source: Source
    member: str
    sha256: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class File:
    """A file of a model: its parts joined, or a pickle `converted` to safetensors."""

    name: str
    sha256: str
    bytes: int | None
    parts: tuple[Part, ...]
    converted: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be downloaded.

    Attributes:
        name: Name in commands and settings.
        family: The engine that uses it.
        title: Short description.
        license: SPDX identifier or text.
        license_source: Document that states the license.
        paths: Options of the engine and the files that they name; ``"."`` is the model's directory.
        files: The files with known hashes.
        license_note: Further license information; usually empty.
        options: Further options that the engine needs.
        wanted: Further files whose hashes come from the repositories.
        about_bytes: Approximate total size if `wanted` is not empty, else None.
        number_bytes: Bytes per weight in the files of a `diffusion` model.
        suits: Roles that it can have, as in ``polymux models use``, if it has none by default.
        seconds: Measured time of one result, as `seconds_for` describes; None if not measured.
        seconds_for: The result and the machine of that measurement.
        native_size: As in `polymux.models.manifest.Manifest`.
        defaults: As in `polymux.models.manifest.Manifest`.
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
    number_bytes: int = 2
    suits: tuple[str, ...] = ()
    seconds: float | None = None
    seconds_for: str = ""
    native_size: tuple[int, int] | None = None
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def origins(self) -> tuple[str, ...]:
        named = [one.origin for one in self.sources]
        folders = [one.rpartition("/")[0] for one in named]
        # Many files in one directory of a URL are shown as the directory.
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
    def commercial_use(self) -> str:
        """Whether the license permits commercial use: ``"yes"``, ``"no"`` or ``"limited"``.

        Limited licenses depend on the user's revenue or number of users. Licenses that only forbid
        certain uses, such as Open RAIL, permit it.
        """
        if "-NC" in self.license:
            return "no"
        return "yes" if self.license in _COMMERCIAL else "limited"

    @property
    def sources(self) -> tuple[Source, ...]:
        """All sources of the files, without duplicates."""
        return tuple(dict.fromkeys(part.source for one in self.files for part in one.parts))

    @property
    def bytes(self) -> int | None:
        """Size on disk, approximate if `about_bytes` is set; None if unknown."""
        return self.about_bytes or _sum([one.bytes for one in self.files])

    @property
    def download_bytes(self) -> int | None:
        """Size of the download, approximate if `about_bytes` is set; None if unknown."""
        return self.about_bytes or _sum([one.bytes for one in self.sources])


def _sum(counts: list[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


@cache
def read(path: Path) -> tuple[Model, ...]:
    """Read the models of a registry file. The first model of each family is the recommended one.

    Tests check the package's own files. This function only rejects unsafe paths.

    Raises:
        ModelError: The file cannot be read, or an entry is not a valid model.
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
        raise ModelError(f"cannot read the model registry {name}: {error}") from error
    return tuple(models.values())


def all_models() -> tuple[Model, ...]:
    return read(FILE) + (read(further) if (further := FILE.with_name(FURTHER)).is_file() else ())


def find(name: str) -> Model | None:
    """Return the model with this name, or None."""
    return next((one for one in all_models() if one.name == name), None)


def recommended(family: str) -> Model | None:
    """Return the first model of a family, or None."""
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
    for name in ("native_size", "suits"):
        if name in table:
            table[name] = tuple(table[name])
    return Model(**table, files=tuple(files), wanted=wanted)


def _wanted(table: dict[str, Any], sources: Mapping[str, Source]) -> Wanted:
    source = sources[table.pop("source")]
    made = Wanted(source.repository, source.revision, **table)
    for one in (_SIGNS_OF_PATTERNS.sub("x", made.path), made.name):
        if one not in ("", "."):
            _checked_path(one)
    return made


def is_plain_path(text: str) -> bool:
    """Whether a text is a relative path of at most four safe components.

    Example:
        >>> from polymux.models.registry import is_plain_path
        >>> is_plain_path("unet/config.json"), is_plain_path("../config.json")
        (True, False)
    """
    parts = text.split("/")
    return len(parts) <= _MAX_FOLDERS and all(_FILE_NAME.fullmatch(one) for one in parts)


def _checked_path(text: str) -> str:
    if not is_plain_path(text):
        raise ValueError(
            f"invalid path {shown(text)} (allowed: a relative path without hidden or '..' parts)"
        )
    return text


def _file(table: dict[str, Any], sources: Mapping[str, Source]) -> File:
    name, sha256, size = _checked_path(table["name"]), table["sha256"], table["bytes"]
    # Without parts, the entry itself is the only part: a whole source or one member of it.
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
