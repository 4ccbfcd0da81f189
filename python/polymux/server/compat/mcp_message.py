"""Reads the messages to ``/mcp``, with limits on their size, depth and number of values."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._native import core
from polymux._util.text import shown
from polymux.server.auth.gate import too_large
from polymux.server.http import body as bodies
from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.runtime.settings import Limits
    from polymux.server.http.responses import Receive

#: Maximum size of a message, without the arguments of a tool call.
MAX_BYTES = 64 << 10
_MAX_DEPTH = 200
_MAX_VALUES = 100_000
_CALL, _INITIALIZE = "tools/call", "initialize"


@dataclass(frozen=True, slots=True)
class McpMessage:
    """A message of a client.

    Attributes:
        body: The message for the SDK, which parses it on the event loop.
        arguments: The arguments of a tool call that are not in `body`, because they are large.
    """

    body: bytes = b""
    arguments: Mapping[str, Any] | None = None


async def read_message(receive: Receive, max_bytes: int, limits: Limits) -> McpMessage:
    """Read a message. Stops reading once it exceeds a limit.

    Raises:
        BadRequestError: It is nested too deeply or has too many values.
        RequestTooLargeError: It is too large for its method.
        APIStatusError: It is too slow (408).
    """
    scan = core.JsonScan("method")
    pieces = []
    size_bytes = 0
    async for piece in bodies.pieces(receive, max_bytes, limits, "mcp"):
        pieces.append(piece)
        size_bytes += len(piece)
        scan.add(piece)
        if scan.depth > _MAX_DEPTH:
            raise bad_request(f"the message is nested too deeply (allowed: {_MAX_DEPTH} levels)")
        if scan.values > _MAX_VALUES:
            raise bad_request(f"the message has too many values (allowed: {_MAX_VALUES})")
        if size_bytes > MAX_BYTES and scan.found not in {None, _CALL}:
            raise too_large(MAX_BYTES, f"MCP method {shown(scan.found)}")
    body = b"".join(pieces)
    if size_bytes > MAX_BYTES:
        return await asyncio.to_thread(_without_arguments, body)
    if scan.found in {None, _INITIALIZE}:
        body = _without_capabilities(body)
    return McpMessage(body)


def _without_arguments(body: bytes) -> McpMessage:
    try:
        message = core.parse_json(body)
    except errors.DecodeError:
        raise bad_request("invalid JSON in the request body") from None
    if isinstance(message, list):
        raise too_large(MAX_BYTES, "an MCP batch")
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict) or message.get("method") != _CALL:
        raise too_large(MAX_BYTES, "MCP methods other than 'tools/call'")
    arguments = params.get("arguments")
    if not isinstance(arguments, dict):
        raise bad_request("arguments: must be an object")
    params["arguments"] = {}
    rest = json.dumps(message).encode()
    if len(rest) > MAX_BYTES:
        raise too_large(MAX_BYTES, "an MCP message without its arguments")
    return McpMessage(rest, arguments)


def _without_capabilities(body: bytes) -> bytes:
    """Remove the client's capabilities, which a session would keep: the server needs none."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return body  # The SDK reports it.

    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict) or message.get("method") != _INITIALIZE:
        return body
    params["capabilities"] = {}
    return json.dumps(message).encode()
