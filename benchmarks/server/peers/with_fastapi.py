"""FastAPI as in its documentation: pydantic models, UploadFile, and keys with HTTPBearer.

FastAPI reads the body before it calls a dependency. Starlette cancels a streamed answer if the
client disconnects, but does not report the disconnect during a complete answer.
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
    """Validate the request and the answer."""
    if request.stream:
        return StreamingResponse(events(request.model_dump()), media_type="text/event-stream")
    if request.messages[-1].content == HOLD:
        await held()
    return ChatCompletion(**COMPLETION)


async def convert(file: UploadFile) -> dict[str, Any]:
    """FastAPI has already written the file to disk."""
    return {"response": f"{file.size} bytes"}


async def healthz() -> dict[str, str]:
    return {"status": "ok"}


def _who_knows(key: str) -> Any:
    async def known(given: Annotated[HTTPAuthorizationCredentials, Depends(_bearer)]) -> None:
        if not secrets.compare_digest(given.credentials.encode(), key.encode()):
            raise HTTPException(401, "no such key", {"WWW-Authenticate": "Bearer"})

    # FastAPI evaluates annotations at run time and looks up `_bearer` in the module.
    return Depends(known)


def application(key: str | None) -> Any:
    """Return the application. With a key, chat and conversion require it."""
    app = FastAPI(openapi_url=None)
    known = [] if key is None else [_who_knows(key)]
    app.post(CHAT, response_model=ChatCompletion, dependencies=known)(chat)
    app.post(CONVERT, dependencies=known)(convert)
    app.get("/healthz")(healthz)
    app.get("/metrics", response_class=PlainTextResponse)(metrics)
    return app
