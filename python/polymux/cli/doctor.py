"""`polymux doctor` and `polymux version`: what this installation is, and what it can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.cli import exit_codes
from polymux.cli.terminal import write_json, write_line

if TYPE_CHECKING:
    import argparse

_PROGRAM_TIMEOUT_S = 5.0


def add_commands(commands: Any) -> None:
    """Describes the commands to argparse."""
    doctor = commands.add_parser(
        "doctor",
        help="show what this installation can do and what is missing",
        description="Shows what this installation can do, what is missing, and how to get it.",
        epilog="Exit code 0 when conversions work, 3 when something they need is missing.",
    )
    doctor.add_argument("--json", action="store_true", help="one JSON object")
    doctor.add_argument(
        "--config", metavar="FILE", help="settings of a server: its upstreams and songs too"
    )
    doctor.set_defaults(run=run_doctor)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=run_version)


def run_version(options: argparse.Namespace) -> int:  # noqa: ARG001 - every command takes them
    """Prints name and version."""
    from polymux._native.version import __version__

    write_line(f"polymux {__version__}")
    return exit_codes.SUCCESS


def run_doctor(options: argparse.Namespace) -> int:
    """Prints the findings; the exit code says whether conversions work."""
    found = findings(options.config)
    if options.json:
        write_json(found)
    else:
        for line in _lines(found):
            write_line(line)
    return exit_codes.SUCCESS if found["media"]["ok"] else exit_codes.MISSING_DEPENDENCY


def findings(config: str | None = None) -> dict[str, Any]:
    """What there is, as JSON-able values.

    Args:
        config: The file of a server's settings, whose upstreams are told of. Default: none.

    Raises:
        InvalidRequestError: Something in that file is wrong.
    """
    import platform

    from polymux._native.version import __version__
    from polymux.downloads.health import downloads

    return {
        "polymux": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "media": _media(),
        "ffmpeg_program": _ffmpeg_program(),
        "numpy": _has_module("numpy"),
        "engines": _engines(),
        "generation": _generation(config),
        "confinement": _confinement(),
        "server": _has_module("fastapi") and _has_module("uvicorn"),
        "mcp": _has_module("mcp"),
        "downloads": downloads(),
        "songs": _songs(config),
        "song_search": _song_search(),
        "song_recognition": _song_recognition(),
        "upstreams": [] if config is None else _upstreams(config),
    }


def _media() -> dict[str, Any]:
    from polymux.errors import MissingDependencyError

    try:
        from polymux._native.media import media
    except MissingDependencyError as error:
        return {"ok": False, "problem": str(error)}
    return {"ok": True, "cores": media.available_cores()} | media.build_info()


def _ffmpeg_program() -> dict[str, Any] | None:
    import os
    import shutil
    import subprocess

    path = shutil.which("ffmpeg")
    if path is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - the program that PATH gives, without a shell
            [path, "-hide_banner", "-version"],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_PROGRAM_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {"path": path, "version": None}
    words = os.fsdecode(done.stdout).split("\n", 1)[0].split()
    return {"path": path, "version": words[2] if len(words) > 2 else None}


def _has_module(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


#: Engine to what it does, the module or program that it needs, and how to get that.
_ENGINES = {
    "chat": ("chats", "xllamacpp", "pip install 'polymux[chat]'"),
    "speech": ("speech to text", "faster_whisper", "pip install 'polymux[speech]'"),
    "rapidocr": ("text from pictures", "rapidocr", "pip install 'polymux[ocr]'"),
    "tesseract": ("text from pictures", "tesseract", "apt install tesseract-ocr"),
    "upscale": ("larger pictures", "ncnn", "pip install 'polymux[upscale]'"),
}


def _engines() -> dict[str, Any]:
    import shutil

    found = {}
    for name, (does, needs, remedy) in _ENGINES.items():
        program = needs == "tesseract"
        ok = shutil.which(needs) is not None if program else _has_module(needs)
        found[name] = {"ok": ok, "does": does, "remedy": remedy} | _models_of(name)
    return found


def _models_of(engine: str) -> dict[str, Any]:
    """The names of an engine's models, and one to pull; nothing for an engine that needs none."""
    from polymux.models import catalogue
    from polymux.models.families import FAMILIES
    from polymux.models.folder import ModelsFolder

    if engine not in FAMILIES:
        return {}
    names = [
        one.name for one in ModelsFolder().installed() if one.family == engine and not one.problem
    ]
    recommended = catalogue.recommended(engine)
    return {"models": names, "pull": recommended and recommended.name}


def _generation(config: str | None) -> dict[str, Any]:
    """By the models that the settings of an engine for it name, where they name one."""
    from pathlib import Path

    from polymux.models.health import generation

    if config is None:
        return generation()
    from polymux.server.settings.settings import read_settings

    engines = read_settings(Path(config)).engines or {}
    named = [one.options.get("models") for one in engines.values() if one.family == "diffusion"]
    return generation(named[0] if named else None)


def _songs(config: str | None) -> dict[str, Any]:
    from pathlib import Path

    from polymux.songs.health import songs

    if config is None:
        return songs()
    from polymux.server.settings.settings import read_settings

    return songs(read_settings(Path(config)).songs.catalogue)


