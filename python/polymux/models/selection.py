"""Which model an engine is loaded with, and what to do where there is none.

The one place where a model's name becomes a path: before an engine's options reach its process.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import display_name
from polymux.engines.registry import ENGINES
from polymux.models import catalogue
from polymux.models.families import FAMILIES, is_name
from polymux.models.folder import ModelsFolder
from polymux.models.roles import assign_models, loras_of, needed_roles, possible, unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.models.folder import Installed

#: Operations that the extra `download` brings.
_DOWNLOADS = ("download_video", "download_music", "summarize_video")
#: What requests mostly name, or leave to the default.
_MOSTLY = {"sd_model": "juggernaut_reborn", "video_model": "xl"}
#: The variant that is meant where none is said.
_FIRST = "A"


class Chosen(NamedTuple):
    """What an engine is to be loaded with.

    Attributes:
        options: Of the engine; ``model`` and others as paths.
        problem: Why it cannot be loaded, and what to do; empty where it can.
    """

    options: dict[str, Any]
    problem: str = ""


def chosen(family: str, options: Mapping[str, Any], folder: ModelsFolder | None = None) -> Chosen:
    """The options of an engine, with the model that they name, or the default one.

    A name of an installed model counts before a file of that name in the current folder; what has a
    slash is a path, and left to the engine. What options say counts before what is known of the
    model.
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
    return Chosen({**named, **found.engine_options(), **own})


def _cast(family: str, options: Mapping[str, Any], folder: ModelsFolder) -> Chosen:
    """Of an engine whose models have roles: each with what plays it, and the LoRAs."""
    found = assign_models(options.get("models") or {}, folder)
    loras = {**loras_of(folder), **(options.get("loras") or {})}
    made = {**options, "models": found.models, "loras": loras}
    return Chosen(made, "" if found.models else f"no {family} model is installed: {_pull(family)}")


def available(folder: ModelsFolder | None = None) -> dict[str, list[Installed]]:
    """Family to its models that are fit, the default one first; of installed engines alone.

    One whose models have roles is there when the roles that an operation needs are played.
    """
    found: dict[str, list[Installed]] = {}
    folder = folder or ModelsFolder()
    for model in folder.installed():
        about = FAMILIES.get(model.family)
        if about is not None and not model.problem and about.is_installed:
            found.setdefault(model.family, []).append(model)
    for family in [one for one in found if FAMILIES[one].has_roles]:
        if not possible(assign_models({}, folder).models):
            del found[family]
    return found


def remedy(operation: str, variant: str = "", values: Mapping[str, Any] | None = None) -> str:
    """What would make this machine able to do an operation; empty where nothing would.

    Args:
        variant: For what generates alone, ``"A"`` or another.
        values: Of the request, for those that name a model. Default: what requests mostly name.

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
        return _remedy_of_roles(roles)
    for family, about in FAMILIES.items():
        if operation in about.operations:
            return (
                _remedy_of_roles(needed_roles(operation, _FIRST, named))
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
    return f"{REMEDY}, from the next start on; {others}"


def _remedy_of(family: str) -> str:
    found = ModelsFolder().default(family)
    return _steps(family, [] if found else [f"no {family} model is installed: {_pull(family)}"])


def _remedy_of_roles(roles: tuple[str, ...]) -> str:
    problems = assign_models({}).problems
    return _steps("diffusion", [problems[role] for role in roles if role in problems])


def _steps(family: str, problems: list[str]) -> str:
    about = FAMILIES[family]
    steps = problems if about.is_installed else [_install(about.extra), *problems]
    return "; ".join(steps) or (
        f"what the engine {family} needs is installed, so name it in the settings "
        f"([engines.{family}]), or begin again without any"
    )


def _install(extra: str) -> str:
    return f"\"pip install 'polymux[{extra}]'\" brings the engine"


def _pull(family: str) -> str:
    model = catalogue.recommended(family)
    own = f"'polymux models add' takes one of your own ({FAMILIES[family].model_form})"
    return own if model is None else f"'polymux models pull {model.name}' fetches one, and {own}"


def _not_installed(family: str, wanted: str) -> str:
    model = catalogue.find(wanted)
    if model is not None and model.family == family:
        return (
            f"the {family} model {wanted} is not installed: 'polymux models pull {wanted}' "
            "fetches it, and it is found at the next start"
        )
    return (
        f"there is no {family} model {display_name(wanted)}: neither is one of that name installed "
        f"('polymux models list' shows those), nor is it a path ({FAMILIES[family].model_form})"
    )
