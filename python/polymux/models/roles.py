"""What diffusion needs models for, and which installed model has which role.

Each role has a model of the catalogue that belongs there; settings may name another.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import shown
from polymux.errors import InvalidRequestError
from polymux.models import catalogue
from polymux.models.families import is_name
from polymux.models.folder import ModelsFolder

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from polymux.models.folder import Installed

_FAMILY = "diffusion"


class Role(NamedTuple):
    """A place for a model.

    Attributes:
        model: The model that belongs there, as the catalogue and the models folder call it.
        title: What it does, for people.
    """

    model: str
    title: str


#: Name of a role, as settings have it, to what belongs there.
ROLES: Mapping[str, Role] = {
    "picture:A": Role("sdxl-lightning-4step", "pictures in four steps"),
    "picture:B": Role("sdxl-base-1.0", "pictures, from texts and from pictures"),
    "picture:C": Role("playground-v2.5-1024px-aesthetic", "pictures that please"),
    "picture:refiner": Role("sdxl-refiner-1.0", "the refiner of pictures"),
    "picture:safety": Role("stable-diffusion-safety-checker", "the check of pictures"),
    "picture:decoder": Role("taesdxl", "a small and quick decoder of pictures"),
    "detail:juggernaut_reborn": Role("juggernaut-reborn", "detail"),
    "detail:epicrealism_naturalSinRC1VAE": Role("epicrealism-natural-sin-rc1", "detail"),
    "detail:flat2DAnimerge_v45Sharp": Role("flat2d-animerge-v4.5-sharp", "detail of drawings"),
    "detail:controlnet": Role("control-v11f1e-sd15-tile", "what keeps detail to its picture"),
    "video:xl": Role("zeroscope-v2-xl", "video of 1024 x 576"),
    "video:576w": Role("zeroscope-v2-576w", "video of 576 x 320"),
    "video:potat1": Role("potat1", "video of 1024 x 576"),
    "video:animov-512x": Role("animov-512x", "drawn video"),
    "music": Role("riffusion-model-v1", "music"),
}

#: Beside any model for detail.
_CONTROL = "detail:controlnet"
#: Operation and variant to the roles without which it cannot be done; `{}` is a field's choice.
_NEEDED = {
    ("generate_image", "A"): ("picture:A",),
    ("generate_image", "B"): ("picture:B",),
    ("generate_image", "C"): ("picture:C",),
    ("upscale_image", "A"): ("detail:{sd_model}", _CONTROL),
    ("generate_video", ""): ("video:{video_model}",),
    ("generate_music", ""): ("music",),
}


def needed_roles(operation: str, variant: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """The roles without which a request cannot be done; empty for what is no generation.

    Example:
        >>> from polymux.models.roles import needed_roles
        >>> needed_roles("generate_video", "", {"video_model": "576w"})
        ('video:576w',)
    """
    wanted = _NEEDED.get((operation, variant if operation.endswith("_image") else ""), ())
    named = {name: _stem(str(value)) for name, value in values.items() if name.endswith("_model")}
    return tuple(one.format_map(named) for one in wanted)


def _stem(name: str) -> str:
    """Of a checkpoint's file, as requests name it: with its end and the first of its hash."""
    return name.partition(" ")[0].removesuffix(".safetensors")


def possible(roles: Container[str]) -> tuple[tuple[str, str], ...]:
    """Which operations and variants can be done, with at least one of their models.

    Example:
        >>> from polymux.models.roles import possible
        >>> possible({"picture:refiner", "music"})
        (('generate_music', ''),)
    """
    return tuple(
        key
        for key, needed in _NEEDED.items()
        if all(any(role in roles for role in _like(one)) for one in needed)
    )


def _like(form: str) -> list[str]:
    """The roles that a form stands for, whatever the request names."""
    start, brace, _ = form.partition("{")
    if not brace:
        return [form]
    return [one for one in ROLES if one.startswith(start) and one != _CONTROL]


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
    """Which model has which role.

    `wanted` has the names or paths that settings give to roles. A model that does not belong there
    is a substitute, which predictions say in their logs.
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
    """The LoRAs that are installed: name to the path of its weights."""
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
    if problem := unfit(found, _FAMILY):
        return problem
    if found.manifest.paths["model"] != ".":
        return f"the model {named} is a LoRA, which adds to a model and is none"
    return Path(found.engine_options()["model"]), _version(found)


def unfit(model: Installed, family: str) -> str:
    """Why an engine cannot use a model; empty where it can."""
    if model.problem:
        return (
            f"the model {model.name} is damaged ({model.problem}): "
            f"'polymux models rm {model.name}' removes it, then pull or add it again"
        )
    return (
        ""
        if model.family == family
        else f"the model {model.name} is for {model.family}, not for {family}"
    )


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
