"""The tools and resources as an MCP server, built with the official SDK."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from polymux import contract, errors
from polymux._native.version import __version__
from polymux._util.redaction import redact
from polymux._util.text import shown
from polymux.mcp.answers import (
    MAX_READ_BYTES,
    encoded,
    failure_of,
    resource_of,
    result_of,
)
from polymux.mcp.executor import Call
from polymux.mcp.files import Input, check_length
from polymux.mcp.tools import described, sorted_out
from polymux.service.errors import described as described_error
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import TypeAlias

    from mcp.server.context import ServerRequestContext

    from polymux.contract import Operation
    from polymux.mcp.answers import Outcome
    from polymux.mcp.executor import ToolExecutor
    from polymux.mcp.tools import Arguments
    from polymux.service.model import Caller

    #: A request with the data that its transport attached.
    Context: TypeAlias = ServerRequestContext[Any, Any]

_log = logging.getLogger("polymux.mcp")
_MAX_LINK_CHARACTERS = 1024
_MAX_SCHEME_CHARACTERS = 20
INSTRUCTIONS = (
    "AI and media tools. Tools return their files as resources: small images and sounds inline, "
    "and all files as links. Read a link with resources/read, or pass it to another tool as an "
    "input file."
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """The client of one request.

    Attributes:
        request_id: Identifies the request in logs and errors.
        allows: Checks whether the client may use an operation.
        ends: Events that stop work early, each with a function that creates the failure.
    """

    caller: Caller
    request_id: str
    allows: Callable[[str], bool]
    ends: Mapping[asyncio.Event, Callable[[], Exception]]


class Frontend(Protocol):
    """Authenticates clients and accepts their files; differs by transport.

    Attributes:
        file_words: How to pass files, for the tool descriptions.
    """

    file_words: str

    def visitor(self, context: Context) -> Visitor: ...

    def arguments(
        self, context: Context, params: types.CallToolRequestParams
    ) -> Mapping[str, Any] | None:
        """Return the arguments of a tool call."""
        ...

    def max_json_bytes(self, operation: Operation) -> int:
        """Return the maximum size of the arguments without files."""
        ...

    def max_file_bytes(self, operation: Operation) -> int | None:
        """Return the maximum size of an input that an earlier call created; None for no limit."""
        ...

    def check_place(self, context: Context) -> None:
        """Check the limit of concurrent calls of this client.

        Raises:
            RateLimitError: The client has reached it.
        """
        ...

    async def files(
        self, context: Context, params: types.CallToolRequestParams, arguments: Arguments
    ) -> Mapping[str, Input] | types.InputRequiredResult:
        """Return the input files, or a request for information from the client.

        Raises:
            BadRequestError: A file is invalid or not allowed.
        """
        ...


def make_server(executor: ToolExecutor, frontend: Frontend) -> Server[Any]:
    """Create the SDK server with all tools and resources."""
    tools = _Tools(executor, frontend)
    resources = _Resources(executor, frontend)
    return Server(
        "polymux",
        version=__version__,
        title="polymux",
        instructions=INSTRUCTIONS,
        # No argument is sent in a header field, so the SDK needs no schema.
        get_tool_input_schema=lambda _: None,
        on_list_tools=tools.listed,
        on_call_tool=tools.call,
        on_list_resources=resources.listed,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
    )


class _Tools:
    def __init__(self, executor: ToolExecutor, frontend: Frontend) -> None:
        self._executor = executor
        self._frontend = frontend

    async def listed(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """List the tools that this client may use."""
        del params  # All tools fit on one page.
        visitor = self._frontend.visitor(context)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=one.name,
                    title=one.title,
                    description=one.description,
                    input_schema=one.schema,
                    annotations=types.ToolAnnotations(title=one.title, destructive_hint=False),
                )
                for one in described(self._frontend.file_words)
                if visitor.allows(one.name)
            ]
        )

    async def call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Run a tool; failures become error results."""
        visitor = self._frontend.visitor(context)
        operation = _named(params.name)
        try:
            if not visitor.allows(operation.name):
                raise status_error(  # noqa: TRY301 - the handler below covers all failures
                    errors.PermissionDeniedError,
                    f"permission denied: this API key does not allow {operation.name}",
                    code="forbidden",
                )
            self._frontend.check_place(context)
            arguments = sorted_out(operation, self._frontend.arguments(context, params))
            made = await self._made(visitor, arguments)
            files = await self._frontend.files(context, params, arguments.without(made))
            if isinstance(files, types.InputRequiredResult):
                return files
            call = Call(
                arguments,
                {**made, **files},
                visitor.caller,
                visitor.request_id,
                self._frontend.max_json_bytes(operation),
                _telling(context),
            )
            outcome = await _finished(self._executor.call(call), visitor.ends)
            return await result_of(operation, outcome)
        except Exception as error:
            return failure_of(_error_fields(error, visitor), visitor.request_id)

    async def _made(self, visitor: Visitor, arguments: Arguments) -> dict[str, Input]:
        """Find inputs that are links to files of the caller's earlier calls."""
        found = {}
        max_bytes = self._frontend.max_file_bytes(arguments.operation)
        for name, text in arguments.files.items():
            if len(text) <= _MAX_LINK_CHARACTERS and "://" in text[:_MAX_SCHEME_CHARACTERS]:
                made = await self._executor.find(visitor.caller, text)
                if made is not None and made.path is not None:
                    size_bytes = made.size_bytes or 0
                    check_length(name, size_bytes, max_bytes)
                    found[name] = Input(
                        made.name, made.content_type, size_bytes, path=made.path, kept=made.kept
                    )
        return found


