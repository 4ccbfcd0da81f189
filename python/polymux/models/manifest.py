"""The manifest of an installed model, stored next to its files."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, shown
from polymux.models.errors import ModelError
from polymux.models.families import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Name of the manifest in the model's directory.
FILE_NAME = "polymux-model.json"
_FORMAT = 1
_LARGEST_BYTES = 1 << 20
_MAX_PARTS = 4
_SHA256 = re.compile(r"[0-9a-f]{64}")
#: Fields that describe how a model is used. Older manifests lack them.
DESCRIPTION = ("native_size", "vae_factor", "base_model", "defaults", "fallback_roles")
_MAX_SIDE_PX = 1 << 16
_VAE_FACTORS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of a model; `sha256` is empty if it is not known."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of an installed model.

    Attributes:
        name: Name in commands and settings.
        family: The engine that uses it.
        license: SPDX identifier or text; empty if unknown.
        source: Origin of the files, as text.
        paths: Options of the engine and the files that they name; ``"."`` is the directory.
        options: Further options that the engine needs.
        files: The files of the model.
        license_source: Document that states the license.
        license_note: Further license information.
        folder: Directory of a linked model's files; None for files in the models directory.
        added_at: Time of installation in seconds since 1970.
        native_size: Width and height in pixels at which a diffusion model generates. Other sizes
            are enlarged or reduced from it. Default: it generates at the requested size.
        vae_factor: Pixels per latent cell on each side, a power of two up to 64. Default: as the
            VAE's configuration says.
        base_model: Name of the model that these motion layers extend; empty for complete models.
        defaults: Role to values for fields that a request leaves out, such as
            ``{"picture:B": {"num_inference_steps": 25, "guidance_scale": 4.0}}``. Only steps,
            guidance and denoising, in the bounds of the contract.
        fallback_roles: Roles of a small model: it has them only if neither settings nor another
            installed model nor an upstream can do their work.
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
    native_size: tuple[int, int] | None = None
    vae_factor: int | None = None
    base_model: str = ""
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fallback_roles: tuple[str, ...] = ()

    def encoded(self) -> bytes:
        folder = None if self.folder is None else os.fspath(self.folder)
        plain = {"format": _FORMAT, **asdict(self), "folder": folder}
        return json.dumps(plain, indent=2).encode() + b"\n"

    def description(self) -> dict[str, Any]:
        """Return the fields that describe how the model is used, for another manifest."""
        return {name: getattr(self, name) for name in DESCRIPTION}


def read(path: Path) -> Manifest | None:
    """Read a manifest; None if the file does not exist.

    Raises:
        ModelError: It cannot be read, or it is invalid.
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
        raise ModelError(f"{name} is not a model manifest: larger than 1 MiB")
    try:
        return _decoded(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        problem = f"missing {error}" if isinstance(error, KeyError) else error
        raise ModelError(f"{name} is not a valid model manifest: {problem}") from None


def _decoded(plain: Any) -> Manifest:
    if plain["format"] != _FORMAT:
        raise ValueError(f"unsupported format (got {plain['format']!r}, allowed {_FORMAT})")
    known = {
        one.name: plain[one.name]
        for one in fields(Manifest)
        if one.name in plain or one.name not in DESCRIPTION
    }
    arrays = {
        name: tuple(known[name])
        for name in ("native_size", "fallback_roles")
        if isinstance(known.get(name), list)
    }
    files = tuple(Kept(one["name"], one["bytes"], one["sha256"]) for one in plain["files"])
    folder = None if plain["folder"] is None else Path(plain["folder"])
    made = Manifest(**known | arrays | {"files": files, "folder": folder})
    _check(made)
    return made


def _check(made: Manifest) -> None:
    for text in ("name", "license", "license_source", "license_note", "source", "base_model"):
        if not isinstance(getattr(made, text), str):
            raise TypeError(f"{text}: must be a string")
    if not isinstance(made.options, dict):
        raise TypeError("options: must be an object")
    if not isinstance(made.added_at, (int, float)):
        raise TypeError("added_at: must be a number")
    if made.family not in FAMILIES:
        raise ValueError(f"unknown family {shown(made.family)}")
    if made.folder is not None and not made.folder.is_absolute():
        raise ValueError(f"folder: must be an absolute path (got {shown(str(made.folder))})")
    check_description(made.native_size, made.vae_factor, made.defaults, made.fallback_roles)
    names = [one.name for one in made.files]
    for one in made.files:
        check_file_name(one.name)
        right = isinstance(one.bytes, int) and one.bytes >= 0
        if not right or not (one.sha256 == "" or _SHA256.fullmatch(one.sha256)):
            raise ValueError(f"{one.name}: invalid size or SHA-256")
    if any(value not in (".", *names) for value in made.paths.values()) or (
        "model" not in made.paths
    ):
        raise ValueError("paths: must include 'model', and may only name files of the model")


def check_description(
    native_size: object, vae_factor: object, defaults: object, fallback_roles: object
) -> None:
    """Check the fields of a manifest that describe how its model is used.

    Raises:
        ValueError: A field is invalid.
        TypeError: `defaults` has another type.
    """
    sides = native_size if isinstance(native_size, tuple) else ()
    if native_size is not None and (len(sides) != 2 or not all(map(_is_side, sides))):
        raise ValueError("native_size: must be a width and a height in pixels")
    if vae_factor is not None and not (_is_side(vae_factor) and vae_factor in _VAE_FACTORS):
        raise ValueError(f"vae_factor: must be one of {', '.join(map(str, _VAE_FACTORS))}")
    if not isinstance(defaults, dict):
        raise TypeError("defaults: must be an object")
    for role, values in defaults.items():
        _check_defaults(role, values)
    if not isinstance(fallback_roles, tuple) or not all(
        isinstance(one, str) for one in fallback_roles
    ):
        raise ValueError("fallback_roles: must be an array of strings")


def _is_side(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_SIDE_PX


def _check_defaults(role: str, values: object) -> None:
    from polymux.models.roles import default_fields  # That module imports this one.

    known = default_fields(role)
    if known is None:
        raise ValueError(f"defaults: unknown role {shown(role)}")
    if not isinstance(values, dict):
        raise TypeError(f"defaults of {role}: must be an object")
    for name, value in values.items():
        if name not in known:
            raise ValueError(
                f"defaults of {role}: unknown field {shown(name)} (allowed: {', '.join(known)})"
            )
        about = known[name]
        kinds = int if about.is_whole else (int, float)
        right = isinstance(value, kinds) and not isinstance(value, bool)
        if not right or not about.smallest <= value <= about.largest:
            kind = "an integer" if about.is_whole else "a number"
            raise ValueError(
                f"defaults of {role}: {name}: must be {kind} "
                f"from {about.smallest:g} to {about.largest:g} (got {shown(value)})"
            )


def check_file_name(name: object) -> None:
    """Check that a name is a file in the directory or a subdirectory.

    This prevents a manifest from reading or removing other files.

    Raises:
        ValueError: The path leads elsewhere, has a hidden component, or is the manifest.
    """
    parts = name.split("/") if isinstance(name, str) else []
    plain = all(one != "" and not one.startswith(".") for one in parts)
    if not 1 <= len(parts) <= _MAX_PARTS or name == FILE_NAME or "\0" in str(name) or not plain:
        raise ValueError(
            f"invalid file name {shown(name)} (allowed: a relative path without hidden, empty or "
            "'..' parts)"
        )


def is_within(folder: Path, name: str) -> bool:
    """Whether a file of a directory is inside it after resolving symlinks."""
    return (folder / name).resolve().is_relative_to(folder.resolve())
