"""`polymux mcp`: the operations as tools, for programs that speak the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from polymux import mcp
from polymux._util.text import display_name
from polymux.cli import Terminated, errors, server
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import EPILOG, ExitCode, say
from polymux.errors import InvalidRequestError, MissingDependencyError
from polymux.mcp.files import Folders

if TYPE_CHECKING:
    import argparse

    from polymux.cli import Parser

_EPILOG = """\
A client starts this command and speaks to it over standard input and output;
docs/integrations/mcp.md has its configuration. Everything is done on this computer unless --server
names one that does it; a server is never taken from the environment here, so that no file leaves
this computer unasked. Its key comes from POLYMUX_API_KEY, then api_key in the configuration file.

Files are read from the folders that the client announces as its roots, else from the current
folder; with --folder from those instead of the current one. Results are kept until the command
ends; with --output-dir they stay.

"""


def describe(parser: Parser) -> None:
    """Describes the command to argparse."""
    parser.description = (
        "Serves the operations as tools of the Model Context Protocol over standard "
        "input and output, until the input ends."
    )
    parser.epilog = _EPILOG + EPILOG
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        action="append",
        default=[],
        help="files may be read from here; repeatable; default: the current folder",
    )
    output = parser.add_argument(
        "--output-dir", metavar="FOLDER", help="keep what was made in this folder, beyond the end"
    )
    add_old_option(parser, "--keep", output)
    server.add_arguments(parser, where="have it done by this server; default: done here")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serves; the exit code."""
    if not mcp.is_installed():
        raise MissingDependencyError(
            f"the Model Context Protocol needs its SDK: install it with {mcp.REMEDY}"
        )
    if options.server is None:
        instead = "no server is named, give --server"
        server.refuse_without_server(options, instead, has_deadline=False)
    if options.server is not None and options.output_dir is not None:
        raise InvalidRequestError("--output-dir is for what is made here: leave out --server")
    folders = [_folder(one) for one in options.folder]
    if sys.stdin.isatty():
        say("a client of the Model Context Protocol starts this and speaks to it; Ctrl-D ends it")
    try:
        asyncio.run(_serve(options, folders))
    except asyncio.CancelledError:
        raise Terminated from None
    return ExitCode.SUCCESS


def _folder(text: str) -> Path:
    path = Path(os.path.expanduser(text)).absolute()  # noqa: PTH111 - leaves what Path raises for
    if not path.is_dir():
        raise InvalidRequestError(f"--folder {display_name(text)}: there is no such folder")
    return path


async def _serve(options: argparse.Namespace, folders: list[Path]) -> None:
    # They need the SDK, which is an extra.
    from polymux.mcp import stdio
    from polymux.mcp.executor import remote_executor

    if options.server is None:
        errors.is_done_here()
        executor = stdio.local_executor(options.output_dir)
    else:
        executor = remote_executor(server.async_client(options, "mcp"))
    async with executor as ready:
        await stdio.serve(ready, Folders(folders, Path.cwd()))
