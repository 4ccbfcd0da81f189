"""The roles of diffusion models, and the assignment of installed models to roles.

A role gets the first of these models: the one in the settings, the one of ``polymux models use``,
the role's default model if it is installed, and an installed small model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import contract
from polymux._util.text import did_you_mean, display_name, shown
from polymux.engines.registry import loaded
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError
from polymux.models import manifest, registry
from polymux.models.diffusion_folders import pipeline_class
from polymux.models.errors import ModelError
from polymux.models.families import FAMILIES, checked_name, is_name, layout_of
from polymux.models.folder import ModelsFolder

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from polymux.models.folder import Installed
    from polymux.models.manifest import Manifest

_FAMILY = "diffusion"
#: Engines whose models have roles.
FAMILIES_WITH_ROLES = tuple(name for name, one in FAMILIES.items() if one.has_roles)


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
#: Pipelines of diffusers for videos: for text to video, and for video to video.
VIDEO_PIPELINES = {
    "wan": ("WanPipeline", "WanVideoToVideoPipeline"),
    "text_to_video": ("TextToVideoSDPipeline", "VideoToVideoSDPipeline"),
    "animate": ("AnimateDiffPipeline", "AnimateDiffVideoToVideoPipeline"),
}
#: Operation to the classes of diffusers' pipelines that its engine can run; others are not checked.
_PIPELINES = {
    "generate_image": ("StableDiffusionXLPipeline", "StableDiffusionPipeline"),
    "generate_video": tuple(one for both in VIDEO_PIPELINES.values() for one in both),
    "generate_music": ("StableDiffusionPipeline", "StableDiffusionImg2ImgPipeline"),
}
#: Fields with steps and guidance, if they have other names.
_OWN_FIELDS = {
    "generate_video": ("num_inferences_steps", "guidance_scale"),
    "upscale_image": ("num_inference_steps", "dynamic"),
}
#: Fields for which a model may have its own values, if the operation has them.
_DEFAULT_FIELDS = (
    "num_inference_steps",
    "num_inferences_steps",
    "guidance_scale",
    "dynamic",
    "denoising",
)


class DefaultField(NamedTuple):
    """A field for which a model may have its own value, with inclusive bounds."""

    smallest: float
    largest: float
    is_whole: bool


#: Guidance of music is not a field of requests, but models may set it.
_MUSIC_GUIDANCE = DefaultField(0, 50, is_whole=False)


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


def roles_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return roles by name; ``picture``, ``video`` and ``detail`` mean all roles of that kind.

    Raises:
        InvalidRequestError: A name is unknown.

    Example:
        >>> from polymux.models.roles import roles_named
        >>> roles_named(["picture", "music"])
        ('picture:A', 'picture:B', 'picture:C', 'music')
    """
    found: dict[str, None] = {}
    for name in names:
        kind = [one for one in ROLES if one.startswith(f"{name}:") and request_of(one) is not None]
        if name not in ROLES and not kind:
            raise InvalidRequestError(
                f"unknown role {shown(name)} (known: {', '.join(ROLES)}){did_you_mean(name, ROLES)}"
            )
        found |= dict.fromkeys(kind or [name])
    return tuple(found)


def use(name: str | None, roles: Sequence[str], folder: ModelsFolder) -> None:
    """Assign an installed model to roles; None restores the default choice.

    Settings have priority. Engines that are running keep their models until they restart.

    Raises:
        InvalidRequestError: The model cannot have one of these roles. None is assigned.
        ModelError: The file with the assignments is invalid.
        OutputFailedError: The models directory cannot be written.
    """
    if not roles:
        return
    if name is not None:
        for role in roles:
            found = _found(checked_name(name), role, folder)
            if isinstance(found, str):
                raise InvalidRequestError(found)
            check_fit(name, found["family"], Path(found["path"]), role)
    folder.use(roles, name)


def check_fit(name: str, family: str, path: Path, role: str) -> None:
    """Check that an engine can run a model in a role: its operations, and the class of a pipeline.

    `path` is the main file of a model, or its directory if it has none. Pipelines of roles that
    only accompany others, and of those for detail, are not checked.

    Raises:
        InvalidRequestError: It cannot.
    """
    request, about = request_of(role), FAMILIES[family]
    if family != _FAMILY and (request is None or request[0] not in about.operations):
        raise InvalidRequestError(
            f"model {display_name(name)} cannot have the role {role}: the engine {family} cannot "
            f"do this (it supports {', '.join(about.operations)})"
        )
    able = loaded(about.model_operations)(path) if about.model_operations else about.operations
    if request is not None and request[0] not in able:
        raise InvalidRequestError(
            f"model {display_name(name)} cannot have the role {role}: it is a model for "
            f"{', '.join(able)}"
        )
    found, known = pipeline_class(path), pipelines_of(role)
    if family == _FAMILY and known and found not in known:
        raise InvalidRequestError(
            f"model {display_name(name)} cannot have the role {role} (got "
            f"{found or 'no pipeline'}, allowed: {', '.join(known)})"
        )


