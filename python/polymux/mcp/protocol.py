"""The tools and resources as a server of the official SDK."""

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
from polymux.service.errors import described as told_of
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

    #: A request, with what its transport has put beside it.
    Context: TypeAlias = ServerRequestContext[Any, Any]

_log = logging.getLogger("polymux.mcp")
_MAX_LINK_CHARACTERS = 1024
_MAX_SCHEME_CHARACTERS = 20
INSTRUCTIONS = (
    "AI and media tools. Files that a tool has made come back as resources: small pictures and "
    "sounds in the answer itself, all of them by a link, which resources/read takes, and another "
    "tool in the place of a file."
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever makes a request.

    Attributes:
        caller: For the service.
        request_id: Names the request in logs and errors.
        allows: Whether an operation may be used.
        ends: What ends work before its time, and the failure that it ends by.
    """

    caller: Caller
    request_id: str
    allows: Callable[[str], bool]
    ends: Mapping[asyncio.Event, Callable[[], Exception]]


class Frontend(Protocol):
    """Who comes in, and what they may bring.

    Attributes:
        file_words: How files are given, for the descriptions of tools.
    """

    file_words: str

    def visitor(self, context: Context) -> Visitor: ...

    def max_json_bytes(self, operation: Operation) -> int:
        """Of the arguments that are no files."""
        ...

    def max_file_bytes(self, operation: Operation) -> int | None:
        """Of a file that another call has made; None for no limit."""
        ...

    def check_place(self, context: Context) -> None:
        """Raises where whoever makes this request may begin no work beside what goes on.

        Raises:
            RateLimitError: It has as much as it may have.
        """
        ...

    async def files(
        self, context: Context, params: types.CallToolRequestParams, arguments: Arguments
    ) -> Mapping[str, Input] | types.InputRequiredResult:
        """The files that were given; or what the client is asked for first.

        Raises:
            BadRequestError: One cannot be taken.
        """
        ...


def make_server(executor: ToolExecutor, frontend: Frontend) -> Server[Any]:
    """The SDK's server of all tools."""
    tools = _Tools(executor, frontend)
    resources = _Resources(executor, frontend)
    return Server(
        "polymux",
        version=__version__,
        title="polymux",
        instructions=INSTRUCTIONS,
        # No argument travels in a header field: nothing needs to be looked up for that.
        get_tool_input_schema=lambda _: None,
        on_list_tools=tools.listed,
        on_call_tool=tools.call,
        on_list_resources=resources.listed,
        on_read_resource=resources.read,
    )


class _Tools:
    def __init__(self, executor: ToolExecutor, frontend: Frontend) -> None:
        self._executor = executor
        self._frontend = frontend

    async def listed(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Those that this caller may use."""
        del params  # All on one page.
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
        """Does a call; what goes wrong with it is a result that says so."""
        visitor = self._frontend.visitor(context)
        operation = _named(params.name)
        try:
            if not visitor.allows(operation.name):
                raise status_error(  # noqa: TRY301 - the same end as of all failures
                    errors.PermissionDeniedError,
                    f"this key may not use {operation.name}",
                    code="forbidden",
                )
            self._frontend.check_place(context)
            arguments = sorted_out(operation, params.arguments)
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
            return failure_of(_told(error, visitor), visitor.request_id)

    async def _made(self, visitor: Visitor, arguments: Arguments) -> dict[str, Input]:
        """Those of the files that another call of the same caller has made, by their links."""
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
        """Files that this caller's calls have made of late."""
        visitor = self._frontend.visitor(context)
        cursor = None if params is None else params.cursor
        try:
            files, following = await self._executor.made(visitor.caller, cursor)
        except Exception as error:
            raise _protocol_error(error, visitor) from None
        return types.ListResourcesResult(
            resources=[resource_of(one) for one in files], next_cursor=following
        )

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """A file whole."""
        visitor = self._frontend.visitor(context)
        uri = str(params.uri)
        try:
            file = await self._executor.find(visitor.caller, uri)
            data = None if file is None else await file.read(MAX_READ_BYTES)
        except Exception as error:
            raise _protocol_error(error, visitor) from None
        if file is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such resource, or it has expired")
        if data is None:
            raise MCPError(
                types.INVALID_PARAMS,
                f"the file is over the {MAX_READ_BYTES} bytes that are read as a resource: its "
                "link in the tool's structured answer gives it whole",
            )
        contents = types.BlobResourceContents(
            uri=uri, mime_type=file.content_type, blob=encoded(data)
        )
        return types.ReadResourceResult(contents=[contents])


def _named(name: str) -> Operation:
    """The operation of that very name; others that the interface knows are no tools."""
    for one in contract.operations():
        if one.name == name:
            return one
    raise MCPError(types.INVALID_PARAMS, f"there is no tool {shown(name)}")


def _telling(context: Context) -> Callable[[float, str | None], Coroutine[Any, Any, None]]:
    async def tell(progress: float, message: str | None) -> None:
        # Nothing where the client gave no token; and who has gone is told nothing.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await context.session.report_progress(progress, 1.0, message)

    return tell


async def _finished(
    work: Coroutine[Any, Any, Outcome], ends: Mapping[asyncio.Event, Callable[[], Exception]]
) -> Outcome:
    """Awaits work in a task of its own, and ends it where something else comes first.

    The SDK cancels what it awaits again at every step; engines expect to be told once.

    Raises:
        Exception: What `ends` has for what came first.
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


def _told(error: Exception, visitor: Visitor) -> dict[str, Any]:
    told = told_of(error)
    if told["code"] == "internal":
        _log.error("request %s failed unexpectedly", visitor.request_id, exc_info=error)
    return told


def _protocol_error(error: Exception, visitor: Visitor) -> MCPError:
    told = _told(error, visitor)
    code = types.INTERNAL_ERROR if told["status"] >= 500 else types.INVALID_PARAMS
    return MCPError(code, redact(told["message"]))
