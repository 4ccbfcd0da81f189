"""The MCP server over standard input and output, for a client that starts this process."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp import MCPError
from mcp.server.stdio import stdio_server

from polymux.client.methods.results import RESULTS
from polymux.local.home import LocalHome
from polymux.mcp.executor import LocalExecutor
from polymux.mcp.protocol import Visitor, make_server
from polymux.mcp.tools import MAX_JSON_BYTES
from polymux.service import job_table
from polymux.service.model import LOCAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from polymux.contract import Operation
    from polymux.mcp.executor import ToolExecutor
    from polymux.mcp.files import Folders, Input
    from polymux.mcp.protocol import Context
    from polymux.mcp.tools import Arguments
    from polymux.service.job_table import Job
    from polymux.service.media_store import StoredFile

#: Key of our request for the client's roots and of its answer.
_ROOTS = "roots"
_ROOTS_WITHIN_S = 30.0
_MAX_WAITING_LINES = 16


async def serve(executor: ToolExecutor, folders: Folders) -> None:
    """Serve until standard input ends or SIGTERM arrives; then cancel running calls.

    Raises:
        asyncio.CancelledError: SIGTERM arrived.
    """
    server = make_server(executor, StdioFrontend(folders))
    loop, serving = asyncio.get_running_loop(), asyncio.current_task()
    assert serving is not None  # noqa: S101 - this is a coroutine
    loop.add_signal_handler(signal.SIGTERM, serving.cancel)
    try:
        lines: Any = _Lines()
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


class _Lines:
    """Reads the lines of standard input in a daemon thread.

    The reader of the SDK cannot be canceled: SIGTERM would wait for the client's next line.
    Replaces standard input by /dev/null, for the processes started from here on.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(_MAX_WAITING_LINES)
        self._descriptor = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        threading.Thread(target=self._read, name="polymux mcp input", daemon=True).start()

    def _read(self) -> None:
        with suppress(RuntimeError, OSError), os.fdopen(self._descriptor, "rb") as file:
            while True:
                line = file.readline()
                # Waits for free space in the queue. Raises RuntimeError if the loop has ended.
                asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()
                if not line:
                    return

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")


@asynccontextmanager
async def local_executor(
    folder: str | os.PathLike[str] | None = None,
) -> AsyncIterator[ToolExecutor]:
    """Create an executor that uses the engines of this machine, as `polymux.Local` does.

    Args:
        folder: Where to store results. Default: a temporary folder, deleted at the end.
    """
    home = LocalHome(folder, None, None)

    def uri_of(file: StoredFile) -> str:
        return home.store.media.path_of(file).as_uri()

    def address(name: str) -> str | None:
        file = home.store.media.find(name)
        return None if file is None else uri_of(file)

    def answer_of(job: Job) -> Any:
        if RESULTS[job.operation] == "Prediction":
            return job_table.prediction(job, address)
        return job_table.linked(job.output, address)

    await home.service.start()
    try:
        yield LocalExecutor(lambda: home.service, answer_of, uri_of)
    finally:
        await home.service.close()
        await asyncio.to_thread(home.remove)


class StdioFrontend:
    """The only client of a stdio server; it may read files of this machine."""

    file_words = (
        "The path of a file on this machine, or its content as a data URL (data:TYPE;base64,DATA)."
    )

    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    def visitor(self, context: Context) -> Visitor:
        return Visitor(LOCAL, f"mcp-{context.request_id}", lambda _: True, {})

    def arguments(
        self, context: Context, params: types.CallToolRequestParams
    ) -> Mapping[str, Any] | None:
        del context
        return params.arguments

    def max_json_bytes(self, operation: Operation) -> int:
        del operation
        return MAX_JSON_BYTES

    def max_file_bytes(self, operation: Operation) -> int | None:
        del operation
        return None  # The files belong to the user.

    def check_place(self, context: Context) -> None:
        """Do nothing: there is no limit."""

    async def files(
        self, context: Context, params: types.CallToolRequestParams, arguments: Arguments
    ) -> Mapping[str, Input] | types.InputRequiredResult:
        """Open files of this machine in readable folders."""
        roots = None
        if arguments.files and _announces_roots(context):
            found = await _roots(context, params)
            if isinstance(found, types.InputRequiredResult):
                return found
            roots = [path for one in found.roots if (path := _folder(one)) is not None]
        return {
            name: await asyncio.to_thread(self._folders.input, name, text, roots)
            for name, text in arguments.files.items()
        }


def _announces_roots(context: Context) -> bool:
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


async def _roots(
    context: Context, params: types.CallToolRequestParams
) -> types.ListRootsResult | types.InputRequiredResult:
    """Request the client's roots: during the call, or with the answer in later versions."""
    if context.session.can_send_request:
        try:
            return await context.session.send_request(
                types.ListRootsRequest(), types.ListRootsResult, _ROOTS_WITHIN_S
            )
        except (MCPError, ValueError):
            return types.ListRootsResult(roots=[])  # Announced but not sent: treat as empty.
    given = (params.input_responses or {}).get(_ROOTS)
    if isinstance(given, types.ListRootsResult):
        return given
    return types.InputRequiredResult(input_requests={_ROOTS: types.ListRootsRequest()})


def _folder(root: types.Root) -> Path | None:
    parts = urlsplit(str(root.uri))
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))
