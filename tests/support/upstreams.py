"""A polymux server with upstreams, and a key that must never appear."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux.runtime.upstream_settings import UpstreamSettings
from polymux.service.routes import Route

from support.polymux_server import CHAT, Answer, PolymuxServer, form

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from servers.reference import ReferenceServer

CANARY = "gsk-canary-0123456789abcdefghij"
FREE = "/api/v1/freellm"
STT = "/api/v1/modelhost/stt"
IMAGES = "/api/v1/modelhost/imagegeneration"
COMPLETIONS = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "Hi"}]
ASKED = {"model": "fast", "messages": MESSAGES}
#: A complete answer with unknown members.
WHOLE = {
    "id": "chatcmpl-9", "object": "chat.completion", "created": 1763740800, "model": "their-model",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello", "mood": "good"},
                 "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    "x_groq": {"id": "req_01j"}, "unknown": [1, {"deep": True}],
}  # fmt: skip


def posted(server: PolymuxServer, path: str, *fields: tuple[str, Any]) -> Answer:
    body, head = form(*fields)
    return server.ask("POST", path, body, head)


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 1763740800}
    return head | {"model": "their-model", "choices": [choice]} | more


def event(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"data: {text}\n\n".encode()


def upstream(
    folder: Path, url: str, *, kind: str = "openai", key: str = CANARY, **more: Any
) -> UpstreamSettings:
    """The settings of an upstream with a key in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "upstream.key"
    path.write_text(f"{key}\n")
    path.chmod(0o600)
    base = f"{url}/v1" if kind == "openai" else url
    return UpstreamSettings(kind, base, key_file=path, **more)


@contextmanager
def gateway(
    folder: Path, upstreams: Mapping[str, UpstreamSettings], **settings: Any
) -> Iterator[PolymuxServer]:
    settings.setdefault("engines", {})
    with PolymuxServer(folder / "gateway", upstreams=upstreams, **settings) as server:
        yield server


@contextmanager
def before_reference(
    folder: Path, reference: ReferenceServer, **settings: Any
) -> Iterator[PolymuxServer]:
    """A gateway that sends every operation to `reference`, even if local engines could do it."""
    other = upstream(folder, reference.url, kind="polymux", key=reference.token)
    routes = {one.name: (Route("other"),) for one in contract.operations()}
    with gateway(folder, {"other": other}, routes=routes, **settings) as server:
        yield server


def chat(server: PolymuxServer, **more: Any) -> Answer:
    return server.json(CHAT, ASKED | more)


def asked(server: PolymuxServer, path: str, body: bytes, *fields: str) -> socket.socket:
    host = f"{server.address[0]}:{server.address[1]}"
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {server.key}",
             f"Content-Length: {len(body)}", *fields]  # fmt: skip
    connection = server.connect()
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return connection


def events_of(answer: Answer) -> list[Any]:
    found = []
    for block in answer.body.decode().split("\n\n"):
        if block.startswith("data: "):
            data = block.removeprefix("data: ")
            found.append(data if data == "[DONE]" else json.loads(data))
    return found
