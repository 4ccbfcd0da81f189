"""peers NAME [uvloop]: an application that does nothing but answer, on uvicorn; prints its port.

raw        an ASGI application by hand: reads JSON, answers JSON
fastapi    a route with pydantic models of request and answer, and a form with a file
starlette  the same on a Starlette route, streams by StreamingResponse
"""

from __future__ import annotations

import json
import socket
import sys
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI, UploadFile
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations when it runs
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.server.conversation import CHAT, COMPLETION, CONVERT
from benchmarks.server.pacing import beats, stamped, wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BACKLOG = 2048


class Message(BaseModel):
    role: str
    content: str


class ChatRequest(BaseModel):
    model: str
    messages: list[Message]
    temperature: float | None = None
    top_p: float | None = None
    max_completion_tokens: int | None = None
    seed: int | None = None
    stream: bool = False


class Choice(BaseModel):
    index: int
    message: Message
    logprobs: dict[str, Any] | None
    finish_reason: str


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_time: float
    completion_time: float
    total_time: float


class ChatCompletion(BaseModel):
    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str
    choices: list[Choice]
    usage: Usage


async def chat(request: ChatRequest) -> ChatCompletion:  # noqa: ARG001
    """FastAPI's."""
    return ChatCompletion(**COMPLETION)


async def convert(file: UploadFile) -> dict[str, Any]:
    """FastAPI has the file on disk when this is called."""
    return {"response": f"{file.size} bytes"}


def fastapi() -> Any:
    app = FastAPI(openapi_url=None)
    app.post(CHAT)(chat)
    app.post(CONVERT)(convert)
    return app


async def events(values: dict[str, Any]) -> AsyncIterator[bytes]:
    """The events of a stream."""
    _, tokens, rate = wanted(values)
    async for _ in beats(int(tokens), int(rate)):
        yield b"data: " + json.dumps(stamped(), separators=(",", ":")).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


async def starlette_chat(request: Request) -> Response:
    """Starlette's."""
    values = await request.json()
    if values.get("stream"):
        return StreamingResponse(events(values), media_type="text/event-stream")
    return JSONResponse(COMPLETION)


def starlette() -> Any:
    return Starlette(routes=[Route(CHAT, starlette_chat, methods=["POST"])])


async def raw(scope: Any, receive: Any, send: Any) -> None:
    """Nothing between it and uvicorn."""
    if scope["type"] != "http":
        return
    data = b""
    more = True
    while more:
        message = await receive()
        data += message.get("body", b"")
        more = message.get("more_body", False)
    values = json.loads(data)
    if values.get("stream"):
        kind = (b"content-type", b"text/event-stream")
        await send({"type": "http.response.start", "status": 200, "headers": [kind]})
        async for event in events(values):
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    body = json.dumps(COMPLETION, separators=(",", ":")).encode()
    length = (b"content-length", str(len(body)).encode())
    headers = [(b"content-type", b"application/json"), length]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


APPLICATIONS = {"raw": lambda: raw, "fastapi": fastapi, "starlette": starlette}


def main() -> None:
    """On httptools and asyncio's loop, as our own server is, or on uvloop; no line in a log."""
    # Small pieces are sent at once (TCP_NODELAY) on sockets alone that say that they are of TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        APPLICATIONS[sys.argv[1]](),
        http="httptools",
        loop=sys.argv[2] if len(sys.argv) > 2 else "asyncio",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
    )
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