class _Resources:
    def __init__(self, executor: ToolExecutor, frontend: Frontend) -> None:
        self._executor = executor
        self._frontend = frontend

    async def listed(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List files that this client's calls created recently."""
        visitor = self._frontend.visitor(context)
        cursor = None if params is None else params.cursor
        try:
            files, following = await self._executor.made(visitor.caller, cursor)
        except Exception as error:
            raise _protocol_error(error, visitor) from None
        return types.ListResourcesResult(
            resources=[resource_of(one) for one in files], next_cursor=following
        )

    async def templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List no templates: files have random names, which only `listed` and results contain."""
        del context, params
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read a whole file."""
        visitor = self._frontend.visitor(context)
        uri = str(params.uri)
        try:
            file = await self._executor.find(visitor.caller, uri)
            data = None if file is None else await file.read(MAX_READ_BYTES)
        except Exception as error:
            raise _protocol_error(error, visitor) from None
        if file is None:
            raise MCPError(types.INVALID_PARAMS, "unknown or expired resource")
        if data is None:
            raise MCPError(
                types.INVALID_PARAMS,
                f"the file is too large to read as a resource (limit {MAX_READ_BYTES} bytes). "
                "Download it from the link in the tool's structured answer",
            )
        contents = types.BlobResourceContents(
            uri=uri, mime_type=file.content_type, blob=encoded(data)
        )
        return types.ReadResourceResult(contents=[contents])


def _named(name: str) -> Operation:
    """Find the operation with exactly this name; aliases of operations are not tools."""
    for one in contract.operations():
        if one.name == name:
            return one
    raise MCPError(types.INVALID_PARAMS, f"unknown tool: {shown(name)}")


def _telling(context: Context) -> Callable[[float, str | None], Coroutine[Any, Any, None]]:
    async def tell(progress: float, message: str | None) -> None:
        # Does nothing if the client sent no progress token. The client may have disconnected.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await context.session.report_progress(progress, 1.0, message)

    return tell


async def _finished(
    work: Coroutine[Any, Any, Outcome], ends: Mapping[asyncio.Event, Callable[[], Exception]]
) -> Outcome:
    """Await work in a separate task, and cancel it if one of the events happens first.

    The SDK cancels what it awaits again at every step, but engines expect one cancellation.

    Raises:
        Exception: The failure of the event that happened first.
    """
    doing = asyncio.ensure_future(work)
    waiting = {asyncio.ensure_future(event.wait()): failure for event, failure in ends.items()}
    try:
        done, _ = await asyncio.wait({doing, *waiting}, return_when=asyncio.FIRST_COMPLETED)
        if doing in done:
            return doing.result()
        raise next(failure for one, failure in waiting.items() if one in done)()
    finally:
        for one in waiting:
            one.cancel()
        if not doing.done():
            doing.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({doing})
            if not doing.cancelled():
                doing.exception()


def _error_fields(error: Exception, visitor: Visitor) -> dict[str, Any]:
    fields = described_error(error)
    if fields["code"] == "internal":
        _log.error("request %s failed unexpectedly", visitor.request_id, exc_info=error)
    return fields


def _protocol_error(error: Exception, visitor: Visitor) -> MCPError:
    fields = _error_fields(error, visitor)
    code = types.INTERNAL_ERROR if fields["status"] >= 500 else types.INVALID_PARAMS
    return MCPError(code, redact(fields["message"]))
