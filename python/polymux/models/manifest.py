"""What is written down of an installed model, beside its files."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name
from polymux.models.errors import ModelError
from polymux.models.families import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The manifest's name in the model's folder.
FILE_NAME = "polymux-model.json"
_FORMAT = 1
_LARGEST_BYTES = 1 << 20
_MAX_PARTS = 4
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of a model; `sha256` is empty where nobody has noted it."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """An installed model.

    Attributes:
        name: As commands and settings call it.
        family: The engine that it is for.
        license: As SPDX has it, or words; empty where nobody has said.
        source: Where it came from, in words.
        paths: Which of its files the engine's options of these names are; ``"."`` is its folder.
        options: Further options that the engine needs for it.
        files: What it consists of.
        license_source: Where the licence is said.
        license_note: What to know beyond it.
        folder: Of the user's own files, where they are; None for files of the models folder.
        added_at: Seconds since 1970.
    """

    name: str
    family: str
    license: str
    source: str
    paths: Mapping[str, str]
    options: Mapping[str, Any]
    files: tuple[Kept, ...]
    license_source: str = ""
    license_note: str = ""
    folder: Path | None = None
    added_at: float = field(default_factory=time.time)

    def encoded(self) -> bytes:
        folder = None if self.folder is None else os.fspath(self.folder)
        plain = {"format": _FORMAT, **asdict(self), "folder": folder}
        return json.dumps(plain, indent=2).encode() + b"\n"


def read(path: Path) -> Manifest | None:
    """The manifest in a file; None where there is no file.

    Raises:
        ModelError: It cannot be read, or is not what polymux writes.
    """
    name = display_name(f"{path.parent.name}/{path.name}")
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ModelError(f"cannot read {name}: {error.strerror}", errno=error.errno) from error
    if len(data) > _LARGEST_BYTES:
        raise ModelError(f"{name} is no manifest of a model: it is over 1 MiB")
    try:
        return _decoded(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError(f"{name} is no manifest of a model: {error}") from None


def _decoded(plain: Any) -> Manifest:
    if plain["format"] != _FORMAT:
        raise ValueError(f"its format is {plain['format']!r}, and {_FORMAT} is what is known here")
    known = {one.name: plain[one.name] for one in fields(Manifest)}
    files = tuple(Kept(one["name"], one["bytes"], one["sha256"]) for one in plain["files"])
    folder = None if plain["folder"] is None else Path(plain["folder"])
    made = Manifest(**known | {"files": files, "folder": folder})
    _check(made)
    return made


def _check(made: Manifest) -> None:
    texts = (made.name, made.license, made.license_source, made.license_note, made.source)
    plain = all(isinstance(one, str) for one in texts) and isinstance(made.options, dict)
    if not plain or not isinstance(made.added_at, (int, float)):
        raise TypeError("a member is of a wrong type")
    if made.family not in FAMILIES:
        raise ValueError("it has no family that is known here")
    if made.folder is not None and not made.folder.is_absolute():
        raise ValueError("its folder is no absolute path")
    names = [one.name for one in made.files]
    for one in made.files:
        check_file_name(one.name)
        right = isinstance(one.bytes, int) and one.bytes >= 0
        if not right or not (one.sha256 == "" or _SHA256.fullmatch(one.sha256)):
            raise ValueError("a file has no size or no SHA-256")
    if any(value not in (".", *names) for value in made.paths.values()) or (
        "model" not in made.paths
    ):
        raise ValueError("its paths are none of its files")


def check_file_name(name: object) -> None:
    """A file of the folder or of one below it: a manifest cannot have another read or removed.

    Raises:
        ValueError: It leads elsewhere, has a hidden part, or is the manifest.
    """
    parts = name.split("/") if isinstance(name, str) else []
    plain = all(one != "" and not one.startswith(".") for one in parts)
    if not 1 <= len(parts) <= _MAX_PARTS or name == FILE_NAME or "\0" in str(name) or not plain:
        raise ValueError("a file's name is a path")


def is_within(folder: Path, name: str) -> bool:
    """Whether no link leads from a folder's file out of the folder."""
    return (folder / name).resolve().is_relative_to(folder.resolve())
