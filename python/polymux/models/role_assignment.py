"""Which installed model has which role in diffusion, by settings or by its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import shown
from polymux.errors import InvalidRequestError
from polymux.models import catalogue
from polymux.models.families import is_name
from polymux.models.folder import ModelsFolder
from polymux.models.roles import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.models.folder import Installed

_FAMILY = "diffusion"


class ModelAssignment(NamedTuple):
    """The models of an engine.

    Attributes:
        models: Role to ``path``, ``name``, and ``instead_of`` where it is not the model that
            belongs there; ``version`` where the files' hashes are known.
        problems: Role to why it has none, and what to do.
    """

    models: dict[str, dict[str, str]]
    problems: dict[str, str]


def assign_models(wanted: Mapping[str, Any], folder: ModelsFolder | None = None) -> ModelAssignment:
    """Who plays which role.

    Args:
        wanted: Role to the name or path of a model that is to play it, as settings have it. A model
            that does not belong there is a substitute, which predictions say in their logs.
        folder: Of models. Default: the user's.

    Raises:
        InvalidRequestError: There is no such role.
    """
    folder = folder or ModelsFolder()
    for name in wanted:
        if name not in ROLES:
            raise InvalidRequestError(
                f"models: {shown(name)} is no role; there are: {', '.join(ROLES)}"
            )
    models: dict[str, dict[str, str]] = {}
    problems: dict[str, str] = {}
    for role, about in ROLES.items():
        named = str(wanted.get(role) or about.model)
        found = _path(named, folder)
        if isinstance(found, str):
            problems[role] = found
            continue
        path, version = found
        models[role] = {"path": os.fspath(path), "name": path.name if "/" in named else named}
        if version:
            models[role]["version"] = version
        if models[role]["name"] != about.model:
            models[role]["instead_of"] = about.model
    return ModelAssignment(models, problems)


def loras_of(folder: ModelsFolder | None = None) -> dict[str, str]:
    """The LoRAs that are installed: name to the path of its weights.

    Args:
        folder: Of models. Default: the user's.
    """
    return {
        one.name: one.engine_options()["model"]
        for one in (folder or ModelsFolder()).installed()
        if one.family == _FAMILY and not one.problem and one.manifest.paths["model"] != "."
    }


def why_missing(role: str) -> str:
    """Why a role has no model where settings name none, and what to do."""
    return _missing(ROLES[role].model)


def _path(named: str, folder: ModelsFolder) -> tuple[Path, str] | str:
    """Where a model is and its version, or why there is none."""
    if not is_name(named):
        path = Path(named).expanduser()
        return (path, "") if path.exists() else f"there is no folder {path.name!r}"
    found = folder.find(named)
    if found is None:
        return _missing(named)
    if found.problem:
        return (
            f"the model {named} is damaged ({found.problem}): 'polymux models rm {named}' removes "
            "it, then pull or add it again"
        )
    if found.family != _FAMILY:
        return f"the model {named} is for {found.family}, not for {_FAMILY}"
    if found.manifest.paths["model"] != ".":
        return f"the model {named} is a LoRA, which adds to a model and is none"
    return Path(found.engine_options()["model"]), _version(found)


def _missing(name: str) -> str:
    if catalogue.find(name) is not None:
        return f"the model {name} is not installed: 'polymux models pull {name}' fetches it"
    return (
        f"the model {name} is not installed: 'polymux models add {name} FOLDER' takes one of "
        "your own"
    )


def _version(found: Installed) -> str:
    """SHA-256 of the largest file, where it is known: the one that paints."""
    largest = max(found.manifest.files, key=lambda one: one.bytes, default=None)
    return "" if largest is None else largest.sha256