def pipelines_of(role: str) -> tuple[str, ...]:
    """Return the classes of pipelines that can have a role; empty if any can.

    Example:
        >>> from polymux.models.roles import pipelines_of
        >>> pipelines_of("picture:A")
        ('StableDiffusionXLPipeline', 'StableDiffusionPipeline')
    """
    request = request_of(role)
    return () if request is None else _PIPELINES.get(request[0], ())


def own_defaults(
    roles: Iterable[str], steps: int | None, guidance: float | None
) -> dict[str, dict[str, Any]]:
    """Return the `defaults` of a manifest: the fields with steps and guidance for each role.

    Example:
        >>> from polymux.models.roles import own_defaults
        >>> own_defaults(["picture:B"], 25, 4.0)
        {'picture:B': {'num_inference_steps': 25, 'guidance_scale': 4.0}}
    """
    found: dict[str, dict[str, Any]] = {}
    for role in roles:
        operation = (request_of(role) or ("",))[0]
        names = _OWN_FIELDS.get(operation, ("num_inference_steps", "guidance_scale"))
        values = dict(zip(names, (steps, guidance), strict=True))
        found[role] = {name: one for name, one in values.items() if one is not None}
    return found


@cache
def default_fields(role: str) -> Mapping[str, DefaultField] | None:
    """Return the fields for which a model in a role may have its own values.

    The bounds are the widest of the operation's variants. None for unknown roles.

    Example:
        >>> from polymux.models.roles import default_fields
        >>> sorted(default_fields("music")), default_fields("songs")
        (['denoising', 'guidance_scale', 'num_inference_steps'], None)
    """
    if role not in ROLES:
        return None
    request = request_of(role)
    if request is None:
        return {}
    found = {"guidance_scale": _MUSIC_GUIDANCE} if request[0] == "generate_music" else {}
    for variant in contract.operation(request[0]).variants:
        for one in variant.fields:
            if one.name not in _DEFAULT_FIELDS or one.minimum is None or one.maximum is None:
                continue
            before = found.get(one.name, DefaultField(one.minimum, one.maximum, is_whole=True))
            found[one.name] = DefaultField(
                min(before.smallest, one.minimum),
                max(before.largest, one.maximum),
                is_whole=before.is_whole and one.type == "integer",
            )
    return found


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
        models: For each assigned role, ``path``, ``name`` and ``family``; also ``parts`` (option to
            path) if the model has several files, ``instead_of`` if it is not the default model,
            ``is_small`` (True) if it is a small model without an assignment,
            ``version`` if the files' hashes are known, and from the model's manifest
            ``native_size``, ``vae_factor``, ``base_model`` and the role's ``defaults``.
        problems: For each unassigned role, the reason and the remedy.
    """

    models: dict[str, dict[str, Any]]
    problems: dict[str, str]


def assign_models(
    wanted: Mapping[str, Any], folder: ModelsFolder | None = None, family: str = _FAMILY
) -> ModelAssignment:
    """Assign installed models to the roles of an engine.

    `wanted` has the model names or paths from the engine's settings. If a role gets another model
    than its default, jobs report this in their logs. Roles whose models another engine runs have a
    problem.

    Raises:
        InvalidRequestError: `wanted` is not a table of roles and models, or has an unknown role.
        ModelError: The file with the assignments of ``polymux models use`` is invalid.
    """
    folder = folder or ModelsFolder()
    if not isinstance(wanted, Mapping):
        raise InvalidRequestError(
            f"models: must be a table of roles and models (got {shown(wanted)})"
        )
    for name, model in wanted.items():
        if model is not None and not isinstance(model, (str, os.PathLike)):
            raise InvalidRequestError(
                f"models.{name}: must be the name or path of a model (got {shown(model)})"
            )
        if name not in ROLES:
            raise InvalidRequestError(
                f"models: unknown role {shown(name)} (known: {', '.join(ROLES)})"
            )
    used, small = folder.uses(), _small_models(folder)
    models: dict[str, dict[str, Any]] = {}
    problems: dict[str, str] = {}
    for role, about in ROLES.items():
        named = str(wanted.get(role) or used.get(role) or "")
        if not named and family != _FAMILY:
            problems[role] = (
                f"no model of the engine {family} is assigned to the role {role}. Run 'polymux "
                f"models use NAME --for {role}'"
            )
            continue
        found = _found(named or about.model, role, folder, family)
        if isinstance(found, dict) and found["family"] != family:
            problems[role] = _of_other_engine(found["name"], found["family"])
            continue
        if isinstance(found, str):
            if used.get(role) and not wanted.get(role):
                found += (
                    ". 'polymux models use' assigned it to this role. Run "
                    f"'polymux models use --for {role}' to use the default choice"
                )
            is_chosen = named or folder.find(about.model) is not None
            if is_chosen or role not in small:
                problems[role] = found
                continue
            found = {**_described(small[role], role), "is_small": True}
        models[role] = found
        if found["name"] != about.model:
            found["instead_of"] = about.model
    return ModelAssignment(models, problems)


def _of_other_engine(name: str, family: str) -> str:
    about = FAMILIES[family]
    remedy = "" if about.is_installed else f". Install that engine: {about.remedy}"
    return f"model {name} has this role, and runs on the engine {family}{remedy}"


def _small_models(folder: ModelsFolder) -> dict[str, Installed]:
    """Return the first usable small model of each role."""
    found: dict[str, Installed] = {}
    for one in folder.installed():
        if not unfit(one, _FAMILY):
            for role in one.manifest.fallback_roles:
                found.setdefault(role, one)
    return found


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


def _found(
    named: str, role: str, folder: ModelsFolder, family: str = _FAMILY
) -> dict[str, Any] | str:
    """Return a model for a role, or the reason why it cannot be used.

    A path is a model of the given family.
    """
    if not is_name(named):
        path = Path(named).expanduser()
        if not path.exists():
            return f"directory not found: {path.name!r}"
        try:
            known = manifest.read(path / manifest.FILE_NAME)
        except ModelError as error:
            return str(error)
        try:
            plain = _files(path, family) | {"name": path.stem if path.is_file() else path.name}
        except (InvalidRequestError, InputNotFoundError, InputUnreadableError):
            return f"{path.name!r} is not a {family} model, or it cannot be read"
        return plain if known is None else plain | _from_manifest(known, role)
    found = folder.find(named)
    if found is None:
        return _missing(named)
    if problem := unfit(found, found.family if found.family in FAMILIES_WITH_ROLES else family):
        return problem
    if found.family == _FAMILY and found.manifest.paths["model"] != ".":
        return f"model {named} is a LoRA, which cannot be used on its own"
    return _described(found, role)


def _files(path: Path, family: str) -> dict[str, Any]:
    """Return the facts about the files of a model that is not installed.

    Raises:
        InvalidRequestError: It is not a model of the family.
    """
    if family == _FAMILY:
        return {"path": os.fspath(path), "family": family}
    found = layout_of(path, family)
    paths = {key: os.fspath(found.folder / one) for key, one in found.paths.items()}
    return _parts(paths) | {"family": family}


def _parts(paths: Mapping[str, str]) -> dict[str, Any]:
    """Return the main file of a model, and the others."""
    others = {key: one for key, one in paths.items() if key != "model"}
    return {"path": paths["model"], **({"parts": others} if others else {})}


def _described(model: Installed, role: str) -> dict[str, Any]:
    """Return the facts about an installed model that its engine needs in a role."""
    version = _version(model)
    options = model.engine_options()
    return {
        **_parts({key: options[key] for key in model.manifest.paths}),
        "name": model.name,
        "family": model.family,
        **({"version": version} if version else {}),
        **_from_manifest(model.manifest, role),
    }


def _from_manifest(known: Manifest, role: str) -> dict[str, Any]:
    facts = {
        "native_size": known.native_size and list(known.native_size),
        "vae_factor": known.vae_factor,
        "base_model": known.base_model,
        "defaults": dict(known.defaults.get(role, {})),
    }
    return {name: one for name, one in facts.items() if one}


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
    known = registry.find(name)
    if known is not None:
        about = {
            "yes": "",
            "limited": f". Its license, {known.license}, limits commercial use",
            "no": f". Its license, {known.license}, forbids commercial use",
        }[known.commercial_use]
        return f"model {name} is not installed. Run 'polymux models pull {name}'{about}"
    return (
        f"model {name} is not installed. Run 'polymux models add {name} DIR' to use your own model"
    )


def _version(found: Installed) -> str:
    """Return the SHA-256 of the largest file, which has the main weights, if it is known."""
    largest = max(found.manifest.files, key=lambda one: one.bytes, default=None)
    return "" if largest is None else largest.sha256
