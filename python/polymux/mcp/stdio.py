"""The MCP server over standard input and output, for a client that starts this process."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

import mcp_types as types
from anyio import BrokenResourceError, ClosedResourceError
from mcp import MCPError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import RootModel, ValidationError

from polymux.client.methods.results import RESULTS
from polymux.local.home import LocalHome
from polymux.mcp import batches
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
        answers = _Answers()
        lines: Any = _Lines(answers)
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            answers.stream = outgoing
            messages: Any = _Messages(incoming, answers)
            sent: Any = answers
            await server.run(messages, sent, server.create_initialization_options())
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


class _Lines:
    """Reads the lines of standard input in a daemon thread.

    The reader of the SDK cannot be canceled: SIGTERM would wait for the client's next line.
    Replaces standard input by /dev/null, for the processes started from here on.
    """

    def __init__(self, answers: _Answers) -> None:
        self._answers = answers
        self._split: deque[str] = deque()
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
        while not self._split:
            line = await self._lines.get()
            if not line:
                raise StopAsyncIteration
            if batches.is_batch(line):
                self._split.extend(await self._answers.split(line))
            elif line.strip():
                self._answers.note(line)
                return line.decode("utf-8", "replace")
        return self._split.popleft()


class _Messages:
    """The messages of the client for the SDK, which ignores invalid ones: answers these itself."""

    def __init__(self, stream: Any, answers: _Answers) -> None:
        self._stream = stream
        self._answers = answers

    def __aiter__(self) -> _Messages:
        return self

    async def __anext__(self) -> SessionMessage:
        async for item in self._stream:
            if isinstance(item, SessionMessage):
                await self._answers.forget_canceled(item.message)
                return item
            await self._answers.refuse(item)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Array(RootModel[list[types.JSONRPCMessage]]):
    """The answers to a batch."""


class _Answers:
    """The messages of the SDK for the client. Joins the answers to a batch.

    Attributes:
        stream: The SDK's stream to standard output.
    """

    stream: Any

    def __init__(self) -> None:
        self._version: str | None = None
        #: The answers so far of the batch that contained the request with this id.
        self._waiting: dict[types.RequestId, list[types.JSONRPCMessage]] = {}

    def note(self, line: bytes) -> None:
        """Note the protocol version if the line is the client's handshake."""
        self._version = batches.requested_version(line) or self._version

    async def split(self, line: bytes) -> list[str]:
        """Return the messages of a batch as lines."""
        batch = batches.read_batch(line, self._version)
        if isinstance(batch, types.JSONRPCError):
            await self._write(batch)
            return []
        messages, failed = batches.checked(batch, self._waiting)
        answers: list[types.JSONRPCMessage] = [*failed]
        requests = [one for one in messages if isinstance(one, types.JSONRPCRequest)]
        self._waiting.update((batches.key_of(one.id), answers) for one in requests)
        await self._end(answers)
        return [one.model_dump_json(by_alias=True, exclude_unset=True) for one in messages]

    async def refuse(self, error: Exception) -> None:
        """Answer a line that is not a message."""
        if isinstance(error, ValidationError) and error.errors()[0]["type"] != "json_invalid":
            await self._write(batches.invalid("the line is not a JSON-RPC message"))
        else:
            await self._write(batches.no_json())

    async def forget_canceled(self, message: types.JSONRPCMessage) -> None:
        """Stop waiting for the answer to a canceled request, which the SDK does not send."""
        if (
            isinstance(message, types.JSONRPCNotification)
            and message.method == "notifications/cancelled"
            and message.params
        ):
            number = message.params.get("requestId")
            if isinstance(number, bool) or not isinstance(number, int | str):
                return
            answers = self._waiting.pop(batches.key_of(number), None)
            if answers is not None:
                await self._end(answers)

    async def send(self, item: SessionMessage) -> None:
        answers = self._batch_of(item.message)
        if answers is None:
            await self.stream.send(item)
        else:
            answers.append(item.message)
            await self._end(answers)

    def _batch_of(self, message: types.JSONRPCMessage) -> list[types.JSONRPCMessage] | None:
        """Return the answers of the batch that waits for this one."""
        if (
            isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
            and message.id is not None
        ):
            return self._waiting.pop(batches.key_of(message.id), None)
        return None

    async def _end(self, answers: list[types.JSONRPCMessage]) -> None:
        """Send the answers to a batch if none is missing."""
        if answers and not any(one is answers for one in self._waiting.values()):
            await self._write(_Array(answers))

    async def _write(self, answer: Any) -> None:
        with suppress(BrokenResourceError, ClosedResourceError):  # The connection has ended.
            await self.stream.send(SessionMessage(answer))

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


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
