"""`polymux keys`: manage the API keys of a server."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from polymux._util.text import shown
from polymux.cli import JSON_ARRAY, add_quiet
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import EPILOG, ExitCode, say
from polymux.cli.serve import add_data_dir, settings_of
from polymux.cli.terminal import write_json, write_line
from polymux.errors import InvalidRequestError, PolymuxError
from polymux.server.auth.api_keys import LARGEST_QUOTA, KeyFile, known_scopes
from polymux.service.job_table import moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.cli import Parser
    from polymux.server.auth.api_keys import Key

_Number = TypeVar("_Number", int, float)
_DAY_S = 86400.0
_ALL = "all"
_NONE = "none"
_QUOTAS = {
    "requests_per_minute": "requests_per_minute",
    "concurrent": "concurrent",
    "max_estimate": "max_estimate_s",
}


def describe(parser: Parser) -> None:
    parser.description = (
        "Manage the API keys of a server.\nA key's secret is shown only once, when the key is "
        "created; the server stores only a SHA-256 hash of it.\nA running server applies changes "
        "at once."
    )
    parser.epilog = EPILOG
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    add = actions.add_parser("add", help="create an API key and print its secret")
    add.add_argument("name", metavar="NAME", type=_name, help="Name of the key")
    _add_rights(add, float, int)
    listed = actions.add_parser("list", help="list API keys (secrets are hidden)")
    listed.add_argument("--json", action="store_true", help=JSON_ARRAY)
    change = actions.add_parser(
        "update",
        help="change the name, scopes, quotas or expiry of a key",
        description="Change the given properties of a key. The secret stays the same. --scope "
        "replaces all scopes. The value 'none' removes a quota or the expiry.",
        argument_default=argparse.SUPPRESS,
    )
    change.add_argument("key", metavar="NAME_OR_ID", help="Name or ID of the key")
    change.add_argument("--name", metavar="NAME", type=_name, help="New name of the key")
    _add_rights(change, _number_or_none, _count_or_none)
    revoke = actions.add_parser("rm", help="revoke an API key")
    rotate = actions.add_parser("rotate", help="replace an API key and print the new secret")
    for one in (revoke, rotate):
        one.add_argument("key", metavar="NAME_OR_ID", help="Name or ID of the key")
    for action in actions.choices.values():
        action.add_argument(
            "--config", metavar="FILE", default=None, help="Server configuration file (TOML)"
        )
        add_data_dir(action)
        if action is not listed:
            add_quiet(action)
        action.set_defaults(run=run_keys)


def _add_rights(action: argparse.ArgumentParser, number: Any, count: Any) -> None:
    action.add_argument(
        "--scope",
        metavar="OPERATION",
        action="append",
        help="Name of an operation that the key may use, or 'predictions' (jobs), 'metrics', "
        "'openapi', 'docs' or "
        "'administration'; repeatable; 'all' allows everything (default for a new key)",
    )
    action.add_argument(
        "--requests-per-minute", metavar="N", type=number, help="Maximum requests per minute"
    )
    action.add_argument("--concurrent", metavar="N", type=count, help="Maximum parallel requests")
    estimate = action.add_argument(
        "--max-estimate",
        metavar="SECONDS",
        type=number,
        help="Maximum estimated duration of a request, for engines that estimate it",
    )
    add_old_option(action, "--longest-estimate", estimate)
    action.add_argument(
        "--expires",
        metavar="DAYS",
        type=number,
        help="Days until the key expires (default for a new key: never)",
    )


def _name(text: str) -> str:
    """Validate a key's name with the rule of the HTTP API."""
    from polymux.server.routes.api_keys import key_values

    try:
        return str(key_values({"name": text}, now=0.0)["name"])
    except PolymuxError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number_or_none(text: str) -> float | None:
    return _or_none(text, float, "a number")


def _count_or_none(text: str) -> int | None:
    return _or_none(text, int, "an integer")


