"""The router in another application: the same authentication before the same request bodies."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop
from polymux import AsyncClient, Client, errors
from support.conversions import wav
from support.hosted_server import HostedServer
from support.polymux_server import CHAT, HELLO
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENAI_CHAT = "/v1/chat/completions"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path / "s", lambda: [Scripted()]) as running:
        yield running


def test_the_router_in_a_foreign_application(server: HostedServer) -> None:
    """The application's routes and the compatibility APIs work. Keys: `test_authentication.py`."""
    assert server.ask("GET", "/own", key=None).json() == {"it": "is mine"}
    assert server.json(CHAT, HELLO).json() == {"text": "read"}
    assert server.json(CHAT, {"messages": []}).status == 400
    assert server.ask("GET", "/healthz", key=None).status == 200
    assert server.json(OPENAI_CHAT, HELLO).json() == {"text": "read"}
    refused = server.json(OPENAI_CHAT, HELLO, key=None).json()["error"]
    assert refused["code"] == "invalid_api_key"
    refused = server.ask("GET", "/v1/models/no%2Fsuch").json()["error"]
    assert refused["code"] == "model_not_found"
    assert "no/such" in refused["message"]


def test_a_length_beside_chunks(tmp_path: Path) -> None:
    """uvicorn uses h11 if httptools is not installed. h11 accepts both headers."""
    body = json.dumps(HELLO).encode()
    with HostedServer(tmp_path / "s", lambda: [Scripted()], http="h11") as server:
        head = (
            f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        )
        chunks = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        taken = server.raw(f"{head}Connection: close\r\n\r\n".encode() + chunks)
        assert taken.json() == {"text": "read"}
        refused = server.raw(f"{head}Content-Length: 3\r\n\r\n".encode() + chunks)
    assert (refused.status, refused.headers["connection"]) == (400, "close")
    assert refused.json()["param"] == "Content-Length"


ENCODED = ("/api/v1/operation%73", "/api%2fv1/operations", "/api/v1/predictions/%78", "/media/%78",
           "/%76%31/models/x", "/replicate/v1/models/a%2Fb", "/healt%68z")  # fmt: skip


@pytest.mark.parametrize("prefix", ["", "/ai"])
def test_other_spellings_of_addresses(tmp_path: Path, prefix: str) -> None:
    """Percent-encoded paths are not routes of polymux, except for model names."""
    with (
        HostedServer(tmp_path / "s", lambda: [Scripted()], prefix=prefix) as server,
        closing(http.client.HTTPConnection(*server.address, timeout=60)) as connection,
    ):

        def asked(path: str, key: str | None = server.key) -> tuple[int, bytes]:
            """`ask` checks the compatibility APIs' formats, which do not apply here."""
            fields = {} if key is None else {"Authorization": f"Bearer {key}"}
            connection.request("GET", prefix + path, headers=fields)
            answer = connection.getresponse()
            return answer.status, answer.read()

        words = json.loads(asked(ENCODED[0])[1])["error"].encode()
        for path in ENCODED:
            for key in (server.key, None):
                status, body = asked(path, key)
                assert (status, words in body) == (404, True), path
        for path in ("/api/v1/operations?x=%73", "/healthz", "/v1/models"):
            assert asked(path)[0] == 200, path
        error = json.loads(asked("/v1/models/no%2Fsuch")[1])["error"]
        assert (error["code"], "no/such" in error["message"]) == ("model_not_found", True)


TESTS = Path(__file__).parents[2]


@contextmanager
def hosted(folder: Path, loop: str) -> Iterator[tuple[str, str]]:
    command = [sys.executable, "-m", "support.foreign_application", str(folder), loop]
    environment = {**os.environ, "PYTHONPATH": os.fspath(TESTS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            port, key = json.loads(process.stdout.readline())
            yield f"http://127.0.0.1:{port}", key
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == -signal.SIGTERM
        finally:
            process.kill()


def test_an_engine_works_behind_the_router(tmp_path: Path) -> None:
    """Also checks that a client in uvloop gets its response."""
    sound = tmp_path / "a.wav"
    sound.write_bytes(wav(1))
    with hosted(tmp_path, "uvloop") as (url, key):
        with Client(base_url=url, api_key=key) as client:
            assert client.convert_to_mp3(sound).read()[:2] == b"\xff\xfb"
            sound.write_bytes(b"RIFF nothing")
            with pytest.raises(errors.APIStatusError, match=r"a\.wav"):
                client.convert_to_mp3(sound)

        async def refused() -> None:
            async with AsyncClient(base_url=url, api_key=key) as client:
                with pytest.raises(errors.NoBackendError):
                    await asyncio.gather(*[client.search_music("x") for _ in range(20)])

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(refused())
