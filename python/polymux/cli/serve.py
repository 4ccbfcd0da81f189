"""`polymux serve` and `config`: a server, and what it was told."""

from __future__ import annotations

import argparse
from typing import Any

from polymux.cli import exit_codes, keys
from polymux.cli.errors import say
from polymux.cli.server import settings_of
from polymux.cli.terminal import write_line

#: Settings to the options that are checked like them.
_CHECKED = {"allowed_origins": "--allow-origin", "port": "--port", "public_url": "--public-url"}


def add_commands(commands: Any) -> None:
    """Describes the commands to argparse."""
    serve = commands.add_parser(
        "serve",
        help="serve the whole interface over HTTP",
        description="Serves the whole interface over HTTP until SIGTERM or Ctrl-C. On a loopback "
        "address the first start makes a key that commands of this account find by themselves.",
        epilog=exit_codes.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve.add_argument("--config", metavar="FILE", help="settings in TOML; read again at SIGHUP")
    serve.add_argument("--host", help="address to listen on; default 127.0.0.1")
    serve.add_argument("--port", type=int, help="port; 0 takes any that is free; default 8000")
    serve.add_argument("--public-url", metavar="URL", help="what links to files begin with")
    serve.add_argument("--store", metavar="FOLDER", help="where jobs, files and keys are kept")
    serve.add_argument("--tls-cert", metavar="FILE", help="certificate, PEM")
    serve.add_argument("--tls-key", metavar="FILE", help="its key, PEM")
    serve.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        help="web page that may ask; repeatable",
    )
    serve.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help="have a Ray cluster do the work: HOST:PORT, 'local' for a Ray of the server's own; "
        "without ADDRESS, as [ray] says, else 'auto': the one that this machine is part of",
    )
    levels = ("debug", "info", "warning", "error")
    serve.add_argument("--log", choices=levels, default="info", help="what is logged; default info")
    serve.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="lines of text, or a JSON object on each line; default text",
    )
    serve.set_defaults(run=run_serve)
    keys.add_commands(commands)
    config = commands.add_parser("config", help="check the settings of a server")
    actions = config.add_subparsers(metavar="ACTION", dest="action", required=True)
    check = actions.add_parser("check", help="say what is wrong with a file of settings")
    check.add_argument("file", metavar="FILE")
    check.set_defaults(run=run_config_check)


def run_serve(options: argparse.Namespace) -> int:
    """Serves; the exit code."""
    from polymux.server import signals

    signals.hold_reload()  # Before what takes long: a reload must not end what is being started.
    from dataclasses import replace
    from pathlib import Path

    from polymux._util.settings import rules_of
    from polymux.errors import InvalidRequestError

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
        from polymux.ray.settings import RaySettings

        ray = settings.ray or RaySettings()
        settings = replace(settings, ray=replace(ray, address=options.ray or ray.address))
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise InvalidRequestError("--tls-cert and --tls-key must be used together")
    from polymux import server

    _ = server.create_app  # Says what is missing, where something is.
    from polymux.server import run

    run.set_up_logging(options.log, options.log_format)
    path = None if options.config is None else Path(options.config)
    return run.serve(settings, path=path, on_ready=_tell_ready)


def _tell_ready(_: object, address: str) -> None:
    from polymux._util.gc import freeze_gc

    freeze_gc()
    say(f"serving on {address}; Ctrl-C stops it")


def run_config_check(options: argparse.Namespace) -> int:
    """Says that a file of settings is right; what is wrong is raised."""
    from pathlib import Path

    from polymux.runtime.settings import missing_files
    from polymux.server.settings.settings import read_settings

    # A server begins without them, as they may come later; who asks wants to know.
    for one in missing_files(read_settings(Path(options.file)).engines or {}):
        say(f"{one}, so far")
    write_line(f"{options.file}: nothing is wrong")
    return exit_codes.SUCCESS
