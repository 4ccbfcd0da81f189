"""Limits of the messages to /mcp: only the arguments of tool calls may be large."""

from __future__ import annotations

import base64
import gc
import json
from typing import TYPE_CHECKING, Any

import pytest
from support.mcp_clients import events, handshake, message, post, session_of

if TYPE_CHECKING:
    from support.polymux_server import PolymuxServer
    from support.services import Scripted

SMALL_BYTES = 64 << 10


def with_capabilities(experimental: Any) -> bytes:
    body = json.loads(handshake())
    body["params"]["capabilities"] = {"experimental": experimental}
    return json.dumps(body).encode()


def call(arguments: bytes, **more: Any) -> bytes:
    body = message("tools/call", {"name": "convert_to_mp3", "arguments": "HERE", **more}, number=7)
    return body.replace(b'"HERE"', arguments)


def file_of(size_bytes: int) -> bytes:
    return json.dumps({"file": base64.b64encode(bytes(size_bytes)).decode()}).encode()


LARGE = '"' + "x" * SMALL_BYTES + '"'


@pytest.mark.parametrize(
    "body",
    [
        with_capabilities({"a": "x" * SMALL_BYTES}),
        with_capabilities({"a": ["x"] * (21 << 18)}),
        b'{"a":' + LARGE.encode() + b"," + handshake()[1:],
        message("tools/list", {"cursor": "x" * SMALL_BYTES}),
        call(b"{}", _meta={"a": "x" * SMALL_BYTES}),
        # The last member with a name counts, and names may be escaped.
        call(file_of(SMALL_BYTES))[:-1] + b',"method":"initialize"}',
        call(file_of(SMALL_BYTES))[:-1] + b',"\\u006dethod":"initialize"}',
    ],
    ids=["text", "many", "before", "cursor", "meta", "twice", "escaped"],
)
def test_a_large_message_that_is_no_tool_call(server: PolymuxServer, body: bytes) -> None:
    answer = post(server, body)
    assert answer.status == 413
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"file":' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"file":[' + b"0," * 200_000 + b"0]}",
        b'{"file":' + b'{"":' * 100_000,
        b"[" + LARGE.encode() + b"]",
        LARGE.encode(),
        b'{"file":' + LARGE.encode(),
    ],
    ids=["deep", "many", "open", "list", "text", "unfinished"],
)
def test_arguments_that_are_refused(server: PolymuxServer, arguments: bytes) -> None:
    assert post(server, call(arguments), session_of(server)).status == 400


@pytest.mark.parametrize("size_bytes", [3, SMALL_BYTES, 20 << 20])
def test_a_tool_call_with_a_file(server: PolymuxServer, backend: Scripted, size_bytes: int) -> None:
    answer = post(server, call(file_of(size_bytes)), session_of(server))
    *_, event = events(answer)
    assert not event["result"]["isError"]
    assert len(backend.began) == 1


def test_a_session_keeps_no_capabilities(server: PolymuxServer) -> None:
    name = "polymux.example/" + "x" * 20
    assert post(server, with_capabilities({name: {}})).status == 200
    assert not any(isinstance(one, dict) and name in one for one in gc.get_objects())


def test_a_key_without_any_tool(server: PolymuxServer) -> None:
    key, _ = server.keys.add("admin only", scopes=["admin"])
    answer = post(server, handshake(), key=key)
    assert (answer.status, answer.json()["code"]) == (403, "forbidden")
