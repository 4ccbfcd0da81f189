"""`polymux serve`, `keys` and `config`: a server, who may use it, what it was told."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from polymux.cli import exit_codes
from polymux.cli.failures import say
from polymux.cli.terminal import write_json, write_line

if TYPE_CHECKING:
    from polymux.server.keys import Key
    from polymux.server.settings import ServerSettings

_DAY_S = 86400.0
_LARGEST_PORT = 65535


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
    serve.set_defaults(run=run_serve)
    _add_keys(commands)
    config = commands.add_parser("config", help="check the settings of a server")
    actions = config.add_subparsers(metavar="ACTION", dest="action", required=True)
    check = actions.add_parser("check", help="say what is wrong with a file of settings")
    check.add_argument("file", metavar="FILE")
    check.set_defaults(run=run_config_check)


def _add_keys(commands: Any) -> None:
    keys = commands.add_parser(
        "keys",
        help="make, list, change and take away keys of a server",
        description="Keys of a server. A key is shown once, when it is made; what is kept is its "
        "SHA-256. A running server sees changes at once.",
        epilog=exit_codes.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = keys.add_subparsers(metavar="ACTION", dest="action", required=True)
    add = actions.add_parser("add", help="make a key and print it")
    add.add_argument("name", metavar="NAME", help="what people call it")
    add.add_argument(
        "--scope",
        metavar="OPERATION",
        action="append",
        help="an operation that it may use, 'predictions', 'metrics' or 'administration'; "
        "repeatable; default all",
    )
    add.add_argument("--requests-per-minute", metavar="N", type=float)
    add.add_argument("--concurrent", metavar="N", type=int, help="requests at once")
    add.add_argument(
        "--longest-estimate",
        metavar="SECONDS",
        type=float,
        help="refuse what is thought to take longer, by engines that estimate",
    )
    add.add_argument("--expires", metavar="DAYS", type=float, help="end it after so many days")
    listed = actions.add_parser("list", help="show the keys, without themselves")
    listed.add_argument("--json", action="store_true", help="one JSON array")
    actions.add_parser("rm", help="take a key away").add_argument("name", metavar="NAME_OR_ID")
    actions.add_parser(
        "rotate", help="put a new key in the place of one, and print it"
    ).add_argument("name", metavar="NAME_OR_ID")
    for action in actions.choices.values():
        action.add_argument("--config", metavar="FILE", help="settings of the server")
        action.add_argument("--store", metavar="FOLDER", help="the server's folder")
        action.set_defaults(run=run_keys)


def _settings(options: argparse.Namespace) -> ServerSettings:
    from dataclasses import replace
    from pathlib import Path

    from polymux.server.settings import ServerSettings, StoreSettings, read_settings

    if options.config is None and options.store is not None:
        return ServerSettings(store=StoreSettings(Path(options.store)))
    settings = ServerSettings() if options.config is None else read_settings(Path(options.config))
    if options.store is not None:
        store = replace(settings.store, folder=Path(options.store))
        settings = replace(settings, store=store)
    return settings


def run_serve(options: argparse.Namespace) -> int:
    """Serves; the exit code."""
    from dataclasses import replace
    from pathlib import Path

    from polymux.config import checked_base_url
    from polymux.errors import InvalidRequestError

    settings = _settings(options)
    given = {
        "host": options.host,
        "port": options.port,
        "public_url": options.public_url,
        "tls_cert": options.tls_cert and Path(options.tls_cert),
        "tls_key": options.tls_key and Path(options.tls_key),
        "allowed_origins": options.allow_origin and tuple(options.allow_origin),
    }
    settings = replace(settings, **{name: one for name, one in given.items() if one is not None})
    if options.ray is not None:
        from polymux.cluster.settings import RaySettings

        ray = settings.ray or RaySettings()
        settings = replace(settings, ray=replace(ray, address=options.ray or ray.address))
    if not 0 <= settings.port <= _LARGEST_PORT:
        raise InvalidRequestError(f"--port {settings.port}: must be from 0 to {_LARGEST_PORT}")
    if options.public_url is not None:
        checked_base_url(options.public_url)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise InvalidRequestError("--tls-cert and --tls-key are given together")
    from polymux import server

    _ = server.create_app  # Says what is missing, where something is.
    from polymux.server import run

    run.set_up_logging(options.log)
    path = None if options.config is None else Path(options.config)
    return run.serve(settings, path=path, on_ready=_tell_ready)


def _tell_ready(_: object, address: str) -> None:
    from polymux._collector import spare_the_collector

    spare_the_collector()
    say(f"serving on {address}; Ctrl-C stops it")


def run_config_check(options: argparse.Namespace) -> int:
    """Says that a file of settings is right; what is wrong is raised."""
    from pathlib import Path

    from polymux.server.settings import read_settings

    read_settings(Path(options.file))
    write_line(f"{options.file}: nothing is wrong")
    return exit_codes.SUCCESS


def run_keys(options: argparse.Namespace) -> int:
    """Does what was asked with keys; the exit code."""
    from polymux.server.keys import KeyFile

    file = KeyFile(_settings(options).key_file)
    if options.action == "list":
        _list(file.keys(), as_json=options.json)
    elif options.action == "rm":
        gone = file.remove(options.name)
        write_line(f"{gone.id} ({gone.name}) opens nothing any more")
    else:
        text, key = file.rotate(options.name) if options.action == "rotate" else _add(file, options)
        # Alone on standard output, for programs; it is shown this once.
        write_line(text)
        say(f"key {key.id} ({key.name}); it is not shown again")
    return exit_codes.SUCCESS


def _add(file: Any, options: argparse.Namespace) -> tuple[str, Key]:
    import time

    from polymux._text import shown
    from polymux.errors import InvalidRequestError
    from polymux.server.keys import LARGEST_QUOTA, known_scopes

    known = known_scopes()
    for scope in options.scope or ():
        if scope not in known:
            raise InvalidRequestError(
                f"--scope {shown(scope)}: there is {', '.join(sorted(known))}"
            )
    limits = ("requests_per_minute", "concurrent", "longest_estimate", "expires")
    for name in limits:
        value = getattr(options, name)
        if value is not None and not 0 < value <= LARGEST_QUOTA:
            raise InvalidRequestError(
                f"--{name.replace('_', '-')} {value:g}: must be above 0, and at most "
                f"{LARGEST_QUOTA:,}"
            )
    end = None if options.expires is None else time.time() + options.expires * _DAY_S
    made: tuple[str, Key] = file.add(
        options.name,
        scopes=None if options.scope is None else tuple(options.scope),
        requests_per_minute=options.requests_per_minute,
        concurrent=options.concurrent,
        longest_estimate_s=options.longest_estimate,
        expires_at=end,
    )
    return made


def _list(keys: tuple[Key, ...], *, as_json: bool) -> None:
    from dataclasses import asdict

    from polymux.service.records import moment

    plain = []
    for key in keys:
        one = {name: value for name, value in asdict(key).items() if name != "sha256"}
        times = {"created_at": moment(key.created_at), "expires_at": moment(key.expires_at)}
        plain.append(one | times)
    if as_json:
        write_json(plain)
        return
    for one in plain:
        scopes = "all" if one["scopes"] is None else ",".join(one["scopes"])
        end = one["expires_at"] or "never"
        write_line(f"{one['id']}  {one['name']}  scopes {scopes}  expires {end}")
