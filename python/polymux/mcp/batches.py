"""Batches of JSON-RPC messages, which only version 2025-03-26 of the protocol has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id
from pydantic import ValidationError
from pydantic_core import from_json

from polymux._util.text import shown

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

VERSION = "2025-03-26"
#: A tool call with large arguments, such as files, is a separate message.
MAX_BYTES = 64 << 10
MAX_MESSAGES = 20
_INITIALIZE = "initialize"


def is_batch(message: bytes) -> bool:
    return message.lstrip().startswith(b"[")


def requested_version(message: bytes) -> str | None:
    """Return the protocol version in an ``initialize`` message, or None for other messages."""
    if len(message) > MAX_BYTES or _INITIALIZE.encode() not in message:
        return None
    try:
        plain = from_json(message)
    except ValueError:
        return None
    if not isinstance(plain, dict) or plain.get("method") != _INITIALIZE:
        return None
    params = plain.get("params")
    version = params.get("protocolVersion") if isinstance(params, dict) else None
    return version if isinstance(version, str) else None


def read_batch(message: bytes, version: str | None) -> list[Any] | types.JSONRPCError:
    """Return the items of a batch, or why a connection with this version does not accept it."""
    if len(message) > MAX_BYTES:
        return invalid(f"batch: too large (got {len(message)} bytes, allowed {MAX_BYTES})")
    try:
        batch: list[Any] = from_json(message)
    except ValueError:
        return no_json()
    if version != VERSION:
        return invalid(
            "batch: not supported by this connection (got protocol version "
            f"{shown(version or 'unknown')}, allowed {VERSION}). Send each message separately"
        )
    if not 1 <= len(batch) <= MAX_MESSAGES:
        return invalid(
            f"batch: invalid number of messages (got {len(batch)}, allowed 1 to {MAX_MESSAGES})"
        )
    return batch


def checked(
    batch: Sequence[Any], running: Container[types.RequestId] = ()
) -> tuple[list[types.JSONRPCMessage], list[types.JSONRPCError]]:
    """Return the messages of a batch, and the errors for its other items.

    Args:
        batch: The items.
        running: Ids of requests in earlier batches, as `key_of` returns them. Default: none.
    """
    messages: list[types.JSONRPCMessage] = []
    failed: list[types.JSONRPCError] = []
    ids: set[types.RequestId] = set()
    for item in batch:
        try:
            message = types.jsonrpc_message_adapter.validate_python(item, by_name=False)
        except ValidationError:
            failed.append(invalid("batch: contains an item that is not a JSON-RPC message"))
            continue
        if isinstance(message, types.JSONRPCRequest):
            if message.method == _INITIALIZE:
                failed.append(invalid("batch: must not contain initialize. Send it separately"))
                continue
            key = key_of(message.id)
            if key in ids or key in running:
                failed.append(invalid("batch: contains an id that another request has"))
                continue
            ids.add(key)
        messages.append(message)
    return messages, failed


def key_of(request_id: types.RequestId) -> types.RequestId:
    """Return what the SDK finds a request by: the ids 7 and "7" are the same."""
    return coerce_request_id(request_id)


def invalid(message: str, code: int = types.INVALID_REQUEST) -> types.JSONRPCError:
    """Create the error for a message without a usable ``id``."""
    return types.JSONRPCError(
        jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message)
    )


def no_json() -> types.JSONRPCError:
    return invalid("the message is not valid JSON", types.PARSE_ERROR)
