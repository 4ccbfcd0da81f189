"""The roles of diffusion models, and the assignment of installed models to roles.

Each role has a default model in the registry; settings can assign another one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import shown
from polymux.errors import InvalidRequestError
from polymux.models import registry
from polymux.models.families import is_name
from polymux.models.folder import ModelsFolder

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from polymux.models.folder import Installed

_FAMILY = "diffusion"


class Role(NamedTuple):
    """A purpose for which the engine uses a model.

    Attributes:
        model: Default model, as named in the registry and the models directory.
        title: Short description for users.
    """

    model: str
    title: str


#: Role names, as used in settings.
ROLES: Mapping[str, Role] = {
    "picture:A": Role("sdxl-lightning-4step", "images in four steps"),
    "picture:B": Role("sdxl-base-1.0", "images from text and from images"),
    "picture:C": Role("playground-v2.5-1024px-aesthetic", "aesthetic images"),
    "picture:refiner": Role("sdxl-refiner-1.0", "image refiner"),
    "picture:safety": Role("stable-diffusion-safety-checker", "image safety checker"),
    "picture:decoder": Role("taesdxl", "tiny VAE (fast image decoder)"),
    "detail:juggernaut_reborn": Role("juggernaut-reborn", "detail of photos"),
    "detail:epicrealism_naturalSinRC1VAE": Role("epicrealism-natural-sin-rc1", "detail of photos"),
    "detail:flat2DAnimerge_v45Sharp": Role("flat2d-animerge-v4.5-sharp", "detail of drawings"),
    "detail:controlnet": Role("control-v11f1e-sd15-tile", "keeps detail consistent"),
    "video:xl": Role("zeroscope-v2-xl", "video of 1024 x 576"),
    "video:576w": Role("zeroscope-v2-576w", "video of 576 x 320"),
    "video:potat1": Role("potat1", "video of 1024 x 576"),
    "video:animov-512x": Role("animov-512x", "anime-style video"),
    "music": Role("riffusion-model-v1", "music"),
}

#: Needed with every model for detail.
_CONTROL = "detail:controlnet"
#: Operation and variant to the needed roles. `{}` stands for the value of a request field.
_NEEDED = {
    ("generate_image", "A"): ("picture:A",),
    ("generate_image", "B"): ("picture:B",),
    ("generate_image", "C"): ("picture:C",),
    ("upscale_image", "A"): ("detail:{sd_model}", _CONTROL),
    ("generate_video", ""): ("video:{video_model}",),
    ("generate_music", ""): ("music",),
}


def needed_roles(operation: str, variant: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the roles that a request needs; empty if it does not generate anything.

    Example:
        >>> from polymux.models.roles import needed_roles
        >>> needed_roles("generate_video", "", {"video_model": "576w"})
        ('video:576w',)
    """
    wanted = _NEEDED.get((operation, variant if operation.endswith("_image") else ""), ())
    named = {name: stem_of(str(value)) for name, value in values.items() if name.endswith("_model")}
    return tuple(one.format_map(named) for one in wanted)


def request_of(role: str) -> tuple[str, str, dict[str, str]] | None:
    """Return operation, variant and fields of the requests that a role's model runs.

    None for models that only accompany others. A field has the name of a checkpoint without its
    extension and hash.

    Example:
        >>> from polymux.models.roles import request_of
        >>> request_of("video:576w"), request_of("picture:safety")
        (('generate_video', '', {'video_model': '576w'}), None)
    """
    for (operation, variant), (form, *_) in _NEEDED.items():
        start, _, field = form.partition("{")
        if role == form:
            return operation, variant, {}
        if field and role.startswith(start) and role != _CONTROL:
            return operation, variant, {field.removesuffix("}"): role.removeprefix(start)}
    return None


def stem_of(name: str) -> str:
    """Return a checkpoint's name from a request without its extension and hash."""
    return name.partition(" ")[0].removesuffix(".safetensors")


def possible(roles: Container[str]) -> tuple[tuple[str, str], ...]:
    """Return the operations and variants that are available with these roles.

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
    """Return the roles that match a form, for any value of its field."""
    start, brace, _ = form.partition("{")
    if not brace:
        return [form]
    return [one for one in ROLES if one.startswith(start) and one != _CONTROL]


class ModelAssignment(NamedTuple):
    """The result of assigning models to roles.

    Attributes:
        models: For each assigned role, ``path`` and ``name``; also ``instead_of`` if it is not the
            default model, and ``version`` if the files' hashes are known.
        problems: For each unassigned role, the reason and the remedy.
    """

    models: dict[str, dict[str, str]]
    problems: dict[str, str]


def assign_models(wanted: Mapping[str, Any], folder: ModelsFolder | None = None) -> ModelAssignment:
    """Assign installed models to roles.

    `wanted` has the model names or paths from the settings. If a role gets another model than its
    default, jobs report this in their logs.
    """
    folder = folder or ModelsFolder()
    for name in wanted:
        if name not in ROLES:
            raise InvalidRequestError(
                f"models: unknown role {shown(name)} (known: {', '.join(ROLES)})"
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
    """Return the installed LoRAs: name to the path of the weights."""
    return {
        one.name: one.engine_options()["model"]
        for one in (folder or ModelsFolder()).installed()
        if one.family == _FAMILY and not one.problem and one.manifest.paths["model"] != "."
    }


def why_missing(role: str) -> str:
    """Return why the default model of a role is missing, and the remedy."""
    return _missing(ROLES[role].model)


def _path(named: str, folder: ModelsFolder) -> tuple[Path, str] | str:
    """Return the path and version of a model, or the reason why it cannot be used."""
    if not is_name(named):
        path = Path(named).expanduser()
        return (path, "") if path.exists() else f"directory not found: {path.name!r}"
    found = folder.find(named)
    if found is None:
        return _missing(named)
    if problem := unfit(found, _FAMILY):
        return problem
    if found.manifest.paths["model"] != ".":
        return f"model {named} is a LoRA, which cannot be used on its own"
    return Path(found.engine_options()["model"]), _version(found)


def unfit(model: Installed, family: str) -> str:
    """Return why an engine cannot use a model, or an empty string."""
    if model.problem:
        return (
            f"model {model.name} is damaged ({model.problem}). Run "
            f"'polymux models rm {model.name}', then pull or add it again"
        )
    return (
        ""
        if model.family == family
        else f"model {model.name} is for {model.family}, not for {family}"
    )


def _missing(name: str) -> str:
    if registry.find(name) is not None:
        return f"model {name} is not installed. Run 'polymux models pull {name}'"
    return (
        f"model {name} is not installed. Run 'polymux models add {name} DIR' to use your own model"
    )


def _version(found: Installed) -> str:
    """Return the SHA-256 of the largest file, which has the main weights, if it is known."""
    largest = max(found.manifest.files, key=lambda one: one.bytes, default=None)
    return "" if largest is None else largest.sha256
