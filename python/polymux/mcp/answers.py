"""Convert results of operations to MCP tool results: text, structured values, files."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types

from polymux._util.redaction import redact
from polymux._util.text import printable, size
from polymux.server.http.responses import error_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from polymux.contract import Operation
    from polymux.service.media_store import StoredFile

#: Maximum total size of inline files in an answer; some clients reject events over 1 MiB.
INLINE_BYTES = 512 << 10
#: Maximum size of a resource that can be read: several copies of it are in memory at once.
MAX_READ_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file that an operation has created.

    Attributes:
        uri: The resource URI.
        name: Suggested file name.
        size_bytes: None if unknown.
        read: Returns its bytes, or None if it has more bytes than the argument.
        path: Its path on this machine; None for remote files.
        kept: Its entry in the media store; None for other files.
    """

    uri: str
    name: str
    content_type: str
    size_bytes: int | None
    read: Callable[[int], Awaitable[bytes | None]]
    path: Path | None = None
    kept: StoredFile | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an operation.

    Attributes:
        value: Its answer, as in the polymux API.
        files: The files it created, in order.
        notes: Warnings, such as ignored parts of the request.
    """

    value: Any
    files: Sequence[MadeFile] = ()
    notes: Sequence[str] = ()


async def result_of(operation: Operation, outcome: Outcome) -> types.CallToolResult:
    """Build the tool result of a successful call."""
    content: list[types.ContentBlock] = [_text(_words(operation, outcome))]
    left_bytes = INLINE_BYTES
    for file in outcome.files:
        shown = file.content_type.startswith(("image/", "audio/"))
        if shown and (file.size_bytes is None or file.size_bytes <= left_bytes):
            data = await file.read(left_bytes)
            if data is not None:
                left_bytes -= len(data)
                content.append(_inline(file, data))
        content.append(_link(file))
    content += [_text(f"Note: {one}") for one in outcome.notes]
    # Earlier versions of the protocol accept only objects.
    value = outcome.value if isinstance(outcome.value, dict) else {"result": outcome.value}
    return types.CallToolResult(content=content, structured_content=value)


def failure_of(error: Mapping[str, Any], request_id: str) -> types.CallToolResult:
    """Build the tool result of a failed call, for the model to read and correct its request."""
    message = redact(str(error["message"]))
    return types.CallToolResult(
        content=[_text(message)],
        structured_content=error_body({**error, "message": message}, request_id),
        is_error=True,
    )


def resource_of(file: MadeFile) -> types.Resource:
    return types.Resource(
        uri=file.uri, name=file.name, mime_type=file.content_type, size=file.size_bytes
    )


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _inline(file: MadeFile, data: bytes) -> types.ImageContent | types.AudioContent:
    kind = types.ImageContent if file.content_type.startswith("image/") else types.AudioContent
    return kind(data=encoded(data), mime_type=file.content_type)


def _link(file: MadeFile) -> types.ResourceLink:
    return types.ResourceLink(
        uri=file.uri, name=file.name, mime_type=file.content_type, size=file.size_bytes
    )


def _words(operation: Operation, outcome: Outcome) -> str:
    """Return the text of an answer, else a list of its files, else the answer as JSON."""
    if outcome.files:
        return "\n".join(_about(one) for one in outcome.files)
    value = outcome.value
    if operation.result == "Prediction" and isinstance(value, dict):
        value = value.get("output")
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        if operation.result == "ChatCompletion":
            return _completion(value)
        for name in ("text", "response"):
            if isinstance(value.get(name), str):
                return str(value[name])
    return json.dumps(value, ensure_ascii=False)


def _about(file: MadeFile) -> str:
    known = "" if file.size_bytes is None else f", {size(file.size_bytes)}"
    return f"{printable(file.name)} ({file.content_type}{known}): {file.uri}"


def _completion(value: Mapping[str, Any]) -> str:
    parts = []
    for choice in value.get("choices") or ():
        message = choice.get("message") or {}
        if message.get("content"):
            parts.append(str(message["content"]))
        if message.get("tool_calls"):
            parts.append(json.dumps(message["tool_calls"], ensure_ascii=False))
    return "\n\n".join(parts) or json.dumps(value, ensure_ascii=False)
