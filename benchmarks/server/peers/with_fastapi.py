"""FastAPI as its documentation writes it: models of pydantic, an UploadFile, keys by HTTPBearer.

FastAPI reads a body before it asks a dependency. Whoever answers with a stream is told by Starlette
that the caller has left; who answers with a whole is told nothing.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, UploadFile
from fastapi.responses import PlainTextResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, Field

from benchmarks.server.conversation import CHAT, COMPLETION, CONVERT, HOLD
from benchmarks.server.peers.work import events, held, metrics

_bearer = HTTPBearer()


class Message(BaseModel):
    role: str
    content: str


class ChatRequest(BaseModel):
    model: str
    messages: list[Message]
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
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


async def chat(request: ChatRequest) -> Any:
    """Checks what it gets and what it gives."""
    if request.stream:
        return StreamingResponse(events(request.model_dump()), media_type="text/event-stream")
    if request.messages[-1].content == HOLD:
        await held()
    return ChatCompletion(**COMPLETION)


async def convert(file: UploadFile) -> dict[str, Any]:
    """The file is on disk when this is called."""
    return {"response": f"{file.size} bytes"}


async def healthz() -> dict[str, str]:
    return {"status": "ok"}


def _who_knows(key: str) -> Any:
    async def known(given: Annotated[HTTPAuthorizationCredentials, Depends(_bearer)]) -> None:
        if not secrets.compare_digest(given.credentials.encode(), key.encode()):
            raise HTTPException(401, "no such key", {"WWW-Authenticate": "Bearer"})

    # FastAPI reads annotations when it runs, and `_bearer` is found among the module's names.
    return Depends(known)


def application(key: str | None) -> Any:
    """With a key only who knows it may chat and convert."""
    app = FastAPI(openapi_url=None)
    known = [] if key is None else [_who_knows(key)]
    app.post(CHAT, response_model=ChatCompletion, dependencies=known)(chat)
    app.post(CONVERT, dependencies=known)(convert)
    app.get("/healthz")(healthz)
    app.get("/metrics", response_class=PlainTextResponse)(metrics)
    return app
