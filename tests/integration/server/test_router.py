"""The router in somebody else's application: the same keys before the same bodies."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from fastapi import FastAPI
from polymux.server import lifespan, router
from polymux.server.keys import KeyFile
from polymux.server.settings import ServerSettings, StoreSettings
from support.polymux_server import Answer, parsed
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHAT = "/api/v1/fastllm/chatcompletion"
OPENAI_CHAT = "/v1/chat/completions"
HELLO = {"model": "default", "messages": [{"role": "user", "content": "Hi"}]}


@contextmanager
def hosted(folder: Path) -> Iterator[tuple[int, str]]:
    """An application with a route of its own beside ours; its port and a key."""
    settings = ServerSettings(store=StoreSettings(folder))
    key, _ = KeyFile(settings.key_file).add("test")
    mine = router(settings, backends=[Scripted()])
    app = FastAPI(lifespan=lambda _: lifespan(mine))
    app.include_router(mine)

    @app.get("/own")
    def own() -> dict[str, str]:
        return {"it": "is mine"}

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    try:
        yield listener.getsockname()[1], key
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def ask(port: int, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close",
             f"Content-Length: {len(data)}", "Content-Type: application/json"]  # fmt: skip
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + data)
        found = b""
        while piece := connection.recv(65536):
            found += piece
    return parsed(found)


def test_the_router_in_a_foreign_application(tmp_path: Path) -> None:
    with hosted(tmp_path / "s") as (port, key):
        assert ask(port, "GET", "/own").json() == {"it": "is mine"}
        assert ask(port, "POST", CHAT, HELLO, key).json() == {"text": "read"}
        for wrong in (None, "wrong", key[:-1], f"{key} x", f'"{key}"'):
            answer = ask(port, "POST", CHAT, HELLO, wrong)
            assert (answer.status, answer.json()["code"]) == (401, "unauthorized")
        assert ask(port, "POST", CHAT, {"messages": []}, key).status == 400
        assert ask(port, "GET", CHAT, key=key).status == 405
        assert ask(port, "GET", "/healthz").status == 200
        assert ask(port, "GET", "/nothing", key=key).status == 404
        assert ask(port, "POST", OPENAI_CHAT, HELLO, key).json() == {"text": "read"}
        assert ask(port, "POST", OPENAI_CHAT, HELLO).json()["error"]["code"] == "invalid_api_key"
        refused = ask(port, "GET", "/v1/models/no%2Fsuch", key=key).json()["error"]
        assert refused["code"] == "model_not_found"
        assert "no/such" in refused["message"]


def test_a_body_is_not_read_before_the_key_is_seen(tmp_path: Path) -> None:
    with (
        hosted(tmp_path / "s") as (port, _),
        socket.create_connection(("127.0.0.1", port), 10) as connection,
    ):
        head = (
            f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 1073741824\r\n"
            "Content-Type: application/json\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 401"


def test_without_its_lifespan_it_says_what_is_missing(tmp_path: Path) -> None:
    from polymux.server.app import create_app

    app = create_app(ServerSettings(store=StoreSettings(tmp_path / "s")))
    with pytest.raises(RuntimeError, match="lifespan"):
        app.state.polymux.service  # noqa: B018 - looking is the test
