"""A raw ASGI application without a framework, which checks the key first."""

from __future__ import annotations

import asyncio
import hmac
import json
import tempfile
from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import CHAT, COMPLETION, CONVERT, HOLD
from benchmarks.server.pacing import wanted
from benchmarks.server.peers.work import events, held, metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]


def application(key: str | None) -> Any:
    """Return the application. With a key it rejects other clients before it reads a body."""
    authorization = None if key is None else f"Bearer {key}".encode()

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if authorization is not None and not _known(scope, authorization):
            await _answer(send, 401, {"error": "no such key"})
        elif path == CHAT and method == "POST":
            await _chat(receive, send)
        elif path == CONVERT and method == "POST":
            await _convert(scope, receive, send)
        elif path == "/metrics":
            await _send(send, 200, b"text/plain", metrics().encode())
        elif path == "/healthz":
            await _answer(send, 200, {"status": "ok"})
        else:
            await _answer(send, 405 if path == CHAT else 404, {"error": "no such thing"})

    return app


def _header(scope: Any, name: bytes) -> bytes:
    return next((bytes(value) for one, value in scope["headers"] if one == name), b"")


def _known(scope: Any, authorization: bytes) -> bool:
    return hmac.compare_digest(_header(scope, b"authorization"), authorization)


async def _send(send: Send, status: int, kind: bytes, body: bytes) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _answer(send: Send, status: int, value: dict[str, Any]) -> None:
    body = json.dumps(value, separators=(",", ":")).encode()
    await _send(send, status, b"application/json", body)


async def _pieces(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        yield message.get("body", b"")
        more = message.get("more_body", False)


async def _chat(receive: Receive, send: Send) -> None:
    data = b""
    async for piece in _pieces(receive):
        data += piece
    try:
        values = json.loads(data)
    except ValueError:
        await _answer(send, 400, {"error": "no JSON"})
        return
    if values.get("stream"):
        await _while_there(receive, _stream(send, values))
    elif wanted(values)[:1] == [HOLD]:
        await _while_there(receive, held())
    else:
        await _answer(send, 200, COMPLETION)


async def _while_there(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until the client disconnects: after the body, the next message is the
    disconnect."""
    tasks = (asyncio.ensure_future(work), asyncio.ensure_future(receive()))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in tasks:
            one.cancel()


async def _stream(send: Send, values: dict[str, Any]) -> None:
    kind = (b"content-type", b"text/event-stream")
    await send({"type": "http.response.start", "status": 200, "headers": [kind]})
    async for event in events(values):
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _convert(scope: Any, receive: Receive, send: Send) -> None:
    """Parse the form with Starlette's parser, which writes the file to disk as it arrives."""
    from python_multipart.multipart import MultipartParser

    boundary = _header(scope, b"content-type").partition(b"boundary=")[2]
    with tempfile.TemporaryFile() as file:

        def take(data: bytes, start: int, end: int) -> None:
            file.write(memoryview(data)[start:end])

        parser = MultipartParser(boundary, {"on_part_data": take})
        async for piece in _pieces(receive):
            parser.write(piece)
        parser.finalize()
        size = file.tell()
    await _answer(send, 200, {"response": f"{size} bytes"})
