"""Options for the connection to a server, and clients for a server or this computer."""

from __future__ import annotations

import argparse
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, shown
from polymux.cli import errors
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import ConfigurationError, hide, invalid_configuration
from polymux.client.options import MAX_GENERATION_S
from polymux.config import checked_base_url, config_path, configuration, prefers_local
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.client.async_client import AsyncClient
    from polymux.client.methods.synchronous import Operations
    from polymux.client.sync_client import Client
    from polymux.config import Configuration

KEY_HELP = """\
The server's URL comes from --server, then POLYMUX_BASE_URL, then base_url in the configuration file
(POLYMUX_CONFIG, by default polymux/config.toml in $XDG_CONFIG_HOME or ~/.config). The API key comes
from POLYMUX_API_KEY, then api_key in that file. It is never an option, because other users can see
command lines. Instead of --ca-file, --client-certificate and --server-proxy, you can set
POLYMUX_CA_FILE, POLYMUX_CLIENT_CERTIFICATE and POLYMUX_PROXY, or ca_file, client_certificate and
proxy in that file.

"""
LOCAL_HELP = """\
With --local, an engine on this machine runs the operation without a server. 'polymux doctor' lists
the installed engines. With local = true in the configuration file, this is the default unless you
set --server or POLYMUX_BASE_URL.

"""


def add_arguments(parser: argparse.ArgumentParser, *, where: str = "", local: bool = False) -> None:
    """Add `--server` and the options of the connection; `where` is the help of `--server`.

    With `local`, also add `--local`.
    """
    group = parser.add_argument_group("server")
    if local:
        group.add_argument(
            "--local",
            action=argparse.BooleanOptionalAction,
            help="Run with a local engine, without a server (default: the key local in the "
            "configuration file)",
        )
    group.add_argument("--server", metavar="URL", help=where or "URL of the server; see below")
    group.add_argument(
        "--timeout",
        dest="deadline_s",
        type=_seconds,
        metavar="SECONDS",
        help="Total timeout, including the wait for a job",
    )
    group.add_argument(
        "--retries",
        type=_count,
        metavar="N",
        help="Maximum number of retries (default: 2)",
    )
    group.add_argument(
        "--ca-file", metavar="FILE", help="CA certificates that verify the server (PEM)"
    )
    group.add_argument(
        "--client-certificate", metavar="FILE", help="Client certificate with its key (PEM)"
    )
    # Not --proxy: some operations have a field `proxy`, which is used by the server.
    group.add_argument(
        "--server-proxy",
        metavar="URL",
        help="Proxy for connections to the server, such as http://HOST:PORT or socks5h://HOST:PORT",
    )


def is_local(options: argparse.Namespace) -> bool:
    """Return whether to run locally: as `--local` says, else as the configuration file says.

    Raises:
        ConfigurationError: The configuration file is invalid.
    """
    if options.local is not None or options.server is not None:
        return bool(options.local)
    with invalid_configuration():
        return prefers_local()


def add_max_generation(parser: argparse.ArgumentParser) -> None:
    """Add the limit on the estimated duration of local generations."""
    seconds = parser.add_argument(
        "--max-generation",
        dest="max_generation_s",
        type=_seconds_or_none,
        metavar="SECONDS",
        help="With --local: maximum estimated time of a generation, or 'none' for no limit "
        f"(default: {MAX_GENERATION_S:g})",
    )
    add_old_option(parser, "--longest-generation", seconds)


def refuse_without_server(
    options: argparse.Namespace, why: str, *, has_deadline: bool = True
) -> None:
    """Reject options that have no effect without a server.

    Args:
        options: Parsed command line with the options of `add_arguments`.
        why: End of the message, such as "requires --server".
        has_deadline: Whether `--timeout` applies without a server.

    Raises:
        InvalidRequestError: Such an option was given.
    """
    of_server = {
        "--timeout": None if has_deadline else options.deadline_s,
        "--retries": options.retries,
        "--ca-file": options.ca_file,
        "--client-certificate": options.client_certificate,
        "--server-proxy": options.server_proxy,
    }
    given = [name for name, value in of_server.items() if value is not None]
    if given:
        raise InvalidRequestError(f"{', '.join(given)}: {why}")


