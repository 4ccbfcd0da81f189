"""`polymux doctor`: report what this installation supports."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._native import media
from polymux._native.version import __version__
from polymux._util.text import printable, shortened
from polymux.cli import JSON
from polymux.cli.errors import ExitCode, invalid_configuration, setting
from polymux.cli.terminal import GREEN, RED, YELLOW, write_json, write_line
from polymux.config import config_path
from polymux.downloads import health as downloads_health
from polymux.engines.process.sandbox import FILTERED_CALLS, NO_NETWORK, NO_TCP, tried
from polymux.engines.registry import ENGINES, missing_library
from polymux.errors import InvalidRequestError, MissingDependencyError
from polymux.models import health as generation_health
from polymux.models import registry
from polymux.models.families import FAMILIES
from polymux.models.folder import ModelsFolder
from polymux.models.roles import assign_models
from polymux.runtime.settings import configured_engines
from polymux.server.settings.settings import read_settings
from polymux.songs import reader
from polymux.upstreams.song_recognition.settings import PROVIDERS as RECOGNITION_PROVIDERS
from polymux.upstreams.song_search.settings import PROVIDERS as SEARCH_PROVIDERS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from polymux.cli import Parser
    from polymux.engines.registry import EngineSpec
    from polymux.server.settings.settings import ServerSettings

_PROGRAM_TIMEOUT_S = 5.0
#: Importing the libraries of a model takes seconds, and longer on a busy machine.
_IMPORT_TIMEOUT_S = 60.0
_STYLES = {
    "ok": GREEN, "partly": YELLOW, "old": YELLOW, "absent": YELLOW, "missing": RED, "broken": RED,
}  # fmt: skip
#: Modules of features that are not engines.
_FEATURES = {"numpy": ("numpy",), "server": ("fastapi", "starlette"), "mcp": ("mcp",)}


def describe(parser: Parser) -> None:
    parser.description = (
        "Show what this installation supports, what is missing and how to install it."
    )
    parser.epilog = "Exit code: 0 if conversions work, 3 if a dependency for them is missing."
    parser.add_argument("--json", action="store_true", help=JSON)
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="Configuration file of a server; checks its upstreams and song index too",
    )
    parser.set_defaults(run=run_doctor)


def run_doctor(options: argparse.Namespace) -> int:
    """Print the findings. Return the exit code, which depends on conversions only."""
    found = findings(options.config)
    if options.json:
        write_json(found)
    else:
        for line in _lines(found):
            write_line(line, _STYLES.get(line.partition(" ")[0], ""))
    return ExitCode.SUCCESS if found["media"]["ok"] else ExitCode.MISSING_DEPENDENCY


def findings(config: str | None = None) -> dict[str, Any]:
    """Return the findings as JSON-compatible values.

    Args:
        config: Server configuration whose upstreams are included. Default: none.

    Raises:
        ConfigurationError: The configuration is invalid.
    """
    with invalid_configuration():
        settings = None if config is None else read_settings(Path(config))
        models = _named_models(config, settings)
    with ThreadPoolExecutor() as pool:
        features = dict(zip(_FEATURES, pool.map(_works, _FEATURES.values()), strict=True))
        tried = dict(zip(ENGINES, pool.map(_problem, ENGINES.values()), strict=True))
    return {
        "polymux": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "media": _media(),
        "ffmpeg_program": _ffmpeg_program(),
        "numpy": features["numpy"],
        "engines": _engines(tried),
        "generation": generation_health.generation(models, problem=tried["diffusion"]),
        "confinement": _confinement(),
        "server": features["server"],
        "mcp": features["mcp"],
        "downloads": downloads_health.downloads(),
        "songs": reader.health(None if settings is None else settings.songs.index_dir),
        # Providers that settings can enable. None is used by default.
        "song_search": {
            "providers": list(SEARCH_PROVIDERS),
            "remedy": "add [song_search] to the server configuration; see "
            "docs/guides/recognize-and-search-songs.md",
        },
        "song_recognition": {
            "providers": list(RECOGNITION_PROVIDERS),
            "remedy": "add [song_recognition] to the server configuration; see "
            "docs/guides/recognize-and-search-songs.md",
        },
        "upstreams": [] if settings is None else _upstreams(settings),
    }


def _media() -> dict[str, Any]:
    try:
        return {"ok": True, "cores": media.available_cores()} | media.build_info()
    except MissingDependencyError as error:
        return {"ok": False, "problem": str(error)}


def _ffmpeg_program() -> dict[str, Any] | None:
    path = shutil.which("ffmpeg")
    if path is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - ffmpeg from PATH, without a shell
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


def _works(modules: tuple[str, ...]) -> bool:
    """Return whether modules are installed and can be imported."""
    installed = all(find_spec(one) is not None for one in modules)
    return installed and not _failure(_import(modules), _IMPORT_TIMEOUT_S)


def _problem(spec: EngineSpec) -> str:
    """Try what an engine needs. Return the error of an installed engine; empty if it works."""
    if not spec.is_installed:
        return ""
    program = shutil.which(spec.program) if spec.program else None
    return _failure(_import(spec.modules, spec.preparation), _IMPORT_TIMEOUT_S) or (
        _failure([program, "--version"], _PROGRAM_TIMEOUT_S) if program else ""
    )


def _import(modules: tuple[str, ...], preparation: str = "") -> list[str]:
    # In another process, because a broken library may end it, and torch needs much memory.
    module, _, name = preparation.partition(":")
    before = f"from {module} import {name}; {name}(); " if preparation else ""
    return [sys.executable, "-P", "-c", f"{before}import {', '.join(modules)}"]


def _failure(command: list[str], timeout_s: float) -> str:
    """Run a command. Return the last line of its error; empty if it succeeds."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, no untrusted arguments
            command, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=timeout_s
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return shortened(printable(str(error)))
    if done.returncode == 0:
        return ""
    lines = os.fsdecode(done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
    return shortened(printable(lines[-1]))


def _engines(problems: dict[str, str]) -> dict[str, Any]:
    found = {}
    for name, spec in ENGINES.items():
        if name in ("media", "diffusion"):
            continue  # Reported separately.
        found[name] = {
            "ok": spec.is_installed and not problems[name],
            "does": spec.title,
            "problem": problems[name] or None,
            "remedy": missing_library(problems[name])[1] or spec.remedy,
        } | _models_of(name)
    return found


def _models_of(engine: str) -> dict[str, Any]:
    """Return an engine's models and one to pull; empty if it needs no models."""
    if engine not in FAMILIES:
        return {}
    names = [
        one.name for one in ModelsFolder().installed() if one.family == engine and not one.problem
    ]
    recommended = registry.recommended(engine)
    return {"models": names, "pull": recommended and recommended.name}


def _named_models(config: str | None, settings: ServerSettings | None) -> Mapping[str, Any]:
    """Return the models by role in the settings of a generation engine; empty for the defaults.

    Raises:
        InvalidRequestError: The settings are invalid.
    """
    engines = None if settings is None else settings.engines
    file = Path(config or "")
    if engines is None:
        file, engines = config_path(), configured_engines()
    for name, one in engines.items():
        if one.family == "diffusion":
            named: Mapping[str, Any] = one.options.get("models") or {}
            with setting(file, f"engines.{name}.options"):
                assign_models(named)
            return named
    return {}


def _upstreams(settings: ServerSettings) -> list[dict[str, Any]]:
    """Report the configured upstreams and whether their API keys exist, without any request."""
    found = []
    for name, upstream in settings.upstreams.items():
        entry: dict[str, Any] = {"name": name, "kind": upstream.kind, "does": list(upstream.does)}
        try:
            entry |= {"ok": True, "key": upstream.key(name) is not None}
        except InvalidRequestError as error:
            entry |= {"ok": False, "problem": str(error)}
        found.append(entry)
    return found


def _upstream_line(one: dict[str, Any]) -> str:
    if not one["ok"]:
        return f"missing  {one['problem']}"
    key = "with a key" if one["key"] else "without a key"
    return f"ok       upstream {one['name']} ({one['kind']}, {key}): {', '.join(one['does'])}"


def _confinement() -> list[str]:
    try:
        return tried()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []


def _confinement_lines(in_force: list[str]) -> list[str]:
    """Report the sandbox of untrusted files, and of model processes, which can read files."""
    files = [one for one in in_force if one.startswith("landlock")]
    network = [one for one in in_force if one in (NO_NETWORK, NO_TCP)]
    remedy = (
        "Landlock requires Linux 5.13, or 6.7 to block TCP; a network namespace requires privileges"
    )
    grade = "ok      "
    if not (files and network):
        grade = "absent  "
    elif NO_TCP in network:
        grade, remedy = (
            "partly  ",
            "UDP is not blocked: that requires a network namespace, which requires privileges",
        )
    words = ", ".join(files + network) or "not available"
    lines = [f"{grade} sandbox for untrusted files: {words}"]
    if not network:
        lines.append("absent   network isolation of model processes")
    else:
        grade = "ok      " if NO_NETWORK in network else "partly  "
        lines.append(f"{grade} network isolation of model processes: {network[0]}")
    if NO_NETWORK not in network or not files:
        lines[0] += f" ({remedy})"
    grade = "ok      " if FILTERED_CALLS in in_force else "absent  "
    lines.append(f"{grade} {FILTERED_CALLS} of engine processes")
    return lines


def _with_models(name: str, engine: dict[str, Any]) -> str:
    if "models" not in engine:
        return ""
    if engine["models"]:
        return f", models: {', '.join(engine['models'])}"
    if FAMILIES[name].has_roles:
        command = FAMILIES[name].operations[0].replace("_", "-")
        return f", needs a model: run 'polymux models recommend {command}'"
    return f", needs a model: run 'polymux models pull {engine['pull']}'"


def _lines(found: dict[str, Any]) -> list[str]:
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
            f"         available cores: {media['cores']}",
        ]
    else:
        lines.append(f"missing  {media['problem']}")
    if program is None:
        lines.append(
            "absent   ffmpeg program (optional: polymux converts without it; on Debian and Ubuntu: "
            "'apt install ffmpeg')"
        )
    else:
        lines.append(f"ok       ffmpeg program {program['version']} at {program['path']}")
    if found["numpy"]:
        lines.append("ok       NumPy, for PcmAudio.to_numpy")
    else:
        lines.append("absent   NumPy (only for PcmAudio.to_numpy: 'pip install numpy')")
    for name, engine in found["engines"].items():
        if engine["ok"]:
            lines.append(f"ok       engine {name}: {engine['does']}{_with_models(name, engine)}")
        else:
            grade = "broken  " if engine["problem"] else "absent  "
            problem = f"{engine['problem']}. Run: " if engine["problem"] else ""
            lines.append(f"{grade} engine {name}: {engine['does']}: {problem}{engine['remedy']}")
    lines += generation_health.lines(found["generation"])
    lines += _confinement_lines(found["confinement"])
    lines.append(
        "ok       server"
        if found["server"]
        else "absent   server (run: pip install 'polymux[server]')"
    )
    lines.append(
        "ok       Model Context Protocol: 'polymux mcp', and /mcp of servers"
        if found["mcp"]
        else "absent   Model Context Protocol: 'polymux mcp', and /mcp of servers "
        "(run: pip install 'polymux[mcp]')"
    )
    lines += downloads_health.lines(found["downloads"])
    lines += reader.health_lines(found["songs"])
    for what, others in (
        ("search", found["song_search"]),
        ("recognition", found["song_recognition"]),
    ):
        lines.append(
            f"off      song {what} by online services: {', '.join(others['providers'])} "
            f"({others['remedy']})"
        )
    lines += [_upstream_line(one) for one in found["upstreams"]]
    return lines
