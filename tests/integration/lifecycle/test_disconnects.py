"""Clients that disconnect in every phase of a request: their resources are soon free."""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.process.supervisor import EngineBackend
from support.chat_model import model_path
from support.faulty_engine import FAMILY
from support.polymux_server import CHAT, PolymuxServer, begun
from support.server_process import until
from support.supervised_engine import QUICK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Tolerance for a busy machine. The specified limits are 200 ms in the queue and in a stream, 600
#: ms while a prompt is processed, and 2 s otherwise.
SOON_S = 15.0
FREE = "/api/v1/freellm"
LONG_PROMPT = "word " * 1800


def backends() -> list[EngineBackend]:
    how = QUICK._replace(cancel_timeout_s=1.5)
    return [
        EngineBackend("chat", FAMILY, ["chat"], supervision=how),
        EngineBackend("loading", FAMILY, ["free_chat"], {"load": "slow"}, supervision=how),
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with PolymuxServer(tmp_path_factory.mktemp("server") / "s", backends) as running:
        yield running


def connected(server: PolymuxServer, phase: str, what: str) -> socket.socket:
    """A client that has sent a chat, a streaming chat, or a request whose model must be loaded."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": what}]}
    if phase != "load":
        body |= {"model": "any", "stream": phase == "stream"}
    fields = [("Content-Type", "application/json")]
    path = FREE if phase == "load" else CHAT
    return begun(server.address, server.key, path, json.dumps(body).encode(), fields)


def leave(connection: socket.socket, how: str) -> None:
    if how == "reset":
        linger = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    connection.close()


def metric(server: PolymuxServer, name: str, backend: str) -> float:
    text = server.ask("GET", "/metrics").body.decode()
    (line,) = (one for one in text.splitlines() if one.startswith(f'{name}{{backend="{backend}"}}'))
    return float(line.split()[-1])


def is_free(server: PolymuxServer, name: str) -> bool:
    place = server.state.service.places[name]
    return bool(place.running == place.waiting == 0)


def check_free(server: PolymuxServer, name: str) -> None:
    """Check the metrics and that nothing remains."""
    assert metric(server, "polymux_running", name) == 0
    assert metric(server, "polymux_waiting", name) == 0
    assert server.ask("GET", "/readyz", key=None).status == 200
    media = server.state.service.store.media
    until(lambda: media.used_bytes == 0, SOON_S)
    assert list((server.settings.store.folder / "drafts").iterdir()) == []
    assert server.state.service.jobs.count == 0


HOWS = pytest.mark.parametrize("how", ["reset", "closed"])


@HOWS
def test_in_the_queue(server: PolymuxServer, how: str) -> None:
    """The running request continues, and requests behind it move up."""
    place = server.state.service.places["chat"]
    working = connected(server, "stream", "endless")
    until(lambda: place.running == 1)
    client = connected(server, "whole", "echo x")
    until(lambda: place.waiting == 1, 20)
    behind = connected(server, "whole", "echo behind")
    until(lambda: place.waiting == 2)
    leave(client, how)
    until(lambda: place.waiting == 1, SOON_S)
    assert place.running == 1
    assert metric(server, "polymux_waiting", "chat") == 1
    working.close()
    assert b"behind" in behind.recv(65536)
    behind.close()
    until(lambda: is_free(server, "chat"), SOON_S)
    check_free(server, "chat")


def test_while_the_model_is_loaded(server: PolymuxServer) -> None:
    """The loading process is killed, because no other request needs it."""
    backend: Any = server.state.service.backends["loading"]
    client = connected(server, "load", "echo x")
    until(lambda: backend.health().state == "loading", 20)
    leave(client, "reset")
    until(lambda: is_free(server, "loading"), SOON_S)
    assert backend.health().state == "idle"
    assert backend.process is None
    check_free(server, "loading")


@HOWS
@pytest.mark.parametrize("phase", ["stream", "whole"])
def test_at_work(server: PolymuxServer, how: str, phase: str) -> None:
    """The engine stops the work, and the same process handles the next request at once."""
    backend: Any = server.state.service.backends["chat"]
    client = connected(server, phase, "endless")
    until(lambda: backend.process is not None and backend.process.busy == 1, 20)
    pid = backend.process.pid
    leave(client, how)
    until(lambda: is_free(server, "chat"), SOON_S)
    assert backend.process.busy == 0
    check_free(server, "chat")
    body = {"model": "any", "messages": [{"role": "user", "content": "echo next"}]}
    assert server.json(CHAT, body).json()["pid"] == pid


def test_work_that_does_not_listen(server: PolymuxServer, tmp_path: Path) -> None:
    """Its process is killed, and the next request gets a new one."""
    backend: Any = server.state.service.backends["chat"]
    mark = tmp_path / "mark"
    client = connected(server, "whole", f"touch {mark}")
    until(mark.exists, 20)
    pid = backend.process.pid
    leave(client, "closed")
    until(lambda: is_free(server, "chat"), SOON_S)
    check_free(server, "chat")
    body = {"model": "any", "messages": [{"role": "user", "content": "echo next"}]}
    assert server.json(CHAT, body).json()["pid"] != pid


def test_while_a_real_model_reads_the_prompt(tmp_path: Path) -> None:
    def make() -> list[EngineBackend]:
        # The engine checks for cancellation between batches. Small batches make that frequent on
        # slow machines.
        options = {"model": str(model_path()), "max_concurrency": 1, "context": 2048, "batch": 16}
        how = QUICK._replace(cancel_timeout_s=1.5, load_s=120)
        return [EngineBackend("chat", "chat", ["chat", "free_chat"], options, supervision=how)]

    body = {"model": "any", "max_completion_tokens": 1,
            "messages": [{"role": "user", "content": "Hi"}]}  # fmt: skip
    with PolymuxServer(tmp_path / "s", make) as model:
        assert model.json(CHAT, body).status == 200
        backend: Any = model.state.service.backends["chat"]
        pid = backend.process.pid
        client = connected(model, "stream", LONG_PROMPT)
        until(lambda: backend.process.busy == 1, 20)
        leave(client, "reset")
        until(lambda: is_free(model, "chat"), SOON_S)
        check_free(model, "chat")
        assert model.json(CHAT, body).status == 200
        assert backend.process.pid == pid
