"""Selection of the model that an engine loads, and instructions if it is missing.

Model names become paths only here, before the options are sent to the engine's process.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import did_you_mean, display_name, sentences
from polymux.engines.registry import ENGINES
from polymux.models import registry
from polymux.models.families import FAMILIES, is_name
from polymux.models.folder import ModelsFolder
from polymux.models.roles import (
    FAMILIES_WITH_ROLES,
    assign_models,
    loras_of,
    needed_roles,
    possible,
    unfit,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.models.folder import Installed

#: Operations that need the extra `download`.
_DOWNLOADS = ("download_video", "download_music", "summarize_video")
#: The usual values of request fields that name a model.
_MOSTLY = {"sd_model": "juggernaut_reborn", "video_model": "xl"}
#: The variant of a request that names none.
_FIRST = "A"


class Chosen(NamedTuple):
    """The options for loading an engine.

    Attributes:
        options: Options of the engine; models are paths.
        problem: Why it cannot be loaded, with a remedy; empty if it can.
        model: Name of the installed model that the options load; empty for other files and roles.
    """

    options: dict[str, Any]
    problem: str = ""
    model: str = ""


def chosen(family: str, options: Mapping[str, Any], folder: ModelsFolder | None = None) -> Chosen:
    """Return the options of an engine with the path of the named or default model.

    A name of an installed model takes precedence over a file of that name in the current directory.
    A value with a slash is a path and is not changed. Given options take precedence over those of
    the model.
    """
    if family not in FAMILIES:
        return Chosen(dict(options))
    folder = folder or ModelsFolder()
    if FAMILIES[family].has_roles:
        return _cast(family, options, folder)
    wanted = options.get("model")
    if wanted is None or wanted == "":
        found = folder.default(family)
        problem = f"no {family} model is installed: {_pull(family)}"
    elif is_name(wanted):
        found = folder.find(wanted)
        if found is None and Path(wanted).exists():
            return Chosen(dict(options))
        problem = _not_installed(family, wanted)
    else:
        return Chosen(dict(options))
    if found is None:
        return Chosen(dict(options), problem)
    if problem := unfit(found, family):
        return Chosen(dict(options), problem)
    own = {name: one for name, one in options.items() if name != "model"}
    named = {"aliases": [found.name]} if family == "chat" else {}
    return Chosen({**named, **found.engine_options(), **own}, model=found.name)


def _cast(family: str, options: Mapping[str, Any], folder: ModelsFolder) -> Chosen:
    """Return the options of an engine with roles: the model of each role, and the LoRAs."""
    found = assign_models(options.get("models") or {}, folder, family)
    made = {**options, "models": found.models}
    if family == "diffusion":
        made["loras"] = {**loras_of(folder), **(options.get("loras") or {})}
    upscaler = folder.default("upscale") if FAMILIES["upscale"].is_installed else None
    if upscaler is not None and any("native_size" in one for one in found.models.values()):
        path = upscaler.engine_options()["model"]
        made["installed_upscaler"] = {"path": path, "name": upscaler.name}
    return Chosen(made, "" if found.models else f"no {family} model is installed: {_pull(family)}")


def available(folder: ModelsFolder | None = None) -> dict[str, list[Installed]]:
    """Return the usable models of installed engines by family, the default model first.

    A family with roles is included only if the roles of at least one operation are assigned.
    """
    found: dict[str, list[Installed]] = {}
    folder = folder or ModelsFolder()
    for model in folder.installed():
        about = FAMILIES.get(model.family)
        if about is not None and not model.problem and about.is_installed:
            found.setdefault(model.family, []).append(model)
    for family in [one for one in found if FAMILIES[one].has_roles]:
        if not possible(assign_models({}, folder, family).models):
            del found[family]
    return found


def remedy(operation: str, variant: str = "", values: Mapping[str, Any] | None = None) -> str:
    """Return how to make an operation available on this machine; empty if there is no way.

    Args:
        operation: Name of the operation.
        variant: For generation, ``"A"`` or another variant.
        values: Request fields that name models. Default: the usual values.

    Example:
        >>> from polymux.models.selection import remedy
        >>> remedy("parse_json")
        ''
    """
    if operation in ("search_music", "identify_song"):
        return _remedy_of_songs(operation)
    if operation in _DOWNLOADS:
        return _install("download") if find_spec("yt_dlp") is None else ""
    named = {**_MOSTLY, **(values or {})}
    roles = needed_roles(operation, variant, named)
    if roles:
        return _remedy_of_roles(operation, roles)
    for family, about in FAMILIES.items():
        if operation in about.operations:
            return (
                _remedy_of_roles(operation, needed_roles(operation, _FIRST, named))
                if about.has_roles
                else _remedy_of(family)
            )
    for about in ENGINES.values():
        if operation in about.operations and about.extra:
            return _install(about.extra) if not about.is_installed else ""
    return ""


def _remedy_of_songs(operation: str) -> str:
    from polymux.songs.settings import REMEDY
    from polymux.upstreams.song_recognition import settings as recognition
    from polymux.upstreams.song_search import settings as search

    others = search.REMEDY if operation == "search_music" else recognition.REMEDY
    return sentences(f"{REMEDY}, then restart", f"or {others}")


def _remedy_of(family: str) -> str:
    found = ModelsFolder().default(family)
    return _steps(family, [] if found else [f"no {family} model is installed: {_pull(family)}"])


def advice(operation: str) -> str:
    """Return where to find a model for a generation, and the small model for it, as a sentence."""
    from polymux.models.recommend import SMALL  # That module imports this one.

    command = operation.replace("_", "-")
    text = f"'polymux models recommend {command}' shows which models fit this machine"
    small = next((name for name, one in SMALL.items() if one[0] == operation), None)
    if small is not None:
        text += f", and \"pip install 'polymux[mini]'\" installs the small model {small}"
    return text


def _remedy_of_roles(operation: str, roles: tuple[str, ...]) -> str:
    folder = ModelsFolder()
    used = folder.find(folder.uses().get(roles[0], ""))
    family = used.family if used is not None and used.family in FAMILIES_WITH_ROLES else "diffusion"
    problems = assign_models({}, folder, family).problems
    missing = [problems[role] for role in roles if role in problems]
    return _steps(family, [*missing, advice(operation)] if missing else [])


def _steps(family: str, problems: list[str]) -> str:
    about = FAMILIES[family]
    steps = problems if about.is_installed else [_install(about.extra), *problems]
    return sentences(*steps) or (
        f"the engine {family} and its models are installed. Add [engines.{family}] to the "
        "settings, or start without [engines] tables"
    )


def _install(extra: str) -> str:
    return f"install the engine with \"pip install 'polymux[{extra}]'\""


def _pull(family: str) -> str:
    about, model = FAMILIES[family], registry.recommended(family)
    own = f"run 'polymux models add' to use your own ({about.model_form})"
    if about.has_roles:
        command = about.operations[0].replace("_", "-")
        return f"run 'polymux models recommend {command}' to find one, or {own}"
    return own if model is None else f"run 'polymux models pull {model.name}', or {own}"


def _not_installed(family: str, wanted: str) -> str:
    model = registry.find(wanted)
    if model is not None and model.family == family:
        return (
            f"{family} model {wanted} is not installed. Run 'polymux models pull {wanted}', then "
            "restart"
        )
    names = [one.name for one in registry.all_models() if one.family == family]
    names += [one.name for one in ModelsFolder().installed() if one.family == family]
    return (
        f"unknown {family} model {display_name(wanted)}{did_you_mean(wanted, names)}. Use the "
        f"name of an installed model (see "
        f"'polymux models list'), or the path of {FAMILIES[family].model_form}"
    )
