"""Streamed outputs of /replicate/v1, over TLS and with raw requests."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from replicate.stream import ServerSentEvent
from servers.certificates import Authority
from support.polymux_server import Box, PolymuxServer
from support.replicate_compat import (
    PICTURE,
    ScriptedModels,
    of,
    of_asyncio,
    scripted_server,
)

if TYPE_CHECKING:
    from pathlib import Path

BASE = "/replicate/v1"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


def begun(server: PolymuxServer, model: str, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = server.json(f"{BASE}/models/{model}/predictions", {"input": given, **more})
    assert answer.status == 201, answer.body
    prediction: dict[str, Any] = answer.json()
    return prediction


def streamed(server: PolymuxServer, prediction: dict[str, Any]) -> list[tuple[str, str]]:
    """The names and data of all events."""
    answer = server.ask("GET", prediction["urls"]["stream"].removeprefix(server.url))
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in answer.body.decode().split("\n\n"):
        lines = [line.partition(": ") for line in block.splitlines() if line[:1] != ":"]
        data = "\n".join(value for name, _, value in lines if name == "data")
        named = {name: value for name, _, value in lines}
        if named:
            assert named["id"]
            found.append((named["event"], data))
    return found


def test_tokens_as_they_come(tmp_path: Path, authority: Authority) -> None:
    """The first token is read before the others are sent."""
    box = Box()
    with scripted_server(tmp_path, box, authority) as server:
        box.backend.gate.clear()
        events = of(server, authority).stream("polymux/chat", input={"prompt": "Hi"})
        first = next(iter(events))
        assert (first.event, str(first)) == (ServerSentEvent.EventType.OUTPUT, "Hel")
        server.loop.call_soon_threadsafe(box.backend.gate.set)
        rest = list(events)
        assert "".join(str(one) for one in rest) == "lo there"
        assert rest[-1].event == ServerSentEvent.EventType.DONE
        assert rest[-1].data == "{}"
        (work,) = box.backend.began
        assert work.values["messages"] == [{"role": "user", "content": "Hi"}]
        (prediction,) = of(server, authority).predictions.list()
        assert prediction.metrics is not None
        assert prediction.metrics["input_token_count"] == 7
        assert prediction.metrics["output_token_count"] == 3

        async def main() -> str:
            client = of_asyncio(server, authority)
            found = [
                str(one)
                async for one in await client.async_stream("maker/large", input={"prompt": "Hi"})
            ]
            await client._async_client.aclose()
            return "".join(found)

        assert asyncio.run(main()) == "Hello there"
        assert box.backend.began[-1].values["model"] == "maker/large"


def test_texts_of_every_kind(server: PolymuxServer, backend: ScriptedModels) -> None:
    """Line ends within a chunk, empty chunks, and text that looks like an event field."""
    backend.pieces = ["one\ntwo", "a\r\nb\rc", "", "data: x", "\n", "\u00e9\u4e2d"]
    prediction = begun(server, "polymux/chat", {"prompt": "Hi"})
    assert streamed(server, prediction) == [
        ("output", "one\ntwo"),
        ("output", "a\nb\nc"),
        ("output", "data: x"),
        ("output", "\n"),
        ("output", "\u00e9\u4e2d"),
        ("done", "{}"),
    ]


def test_other_jobs(server: PolymuxServer) -> None:
    """Logs arrive live and outputs at the end, if a stream was requested."""
    prediction = begun(server, "bytedance/sdxl-lightning-4step", {"prompt": "x", "num_outputs": 2},
                       stream=True)  # fmt: skip
    logs, first, second, done = streamed(server, prediction)
    assert (logs, done) == (("logs", "begun"), ("done", "{}"))
    for number, (name, url) in enumerate((first, second)):
        assert name == "output"
        file = server.ask("GET", url.removeprefix(server.url), key=None)
        assert file.body == PICTURE + str(number).encode()
    prediction = begun(server, "polymux/read-text", {"file": "data:,x"}, stream=True)
    assert streamed(server, prediction)[1:] == [("output", '{"text":"read"}'), ("done", "{}")]
    prediction = begun(server, "polymux/read-text", {"file": "data:,x"})
    assert "stream" not in prediction["urls"]


def test_failures(server: PolymuxServer, backend: ScriptedModels) -> None:
    backend.failure = polymux.errors.NoAudioError("there is no sound in it")
    prediction = begun(server, "polymux/chat", {"prompt": "Hi"})
    *pieces, error, done = streamed(server, prediction)
    assert "".join(text for _, text in pieces) == "Hello there"
    assert (error[0], json.loads(error[1])) == ("error", {"detail": "there is no sound in it"})
    assert (done[0], json.loads(done[1])) == ("done", {"reason": "error"})
    with pytest.raises(RuntimeError, match="no sound"):
        list(of(server).stream("polymux/chat", input={"prompt": "Hi"}))
    kept = server.ask("GET", prediction["urls"]["get"].removeprefix(server.url)).json()
    assert (kept["status"], kept["output"]) == ("failed", ["Hel", "lo ", "there"])


def test_cancelled_meanwhile(server: PolymuxServer, backend: ScriptedModels) -> None:
    backend.gate.clear()
    client = of(server)
    held = client.predictions.create(version="polymux/chat", input={"prompt": "Hi"}, stream=True)
    events = held.stream()
    assert str(next(events)) == "Hel"
    held.cancel()
    assert held.status == "canceled"
    (last,) = events
    assert json.loads(last.data) == {"reason": "canceled"}
    assert backend.ended == ["closed"]
    assert held.output == ["Hel"]
