"""`polymux mcp`: serve the operations as MCP tools (Model Context Protocol)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from polymux import mcp
from polymux._util.text import display_name
from polymux.cli import Terminated, add_quiet, errors, server
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import EPILOG, ExitCode, say
from polymux.errors import InvalidRequestError, MissingDependencyError
from polymux.mcp.files import Folders

if TYPE_CHECKING:
    import argparse

    from polymux.cli import Parser

_EPILOG = """\
An MCP client starts this command and communicates over standard input and output. See
docs/integrations/mcp.md for the client's configuration. Operations run on this machine unless you
set --server. POLYMUX_BASE_URL is ignored here, so that files do not leave this machine by accident.
The server's API key comes from POLYMUX_API_KEY, then from api_key in the configuration file.

Tools may read files in the directories of --allow-dir and in those that the client announces as
its roots. For a client that does not support roots, the default of --allow-dir is the current
directory. Results are deleted when the command ends, unless you set --output-dir.

"""


def describe(parser: Parser) -> None:
    parser.description = (
        "Serve the operations as tools of the Model Context Protocol (MCP) over standard input\n"
        "and output, until the input ends."
    )
    parser.epilog = _EPILOG + EPILOG
    allowed = parser.add_argument(
        "--allow-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="Directory whose files tools may read; repeatable (default: see below)",
    )
    add_old_option(parser, "--folder", allowed)
    output = parser.add_argument(
        "--output-dir", metavar="DIR", help="Directory in which to keep results"
    )
    add_old_option(parser, "--keep", output)
    add_quiet(parser)
    server.add_arguments(parser, where="URL of the server to use (default: run locally)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until the input ends. Return the exit code."""
    if not mcp.is_installed():
        raise MissingDependencyError(
            f"missing dependency: the Model Context Protocol SDK. Run: {mcp.REMEDY}"
        )
    if options.server is None:
        server.refuse_without_server(options, "requires --server", has_deadline=False)
    if options.server is not None and options.output_dir is not None:
        raise InvalidRequestError("--output-dir and --server cannot be used together")
    folders = [_folder(one) for one in options.allow_dir]
    if sys.stdin.isatty() and not options.quiet:
        say("waiting for an MCP client on standard input; press Ctrl-D to stop")
    try:
        asyncio.run(_serve(options, folders))
    except asyncio.CancelledError:
        raise Terminated from None
    return ExitCode.SUCCESS


def _folder(text: str) -> Path:
    path = Path(os.path.expanduser(text)).absolute()  # noqa: PTH111 - Path.expanduser can raise
    if not path.is_dir():
        raise InvalidRequestError(f"--allow-dir: directory not found: {display_name(text)}")
    return path


async def _serve(options: argparse.Namespace, folders: list[Path]) -> None:
    # Imported here because they need the optional SDK.
    from polymux.mcp import stdio
    from polymux.mcp.executor import remote_executor

    if options.server is None:
        errors.is_done_here()
        executor = stdio.local_executor(options.output_dir)
    else:
        executor = remote_executor(server.async_client(options, "mcp"))
    async with executor as ready:
        await stdio.serve(ready, Folders(folders, Path.cwd()))
