"""The MCP SDK's own client, over HTTP and over standard input and output."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from polymux.service.model import OperationResult, Upload

from support.commands import PROGRAM, environment
from support.lazy_imports import mcp
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence
    from pathlib import Path

    import mcp_types as types
    from mcp import Client
    from polymux.service.model import OperationRequest, ProgressSink

    from support.polymux_server import Answer, Asked

PATH = "/mcp"
_MAX_S = 120.0
#: Arguments for the tools of a scripted backend.
FILE = {"file": base64.b64encode(b"sound").decode()}
#: The SDK's connection modes: without a handshake, and with the older one that opens a session.
MODES = ["auto", "legacy"]
VERSION = "2025-11-25"
TYPES = [
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
]


@asynccontextmanager
async def over_http(
    server: Asked, mode: str = "auto", *, key: str | None = None, **options: Any
) -> AsyncIterator[Client]:
    """A client of a server's MCP endpoint, with the server's key or another."""
    from mcp.client.streamable_http import streamable_http_client

    headers = {"authorization": f"Bearer {key or server.key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{server.url}{PATH}", http_client=http)
        async with mcp.Client(transport, mode=mode, **options) as client:
            yield client


@asynccontextmanager
async def over_stdio(
    folder: Path, *words: str, mode: str = "auto", server: Any = None, **options: Any
) -> AsyncIterator[Client]:
    """A client that starts ``polymux mcp`` in a folder."""
    from mcp.client.stdio import stdio_client

    command, *arguments = PROGRAM
    started = mcp.StdioServerParameters(
        command=command,
        args=[*arguments, "mcp", *words],
        cwd=folder,
        env=environment(folder, server, TMPDIR=str(folder)),
    )
    # The default is the standard error at the import of the SDK, which may be a test's buffer.
    transport = stdio_client(started, errlog=sys.__stderr__)
    async with mcp.Client(transport, mode=mode, **options) as client:
        yield client


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine, and raise its errors without the SDK's exception groups."""
    try:
        asyncio.run(asyncio.wait_for(main, _MAX_S))
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


def text_of(result: types.CallToolResult) -> str:
    first = result.content[0]
    assert first.type == "text"
    return first.text


def code_of(result: types.CallToolResult) -> str:
    """The error code of a failed call."""
    assert result.is_error, text_of(result)[:500]
    assert result.structured_content["error"] == text_of(result)
    return str(result.structured_content["code"])


def links_in(result: types.CallToolResult) -> list[types.ResourceLink]:
    assert not result.is_error, text_of(result)
    return [one for one in result.content if one.type == "resource_link"]


async def read(client: Client, uri: str) -> bytes:
    (contents,) = (await client.read_resource(uri)).contents
    return base64.b64decode(contents.blob)  # type: ignore[union-attr]


def message(
    method: str, params: dict[str, Any] | None = None, number: int | str | None = 1
) -> bytes:
    """A JSON-RPC request; without a number, a notification."""
    plain: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return json.dumps(plain | ({} if number is None else {"id": number})).encode()


def handshake(version: str = VERSION) -> bytes:
    who = {"name": "test", "version": "1"}
    return message(
        "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": who}
    )


def batch(*messages: bytes) -> bytes:
    return b"[" + b", ".join(messages) + b"]"


def post(
    server: Asked, body: bytes, headers: Sequence[tuple[str, str]] = (), **more: Any
) -> Answer:
    """Send a hand-written request to the MCP endpoint."""
    return server.ask("POST", PATH, body, [*TYPES, *headers], **more)


def session_of(server: Asked, key: str = "", *, version: str = VERSION) -> list[tuple[str, str]]:
    """The header fields of a new session."""
    answer = post(server, handshake(version), key=key)
    assert answer.status == 200
    fields = [
        ("Mcp-Session-Id", answer.headers["mcp-session-id"]),
        ("Mcp-Protocol-Version", version),
    ]
    assert (
        post(server, message("notifications/initialized", number=None), fields, key=key).status
        == 202
    )
    return fields


def events(answer: Answer) -> list[Any]:
    lines = answer.body.decode().splitlines()
    return [json.loads(one[6:]) for one in lines if one.startswith("data: ")]


def python(program: str) -> list[str]:
    return [sys.executable, "-W", "error", "-c", program]


class Making(Scripted):
    """Also makes files of other types and sizes."""

    sizes: tuple[int, ...] = (10,)
    kind = "image/png"

    def __init__(self) -> None:
        names = ("convert_to_mp3", "read_text", "chat", "free_chat", "generate_image")
        super().__init__("making", names, max_concurrency=4)
        #: The contents of the input files.
        self.read: list[bytes] = []

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        given = work.values.get("file")
        if isinstance(given, Upload):
            self.read.append(given.path.read_bytes())
        if work.operation != "generate_image":
            return await super().run(work, sink)
        self.began.append(work)
        made = [
            self.file(sink, bytes([number]) * size, self.kind, f"{number}.png")
            for number, size in enumerate(self.sizes)
        ]
        return OperationResult(made, "v1")
