"""A Starlette route without models; streams with StreamingResponse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.server.conversation import CHAT, COMPLETION
from benchmarks.server.peers.work import events

if TYPE_CHECKING:
    from starlette.requests import Request


async def chat(request: Request) -> Response:
    values = await request.json()
    if values.get("stream"):
        return StreamingResponse(events(values), media_type="text/event-stream")
    return JSONResponse(COMPLETION)


def application(_: str | None) -> Any:
    """Return the application, which checks no key."""
    return Starlette(routes=[Route(CHAT, chat, methods=["POST"])])
