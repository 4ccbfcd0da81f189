"""`polymux serve` and `polymux config`: run a server and check its settings."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.memory import freeze_gc
from polymux._util.settings import rules_of
from polymux.cli import add_quiet
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import EPILOG, ExitCode, invalid_configuration, say
from polymux.cli.terminal import write_line
from polymux.config import config_path
from polymux.errors import InvalidRequestError
from polymux.ray.settings import RaySettings
from polymux.runtime.settings import StoreSettings, configured_engines, missing_files
from polymux.server import signals
from polymux.server.settings.settings import ServerSettings, read_settings

if TYPE_CHECKING:
    import argparse

    from polymux.cli import Parser

_log = logging.getLogger("polymux.server")
#: Maps settings to options that are validated with the same rules.
_CHECKED = {"allowed_origins": "--allow-origin", "port": "--port", "public_url": "--public-url"}


def describe(parser: Parser) -> None:
    parser.description = (
        "Start the HTTP server. Stop it with SIGTERM or Ctrl-C.\nOn a loopback address, the first "
        "start creates an API key that\ncommands of the same user account find automatically."
    )
    parser.epilog = EPILOG
    parser.add_argument(
        "--config", metavar="FILE", help="Configuration file (TOML); SIGHUP reloads it"
    )
    parser.add_argument("--host", help="IP address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, help="Port to listen on; 0 selects a free one (default: 8000)"
    )
    parser.add_argument("--public-url", metavar="URL", help="Base URL of links to output files")
    add_data_dir(parser)
    parser.add_argument("--tls-cert", metavar="FILE", help="TLS certificate (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="TLS private key (PEM)")
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        help="Web origin that may use the API (CORS); repeatable",
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help="Run the operations on a Ray cluster: HOST:PORT, 'auto' for the cluster of this "
        "machine, or 'local' to start one for this server (without ADDRESS: the address in [ray] "
        "of the configuration file, else auto)",
    )
    levels = ("debug", "info", "warning", "error")
    parser.add_argument(
        "--log",
        choices=levels,
        help="Minimum log level (default: info, or error with --quiet)",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="Log format: text lines, or one JSON object per line (default: text)",
    )
    add_quiet(parser)
    parser.set_defaults(run=run_serve)


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Add `--data-dir`, which `settings_of` reads."""
    data_dir = parser.add_argument(
        "--data-dir",
        metavar="DIR",
        default=None,
        help="Data directory for jobs, files and keys (default: folder of [store] in the "
        "configuration file)",
    )
    add_old_option(parser, "--store", data_dir)


def describe_config(parser: Parser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    check = actions.add_parser("check", help="validate a configuration file")
    check.add_argument("file", metavar="FILE", help="Configuration file (TOML)")
    add_quiet(check)
    check.set_defaults(run=run_config_check)


def run_serve(options: argparse.Namespace) -> int:
    """Run the server. Return the exit code."""
    signals.hold_reload()  # First: SIGHUP would otherwise end the process during startup.
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

    _ = server.lifespan  # Raises an error that names the extra `server` if it is missing.
    from polymux.engines.process.sandbox import protect_server
    from polymux.server import run

    run.set_up_logging(options.log or ("error" if options.quiet else "info"), options.log_format)
    protect_server()
    if os.geteuid() == 0:
        _log.warning(
            "the server runs as root, so a defect in a library could reach everything. Run it "
            "under a separate account"
        )
    path = None if options.config is None else Path(options.config)
    if settings.engines is None:
        with invalid_configuration():
            configured = configured_engines()
        if configured:
            _log.info("engines of %s: %s", config_path(), ", ".join(configured))

    def on_ready(server: run.Server, address: str) -> None:
        freeze_gc()
        if options.quiet:
            return
        say(f"serving on {address}; Ctrl-C stops it")
        # On a terminal only: elsewhere, standard error is often stored as a log.
        if server.local_key is not None and sys.stderr.isatty():
            say(f"sign in to the web UI: {address}/page/#key={server.local_key}")

    return run.serve(settings, path=path, adds_local_key=True, on_ready=on_ready)


def run_config_check(options: argparse.Namespace) -> int:
    """Validate a configuration file; problems are raised."""
    # A server starts without these files, because they may appear later. Here they are reported.
    with invalid_configuration():
        settings = read_settings(Path(options.file))
    missing = missing_files(settings.engines or {})
    if not options.quiet:
        for one in missing:
            say(f"{one} (the server starts anyway)")
        write_line(f"{options.file}: valid")
    return ExitCode.SUCCESS


def settings_of(options: argparse.Namespace) -> ServerSettings:
    """Return the settings of ``--config`` and ``--data-dir``."""
    if options.config is None and options.data_dir is not None:
        return ServerSettings(store=StoreSettings(Path(options.data_dir)))
    with invalid_configuration():
        path = options.config
        settings = ServerSettings() if path is None else read_settings(Path(path))
    if options.data_dir is not None:
        store = replace(settings.store, folder=Path(options.data_dir))
        settings = replace(settings, store=store)
    return settings