def _song_search() -> dict[str, Any]:
    """The catalogues that settings can name; without any named, none is asked."""
    from polymux.upstreams.song_search.settings import PROVIDERS

    return {"providers": list(PROVIDERS), "remedy": "[song_search], see docs/song-search.md"}


def _song_recognition() -> dict[str, Any]:
    """Those that settings can name for the song of a recording; without any, none is asked."""
    from polymux.upstreams.song_recognition.settings import PROVIDERS

    return {
        "providers": list(PROVIDERS),
        "remedy": "[song_recognition], see docs/song-recognition.md",
    }


def _upstreams(config: str) -> list[dict[str, Any]]:
    """The upstreams that settings name, and whether their keys are there; none is asked."""
    from pathlib import Path

    from polymux.errors import InvalidRequestError
    from polymux.server.settings.settings import read_settings

    found = []
    for name, one in read_settings(Path(config)).upstreams.items():
        told: dict[str, Any] = {"name": name, "kind": one.kind, "does": list(one.does)}
        try:
            told |= {"ok": True, "key": one.key(name) is not None}
        except InvalidRequestError as error:
            told |= {"ok": False, "problem": str(error)}
        found.append(told)
    return found


def _upstream_line(one: dict[str, Any]) -> str:
    if not one["ok"]:
        return f"missing  {one['problem']}"
    key = "with a key" if one["key"] else "without a key"
    return f"ok       the upstream {one['name']} ({one['kind']}, {key}): {', '.join(one['does'])}"


def _confinement() -> list[str]:
    from subprocess import TimeoutExpired

    from polymux.engines.process.sandbox import tried

    try:
        return tried()
    except (OSError, ValueError, TimeoutExpired):
        return []


def _confinement_lines(in_force: list[str]) -> list[str]:
    """Of what opens strangers' files, and of processes with models: those keep their files."""
    from polymux.engines.process.sandbox import NO_NETWORK, NO_TCP

    files = [one for one in in_force if one.startswith("landlock")]
    network = [one for one in in_force if one in (NO_NETWORK, NO_TCP)]
    remedy = (
        "Landlock wants Linux 5.13, and 6.7 to deny TCP; a network namespace the right to make one"
    )
    grade = "ok      "
    if not (files and network):
        grade = "absent  "
    elif NO_TCP in network:
        grade, remedy = "partly  ", "UDP is open: a network namespace wants the right to make one"
    words = ", ".join(files + network) or "nothing"
    lines = [f"{grade} confinement of what opens strangers' files: {words}"]
    if not network:
        lines.append("absent   models' processes without a network: theirs is open")
    else:
        grade = "ok      " if NO_NETWORK in network else "partly  "
        lines.append(f"{grade} models' processes without a network: {network[0]}")
    if NO_NETWORK not in network or not files:
        lines[0] += f" ({remedy})"
    return lines


def _with_models(engine: dict[str, Any]) -> str:
    if "models" not in engine:
        return ""
    if engine["models"]:
        return f", with {', '.join(engine['models'])}"
    return f", once it has a model ('polymux models pull {engine['pull']}')"


def _lines(found: dict[str, Any]) -> list[str]:
    from polymux.downloads import health
    from polymux.models import health as generation
    from polymux.songs import health as songs

    media, program = found["media"], found["ffmpeg_program"]
    lines = [
        f"polymux {found['polymux']} on Python {found['python']}, {found['system']}",
        "",
    ]
    if media["ok"]:
        ffmpeg = media["ffmpeg"]
        lines += [
            "ok       conversion to MP3, probing and decoding",
            f"         FFmpeg {ffmpeg['ffmpeg']} ({media['ffmpeg_license']}), {media['lame']}",
            f"         cores in use: {media['cores']}",
        ]
    else:
        lines.append(f"missing  {media['problem']}")
    if program is None:
        lines.append(
            "absent   the ffmpeg program (not needed to convert; the tests compare with it: "
            "on Debian and Ubuntu 'apt install ffmpeg')"
        )
    else:
        lines.append(f"ok       the ffmpeg program {program['version']} at {program['path']}")
    if found["numpy"]:
        lines.append("ok       NumPy, for PcmAudio.to_numpy")
    else:
        lines.append("absent   NumPy (only PcmAudio.to_numpy needs it: 'pip install numpy')")
    for name, engine in found["engines"].items():
        if engine["ok"]:
            lines.append(f"ok       the engine {name}: {engine['does']}{_with_models(engine)}")
        else:
            lines.append(f"absent   the engine {name}: {engine['does']} ('{engine['remedy']}')")
    lines += generation.lines(found["generation"])
    lines += _confinement_lines(found["confinement"])
    lines.append(
        "ok       the server"
        if found["server"]
        else "absent   the server ('pip install polymux[server]')"
    )
    lines.append(
        "ok       the Model Context Protocol: 'polymux mcp', and /mcp of servers"
        if found["mcp"]
        else "absent   the Model Context Protocol: 'polymux mcp', and /mcp of servers "
        "('pip install polymux[mcp]')"
    )
    lines += health.lines(found["downloads"])
    lines += songs.lines(found["songs"])
    for what, others in (
        ("search", found["song_search"]),
        ("recognition", found["song_recognition"]),
    ):
        lines.append(
            f"off      song {what}, but where settings name "
            f"{', '.join(others['providers'])} ({others['remedy']})"
        )
    lines += [_upstream_line(one) for one in found["upstreams"]]
    return lines