def _seconds(text: str, allowed: str = "a number of seconds above 0") -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"invalid value (got {shown(text)}, allowed {allowed})")
    return seconds


def _seconds_or_none(text: str) -> float:
    return math.inf if text == "none" else _seconds(text, "a number of seconds above 0, or none")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 3 or int(text) > 100:
        raise argparse.ArgumentTypeError(
            f"invalid value (got {shown(text)}, allowed an integer from 0 to 100)"
        )
    return int(text)


@contextmanager
def answering(options: argparse.Namespace, command: str) -> Iterator[Operations]:
    """Yield a `Local` with `--local`, else the client of `connected`.

    Raises:
        ConfigurationError: See `connected`.
        InvalidRequestError: `--local` and options of a server were used together.
    """
    max_s = getattr(options, "max_generation_s", None)
    if not options.local:
        if max_s is not None:
            raise InvalidRequestError(
                "--max-generation: requires --local. A server has its own limit"
            )
        with connected(options, command) as client:
            yield client
        return
    from polymux.local.sync_local import Local
    from polymux.runtime.settings import configured_engines

    if options.server is not None:
        raise InvalidRequestError("--local and --server cannot be used together")
    refuse_without_server(options, "cannot be used with --local, which uses no server")
    if not getattr(options, "wait_for_end", True):
        raise InvalidRequestError("--local and --no-wait cannot be used together")
    errors.is_done_here()
    with invalid_configuration():
        configured_engines()
    with Local(max_generation_s=max_s or MAX_GENERATION_S) as local:
        yield local


@contextmanager
def connected(options: argparse.Namespace, command: str) -> Iterator[Client]:
    """Yield a client with the settings of the options, the environment and the configuration file.

    Args:
        options: Parsed command line with the options of `add_arguments`.
        command: The command that needs the server, for messages.

    Raises:
        ConfigurationError: No server is configured, or the configuration is invalid.
        InvalidRequestError: `--server` is not a URL.
    """
    arguments = _client_arguments(options, command)
    from polymux.client.sync_client import Client

    with Client(**arguments) as client:
        yield client


def async_client(options: argparse.Namespace, command: str) -> AsyncClient:
    """Return an asyncio client like that of `connected`. The caller closes it.

    Raises:
        ConfigurationError: See `connected`.
        InvalidRequestError: See `connected`.
    """
    arguments = _client_arguments(options, command)
    from polymux.client.async_client import AsyncClient

    return AsyncClient(**arguments)


def _client_arguments(options: argparse.Namespace, command: str) -> dict[str, Any]:
    found = _configuration(options.server, command, local=hasattr(options, "local"))
    return {
        "base_url": found.base_url,
        "api_key": found.api_key,
        "chat_model": found.chat_model,
        "timeout": options.deadline_s,
        "retry": options.retries,
        "verify": _file("--ca-file", options.ca_file or found.ca_file) or True,
        "client_certificate": _file(
            "--client-certificate", options.client_certificate or found.client_certificate
        ),
        "proxy": options.server_proxy or found.proxy,
    }


def _file(option: str, path: str | None) -> str | None:
    """Return the path if the file is readable. OpenSSL's errors would not name the file."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - `pathlib` raises other errors
            file.read(1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"{option}: cannot read '{display_name(path)}': {reason}"
        raise ConfigurationError(message) from None
    return path


def _configuration(server: str | None, command: str, *, local: bool) -> Configuration:
    if server is not None:
        server = checked_base_url(server, "--server")
    try:
        found = configuration(server)
    except InvalidRequestError as error:
        if error.code != "no_server":
            raise ConfigurationError(error.message) from None
        raise ConfigurationError(
            f"no server configured for 'polymux {command}'. Use --server URL, set "
            f"POLYMUX_BASE_URL, or set base_url in {config_path()}"
            + (". With --local, or local = true in that file, no server is needed" if local else "")
        ) from None
    hide(found.api_key)
    return found
