"""`proxy PORT`: FastAPI with an httpx2 client as a plain proxy; prints its port.

It forwards the body and the answer unchanged, whole or in pieces. It has no keys, limits or log.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

from benchmarks.server.conversation import CHAT

BACKLOG = 2048
_TIMEOUT_S = 300


def application(upstream: str) -> FastAPI:
    """Return the application, which has one route.

    Args:
        upstream: URL of the upstream's chat endpoint.
    """
    app = FastAPI(openapi_url=None)
    # One connection per client. Idle connections stay open, as in polymux.
    limits = httpx2.Limits(
        max_connections=None, max_keepalive_connections=None, keepalive_expiry=60
    )
    client = httpx2.AsyncClient(limits=limits, timeout=_TIMEOUT_S, trust_env=False)
    fields = {"content-type": "application/json", "authorization": "Bearer of-the-upstream"}

    async def chat(request: Request) -> Response:
        body = await request.body()
        asked = client.build_request("POST", upstream, content=body, headers=fields)
        streamed = json.loads(body).get("stream", False)
        answer = await client.send(asked, stream=streamed)
        kind = answer.headers["content-type"]
        if not streamed:
            return Response(answer.content, answer.status_code, media_type=kind)
        return StreamingResponse(
            answer.aiter_raw(),
            answer.status_code,
            media_type=kind,
            background=BackgroundTask(answer.aclose),
        )

    app.post(CHAT)(chat)
    return app


def main() -> None:
    """Serve with httptools and asyncio's event loop, without a log."""
    # asyncio sets TCP_NODELAY only on sockets whose protocol is IPPROTO_TCP. Without it small
    # pieces are delayed.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    print(listener.getsockname()[1], flush=True)
    options: dict[str, Any] = {"ws": "none", "lifespan": "off", "log_level": "warning"}
    app = application(f"http://127.0.0.1:{sys.argv[1]}/v1/chat/completions")
    config = uvicorn.Config(app, http="httptools", loop="asyncio", access_log=False, **options)
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
