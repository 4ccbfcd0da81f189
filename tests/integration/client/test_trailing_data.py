"""Data after the end of a response: trailers, and events after a stream. Case IDs: testing.md."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import CHUNK, END, FINE
from support.client_children import KEY, MIB, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer

#: libcurl stores every trailer until the response ends.
TRAILERS = steps.repeat_forever(b"X-Filler: %b\r\n" % (b"a" * 1000))
STREAM = steps.chunked_head(content_type="text/event-stream")
DRAINED_BYTES = 64 << 10


MEASURED = """
import resource
client = polymux.Client(url, key, retry=0, timeout=polymux.Timeout(event=3, idle=3))
other = polymux.AsyncClient(url, key, retry=0, timeout=polymux.Timeout(event=3, idle=3))
async def read_in_loop():
    text = ""
    try:
        async for piece in (await other.chat("x", stream=True)).texts():
            text += piece
    except polymux.PolymuxError as error:
        return type(error).__name__
    finally:
        await asyncio.sleep(0.8)
    return text
def read_here():
    try:
        return "".join(client.chat("x", stream=True).texts())
    except polymux.PolymuxError as error:
        return type(error).__name__
client.free_chat("x")
before = status("VmHWM") * 1024
outcomes = [read_here(), asyncio.run(read_in_loop())]
say(json.dumps([*outcomes, status("VmHWM") * 1024 - before]))
"""


@pytest.mark.parametrize(("data", "outcome"), [(END, "x"), (CHUNK, "AnswerTooLargeError")])
def test_trailers_without_end_behind_a_stream(
    data: bytes, outcome: str, server: MisbehavingServer
) -> None:
    """Trailers behind the last event are ignored; instead of it, they exceed a limit (K14)."""
    server.script(FINE)
    server.script(STREAM, steps.chunk(data), steps.send(b"0\r\n"), TRAILERS, times=None)
    *outcomes, growth = run_json(MEASURED, server.url)
    assert outcomes == [outcome, outcome]
    assert SANITIZED or growth <= 65 * MIB, f"{growth / MIB:.1f} MiB"
    for request in server.requests[1:]:
        server.wait_closed(request.connection)


def test_trailers_behind_an_error(server: MisbehavingServer, client: polymux.Client) -> None:
    """The error has the status in spite of the trailers (K14)."""
    body = steps.chunk(b'{"error":"nothing works"}'), steps.send(b"0\r\n")
    server.script(steps.chunked_head(500), *body, TRAILERS)
    with pytest.raises(errors.InternalServerError, match="nothing works"):
        client.free_chat("x")
    server.wait_closed(server.requests[-1].connection)


def test_some_trailers_are_passed_over(server: MisbehavingServer, client: polymux.Client) -> None:
    """The trailers are accepted and the connection serves the next request."""
    last = steps.last_chunk([(f"X-{number}", "y" * 100) for number in range(100)])
    for _ in range(2):
        server.script(steps.chunked_head(), steps.chunk(b'{"response":"fine"}'), last)
        assert client.free_chat("x").text == "fine"
        server.script(STREAM, steps.chunk(END), last)
        assert "".join(client.chat("x", stream=True).texts()) == "x"
    assert len(server.connections) == 1


def test_no_more_than_64_kib_is_drained(server: MisbehavingServer) -> None:
    """If the server sends more, the connection closes long before the 1 s drain time (C28)."""
    server.script(
        steps.event_stream(), steps.send(END), steps.split(4096, 0.005),
        steps.repeat_forever(b": more\n\n" * 512),
    )  # fmt: skip

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            stream = await client.chat("x", stream=True)
            assert [text async for text in stream.texts()] == ["x"]
            await asyncio.to_thread(server.wait_closed, server.requests[0].connection)

    asyncio.run(main())
    sent = server.requests[0].connection.sent_bytes
    assert DRAINED_BYTES <= sent <= 2 * DRAINED_BYTES, sent
