"""`polymux serve` and `config`: a server, and what it was told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.memory import freeze_gc
from polymux._util.settings import rules_of
from polymux.cli.errors import EPILOG, ExitCode, say
from polymux.cli.terminal import write_line
from polymux.errors import InvalidRequestError
from polymux.ray.settings import RaySettings
from polymux.runtime.settings import StoreSettings, missing_files
from polymux.server import signals
from polymux.server.settings.settings import ServerSettings, read_settings

if TYPE_CHECKING:
    import argparse

    from polymux.cli import Parser

#: Settings to the options that are checked like them.
_CHECKED = {"allowed_origins": "--allow-origin", "port": "--port", "public_url": "--public-url"}


def describe(parser: Parser) -> None:
    """Describes `polymux serve` to argparse."""
    parser.description = (
        "Serves the whole interface over HTTP until SIGTERM or Ctrl-C. On a loopback "
        "address the first start makes a key that commands of this account find by themselves."
    )
    parser.epilog = EPILOG
    parser.add_argument("--config", metavar="FILE", help="settings in TOML; read again at SIGHUP")
    parser.add_argument("--host", help="address to listen on; default 127.0.0.1")
    parser.add_argument("--port", type=int, help="port; 0 takes any that is free; default 8000")
    parser.add_argument("--public-url", metavar="URL", help="what links to files begin with")
    parser.add_argument("--store", metavar="FOLDER", help="where jobs, files and keys are kept")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="its key, PEM")
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        help="web page that may ask; repeatable",
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help="have a Ray cluster do the work: HOST:PORT, 'local' for a Ray of the server's own; "
        "without ADDRESS, as [ray] says, else 'auto': the one that this machine is part of",
    )
    levels = ("debug", "info", "warning", "error")
    parser.add_argument(
        "--log", choices=levels, default="info", help="what is logged; default info"
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="lines of text, or a JSON object on each line; default text",
    )
    parser.set_defaults(run=run_serve)


def describe_config(parser: Parser) -> None:
    """Describes `polymux config` to argparse."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    check = actions.add_parser("check", help="say what is wrong with a file of settings")
    check.add_argument("file", metavar="FILE")
    check.set_defaults(run=run_config_check)


def run_serve(options: argparse.Namespace) -> int:
    """Serves; the exit code."""
    signals.hold_reload()  # Before what takes long: a reload must not end what is being started.
    settings = settings_of(options)
    given = {
        "host": options.host,
        "port": options.port,
        "public_url": options.public_url,
        "tls_cert": options.tls_cert and Path(options.tls_cert),
        "tls_key": options.tls_key and Path(options.tls_key),
        "allowed_origins": options.allow_origin and tuple(options.allow_origin),
    }
    given = {name: value for name, value in given.items() if value is not None}
    for name, flag in _CHECKED.items():
        if name in given:
            rules_of(type(settings))[name].accept(flag, given[name])
    settings = replace(settings, **given)
    if options.ray is not None:
        ray = settings.ray or RaySettings()
        settings = replace(settings, ray=replace(ray, address=options.ray or ray.address))
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise InvalidRequestError("--tls-cert and --tls-key must be used together")
    from polymux import server

    _ = server.lifespan  # Names the extra `server` if it is missing.
    from polymux.server import run

    run.set_up_logging(options.log, options.log_format)
    path = None if options.config is None else Path(options.config)
    return run.serve(settings, path=path, on_ready=_tell_ready)


def _tell_ready(_: object, address: str) -> None:
    freeze_gc()
    say(f"serving on {address}; Ctrl-C stops it")


def run_config_check(options: argparse.Namespace) -> int:
    """Says that a file of settings is right; what is wrong is raised."""
    # A server begins without them, as they may come later; who asks wants to know.
    for one in missing_files(read_settings(Path(options.file)).engines or {}):
        say(f"{one}, so far")
    write_line(f"{options.file}: nothing is wrong")
    return ExitCode.SUCCESS


def settings_of(options: argparse.Namespace) -> ServerSettings:
    """The settings that ``--config`` and ``--store`` name."""
    if options.config is None and options.store is not None:
        return ServerSettings(store=StoreSettings(Path(options.store)))
    settings = ServerSettings() if options.config is None else read_settings(Path(options.config))
    if options.store is not None:
        store = replace(settings.store, folder=Path(options.store))
        settings = replace(settings, store=store)
    return settings
