"""Options of the commands that speak to a server, and what answers them: it, or this computer."""

from __future__ import annotations

import argparse
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, shown
from polymux.cli import errors
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import ConfigurationError, hide
from polymux.client.options import MAX_GENERATION_S
from polymux.config import checked_base_url, config_path, configuration
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.client.async_client import AsyncClient
    from polymux.client.methods.synchronous import Operations
    from polymux.client.sync_client import Client
    from polymux.config import Configuration

KEY_HELP = """\
The server's address comes from --server, then POLYMUX_BASE_URL, then base_url in the configuration
file (POLYMUX_CONFIG, else polymux/config.toml in the folder of configurations). Its key comes from
POLYMUX_API_KEY, then api_key in that file: never from the command line, which others can see.
--ca-file, --client-certificate, --server-proxy have the variables POLYMUX_CA_FILE,
POLYMUX_CLIENT_CERTIFICATE and POLYMUX_PROXY, and ca_file, client_certificate and proxy in the file.
With --local there is no server: engines that are installed here do it ('polymux doctor').

"""


def add_arguments(parser: argparse.ArgumentParser, *, where: str = "", local: bool = False) -> None:
    """Adds `--server` and what goes with it; `where` is what the address is for.

    With `local` also `--local`, where it can be done without a server.
    """
    group = parser.add_argument_group("server")
    if local:
        group.add_argument(
            "--local", action="store_true", help="without a server, by the engines that are here"
        )
    group.add_argument("--server", metavar="URL", help=where or "its address; default: see below")
    group.add_argument(
        "--timeout",
        dest="deadline_s",
        type=_seconds,
        metavar="SECONDS",
        help="that everything may take, waiting for a job included",
    )
    group.add_argument(
        "--retries",
        type=_count,
        metavar="N",
        help="how often a request is sent again at most (default: 2)",
    )
    group.add_argument(
        "--ca-file", metavar="FILE", help="of the certificates (PEM) that the server is trusted by"
    )
    group.add_argument(
        "--client-certificate", metavar="FILE", help="to show to the server, with its key (PEM)"
    )
    # Operations that search have a field `proxy`, which is the server's way and not ours.
    group.add_argument(
        "--server-proxy", metavar="URL", help="on the way to the server: http or socks"
    )


def add_max_generation(parser: argparse.ArgumentParser) -> None:
    """Adds what lets work be done here that will take long."""
    seconds = parser.add_argument(
        "--max-generation",
        dest="max_generation_s",
        type=_seconds_or_none,
        metavar="SECONDS",
        help="with --local: refuse what is thought to take longer (default: "
        f"{MAX_GENERATION_S:g}); 'none' for no limit",
    )
    add_old_option(parser, "--longest-generation", seconds)


def refuse_without_server(
    options: argparse.Namespace, instead: str, *, has_deadline: bool = True
) -> None:
    """Refuses options that are of no use where no server is asked.

    Args:
        options: Parsed; with what `add_arguments` adds.
        instead: What to do then, for the message.
        has_deadline: Whether what is done here ends at `--timeout`.

    Raises:
        InvalidRequestError: One was given.
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
        raise InvalidRequestError(f"no use for {', '.join(given)}: {instead}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{shown(text)} is no number of seconds above 0")
    return seconds


def _seconds_or_none(text: str) -> float:
    return math.inf if text == "none" else _seconds(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 3 or int(text) > 100:
        raise argparse.ArgumentTypeError(f"{shown(text)} is no whole number from 0 to 100")
    return int(text)


@contextmanager
def answering(options: argparse.Namespace, command: str) -> Iterator[Operations]:
    """What `connected` gives; with `--local` a `Local`, which has the same operations.

    Raises:
        ConfigurationError: As `connected`.
        InvalidRequestError: `--local` together with options of a server.
    """
    max_s = getattr(options, "max_generation_s", None)
    if not options.local:
        if max_s is not None:
            raise InvalidRequestError(
                "--max-generation is for --local: a server has limits of its own"
            )
        with connected(options, command) as client:
            yield client
        return
    from polymux.local.sync_local import Local

    if options.server is not None:
        raise InvalidRequestError("--local asks no server: leave out --server")
    refuse_without_server(options, "--local asks no server, leave it out")
    if not getattr(options, "wait_for_end", True):
        raise InvalidRequestError("--local ends with its command: leave out --no-wait")
    errors.is_done_here()
    with Local(max_generation_s=max_s or MAX_GENERATION_S) as local:
        yield local


@contextmanager
def connected(options: argparse.Namespace, command: str) -> Iterator[Client]:
    """A client as the options, the environment and the configuration file want it.

    Args:
        options: Parsed; with what `add_arguments` adds.
        command: What needs it, for messages.

    Raises:
        ConfigurationError: No server is named, or the configuration is wrong.
        InvalidRequestError: `--server` is no address.
    """
    arguments = _client_arguments(options, command)
    from polymux.client.sync_client import Client

    with Client(**arguments) as client:
        yield client


def async_client(options: argparse.Namespace, command: str) -> AsyncClient:
    """What `connected` gives, for an event loop; its user closes it.

    Raises:
        ConfigurationError: As `connected`.
        InvalidRequestError: As `connected`.
    """
    arguments = _client_arguments(options, command)
    from polymux.client.async_client import AsyncClient

    return AsyncClient(**arguments)


def _client_arguments(options: argparse.Namespace, command: str) -> dict[str, Any]:
    found = _configuration(options.server, command)
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
    """The path, where a file can be read there: OpenSSL's words would not name it."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - `pathlib` refuses paths in words of its own
            file.read(1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"{option}: cannot read '{display_name(path)}': {reason}"
        raise ConfigurationError(message) from None
    return path


def _configuration(server: str | None, command: str) -> Configuration:
    if server is not None:
        server = checked_base_url(server, "--server")
    try:
        found = configuration(server)
    except InvalidRequestError as error:
        if error.code != "no_server":
            raise ConfigurationError(error.message) from None
        raise ConfigurationError(
            f"'polymux {command}' needs a server: give --server URL, set POLYMUX_BASE_URL, or "
            f"write base_url into {config_path()}; operations also take --local, where this "
            "computer has an engine for them"
        ) from None
    hide(found.api_key)
    return found