def _or_none(text: str, kind: Callable[[str], _Number], allowed: str) -> _Number | None:
    try:
        return None if text == _NONE else kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid value (got {shown(text)}, allowed {allowed} or 'none')"
        ) from None


def run_keys(options: argparse.Namespace) -> int:
    """Run an action on keys. Return the exit code."""
    file = KeyFile(settings_of(options).key_file)
    if options.action == "list":
        _list(file.keys(), as_json=options.json)
    elif options.action == "rm":
        gone = file.remove(options.key)
        if not options.quiet:
            write_line(f"key {gone.id} ({gone.name}) revoked")
    elif options.action == "update":
        _change(file, options)
    else:
        if options.action == "add":
            text, key = file.add(options.name, **_rights(vars(options)))
        else:
            text, key = file.rotate(options.key)
        # Only the secret goes to standard output, for scripts.
        write_line(text)
        if not options.quiet:
            say(f"key {key.id} ({key.name}); the secret is not shown again")
    return ExitCode.SUCCESS


def _change(file: KeyFile, options: argparse.Namespace) -> None:
    given = vars(options)
    values = _rights(given)
    if "name" in given:
        values["name"] = options.name
    if not values:
        raise InvalidRequestError(
            "nothing to change. Use --name, --scope, --expires or a quota option"
        )
    changed = file.change(options.key, **values)
    if not options.quiet:
        write_line(_line(_plain(changed)))


def _rights(given: dict[str, Any]) -> dict[str, Any]:
    """Return the given scopes, quotas and expiry as attributes of a key.

    Raises:
        InvalidRequestError: A scope is unknown, or a number is out of range.
    """
    found: dict[str, Any] = {}
    if "scope" in given:
        found["scopes"] = _scopes(given["scope"])
    for name, attribute in _QUOTAS.items():
        if name in given:
            found[attribute] = _bounded(name, given[name])
    if "expires" in given:
        days = _bounded("expires", given["expires"])
        found["expires_at"] = None if days is None else time.time() + days * _DAY_S
    return found


def _scopes(given: list[str] | None) -> tuple[str, ...] | None:
    if given is None or given == [_ALL]:
        return None
    known = known_scopes()
    scopes = [scope.replace("-", "_") for scope in given]  # Completion suggests commands.
    for scope in scopes:
        if scope not in known:
            raise InvalidRequestError(
                f"--scope: unknown scope {shown(scope)} (known: {', '.join(sorted(known))})"
            )
    return tuple(dict.fromkeys(scopes))


def _bounded(name: str, value: Any) -> Any:
    if value is not None and not 0 < value <= LARGEST_QUOTA:
        raise InvalidRequestError(
            f"--{name.replace('_', '-')}: out of range (got {value:g}, allowed above 0, "
            f"at most {LARGEST_QUOTA:,})"
        )
    return value


def _plain(key: Key) -> dict[str, Any]:
    """Return a key's data without its hash."""
    one = {name: value for name, value in asdict(key).items() if name != "sha256"}
    one["longest_estimate_s"] = key.max_estimate_s  # Deprecated name, until 0.3.
    times = {"created_at": moment(key.created_at), "expires_at": moment(key.expires_at)}
    return one | times


def _line(plain: dict[str, Any]) -> str:
    scopes = "all" if plain["scopes"] is None else ",".join(plain["scopes"])
    quotas = [
        f"  {attribute.removesuffix('_s').replace('_', ' ')} {plain[attribute]:g}"
        for attribute in _QUOTAS.values()
        if plain[attribute] is not None
    ]
    end = plain["expires_at"] or "never"
    return f"{plain['id']}  {plain['name']}  scopes {scopes}{''.join(quotas)}  expires {end}"


def _list(keys: tuple[Key, ...], *, as_json: bool) -> None:
    plain = [_plain(key) for key in keys]
    if as_json:
        write_json(plain)
        return
    for one in plain:
        write_line(_line(one))
