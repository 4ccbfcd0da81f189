"""Streams that are cut, damaged, slow or unusual (C20 to C31 in docs/development/testing.md)."""

from __future__ import annotations

import asyncio
import gzip
import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import END
from support.client_children import KEY, MIB, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer
    from servers.steps import Step

DONE = b"data: [DONE]\n\n"


def event(content: str, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, **more}
    return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n".encode()


def read(client: polymux.Client, server: MisbehavingServer, *play: Step) -> polymux.ChatStream:
    """Read a stream to its end and check that it finished normally."""
    server.script(steps.event_stream(), *play)
    stream = client.chat("hello", stream=True)
    for _ in stream:
        pass
    assert stream.finished
    return stream


def broken(
    kind: type[polymux.PolymuxError],
    client: polymux.Client,
    server: MisbehavingServer,
    *play: Step,
    text: str = "Hello",
) -> Any:
    """Return a stream's error. Earlier text remains, and reading again raises the same error."""
    server.script(*play)
    stream = client.chat("hello", stream=True)
    with pytest.raises(kind) as caught:
        for _ in stream:
            pass
    assert type(caught.value) is kind
    assert stream.text == text
    assert caught.value.text == text  # type: ignore[attr-defined]
    assert not stream.finished
    with pytest.raises(kind):
        next(stream)
    server.wait_closed(server.requests[-1].connection)
    server.script(steps.event_stream(), steps.send(END))
    assert "".join(client.chat("hello", stream=True).texts()) == "x"
    return caught.value


HELLO = steps.send(event("Hel") + event("lo"))


def test_cut_between_chunks(server: MisbehavingServer, client: polymux.Client) -> None:
    """Closed normally or reset before the end (C20)."""
    end = errors.StreamInterruptedError
    assert broken(end, client, server, steps.event_stream(), HELLO, steps.close()).chunks == 2
    play = steps.event_stream(), HELLO, steps.half_close(), steps.stall()
    broken(end, client, server, *play)
    # A reset may discard data that was not received. The pause ensures that it was.
    server.script(steps.event_stream(), HELLO, steps.sleep(0.3), steps.reset())
    stream = client.chat("hello", stream=True)
    assert [next(stream).content, next(stream).content] == ["Hel", "lo"]
    with pytest.raises(end):
        next(stream)


FAILURE = b'data: {"error":{"message":"no cards","type":"server_error","code":"gpu"}}\n\n'


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (FAILURE, errors.APIError),
        (b"event: error\n" + FAILURE, errors.APIError),
        (b"data: {\n\n", errors.DecodeError),
        (b"data: [1]\n\n", errors.DecodeError),
    ],
)
def test_an_error_within(
    data: bytes, kind: Any, server: MisbehavingServer, client: polymux.Client
) -> None:
    """As an error event, as a member of the data, or as an invalid chunk (C22 and C23)."""
    play = steps.event_stream(), HELLO, steps.send(data), steps.stall()
    error = broken(kind, client, server, *play)
    if kind is errors.APIError:
        assert (error.message, error.code, error.type) == ("no cards", "gpu", "server_error")
    else:
        assert error.offset_bytes is not None


@pytest.mark.parametrize("rest", [b"", b"5\r\nda", b"zz\r\n"])
def test_cut_in_http_chunks(rest: bytes, server: MisbehavingServer, client: polymux.Client) -> None:
    """The connection ends between two HTTP chunks or within one (C20)."""
    hello = steps.chunk(event("Hel") + event("lo"))
    head = steps.chunked_head(content_type="text/event-stream")
    server.script(head, hello, steps.send(rest), steps.close())
    with pytest.raises((errors.StreamInterruptedError, errors.DecodeError)) as caught:
        list(client.chat("hello", stream=True))
    assert caught.value.text == "Hello"  # type: ignore[union-attr]


def test_a_line_without_end(server: MisbehavingServer) -> None:
    """16 MiB without a line end raise an error (C26)."""
    code = """
client = polymux.Client(url, key, retry=0)
list(client.chat("hello", stream=True))
before = status("VmHWM") * 1024
try:
    list(client.chat("hello", stream=True))
except polymux.DecodeError:
    say(json.dumps(status("VmHWM") * 1024 - before))
"""
    server.script(steps.event_stream(), steps.send(END))
    server.script(steps.event_stream(), steps.send(b"data: "), steps.repeat_forever(b"x"))
    growth = run_json(code, server.url)
    assert SANITIZED or growth <= 64 * MIB, f"{growth / MIB:.0f} MiB"


def test_how_long_an_event_may_be(server: MisbehavingServer) -> None:
    """The client's limit applies. A client that shares its connections may have a higher one."""
    long = event("x" * 9000), event("", finish_reason="stop"), DONE
    with polymux.Client(server.url, KEY, retry=0, max_event_bytes=8000) as client:
        play = steps.event_stream(), HELLO, steps.send(long[0])
        assert "8000" in str(broken(errors.DecodeError, client, server, *play))
        server.script(steps.event_stream(), *map(steps.send, long))
        patient = client.with_options(max_event_bytes=10_000)
        assert "".join(patient.chat("hello", stream=True).texts()) == "x" * 9000
    for wrong, kind in ((0, errors.InvalidRequestError), (1 << 31, errors.InvalidRequestError),
                        (1.5, TypeError), (True, TypeError)):  # fmt: skip
        with pytest.raises(kind, match="max_event_bytes"):
            polymux.AsyncClient(server.url, KEY, max_event_bytes=wrong)  # type: ignore[arg-type]


def test_silence(server: MisbehavingServer) -> None:
    """Deadlines expire. Bytes that are not a chunk do not restart them (C27)."""
    deadlines = polymux.Timeout(first_byte=5, idle=0.5, event=20)
    with polymux.Client(server.url, KEY, retry=0, timeout=deadlines) as client:
        play = steps.event_stream(), HELLO, steps.stall()
        assert broken(errors.RequestTimeoutError, client, server, *play).limit == "idle"
    deadlines = polymux.Timeout(first_byte=5, idle=20, event=0.5)
    with polymux.Client(server.url, KEY, retry=0, timeout=deadlines) as client:
        comments = [one for _ in range(100) for one in (steps.send(b": on\n\n"), steps.sleep(0.05))]
        play = steps.event_stream(), HELLO, *comments
        assert broken(errors.RequestTimeoutError, client, server, *play).limit == "event"


def test_plain_json_instead_of_a_stream(server: MisbehavingServer, client: polymux.Client) -> None:
    """JSON is read as one chunk. HTML and an empty body raise an error (C29)."""
    body = {"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
    server.script(steps.answer(200, json.dumps(body).encode()))
    assert "".join(client.chat("hello", stream=True).texts()) == "Hello"
    for bad in (b"<html>busy</html>", b"null", b"[]", b"", b"{", b'{"choices":'):
        server.script(steps.answer(200, bad))
        with pytest.raises((errors.DecodeError, errors.StreamInterruptedError)):
            list(client.chat("hello", stream=True))


def test_a_stream_that_nobody_asked_for(server: MisbehavingServer, client: polymux.Client) -> None:
    """A stream is an invalid response to a request without `stream` (C30)."""
    server.script(steps.event_stream(), HELLO, steps.send(DONE), steps.close())
    with pytest.raises(errors.DecodeError):
        client.chat("hello")


def test_statuses_instead_of_a_stream(server: MisbehavingServer, client: polymux.Client) -> None:
    """The call itself raises the error, before there is a stream (C01 and C22)."""
    server.script(steps.answer(429, b'{"error":"slower"}'))
    with pytest.raises(errors.RateLimitError, match="slower"):
        client.chat("hello", stream=True)
    server.script(steps.stall())
    with pytest.raises(errors.RequestTimeoutError):
        client.chat("hello", stream=True, timeout=polymux.Timeout(first_byte=0.3))


def test_a_slow_stream(server: MisbehavingServer) -> None:
    """Longer than every deadline, but with short pauses, so it completes. A short form of C37."""
    deadlines = polymux.Timeout(first_byte=1, idle=1, event=1)
    words = [one for i in range(20) for one in (steps.send(event(f"{i} ")), steps.sleep(0.1))]
    with polymux.Client(server.url, KEY, retry=0, timeout=deadlines) as client:
        stream = read(client, server, *words, steps.send(event("", finish_reason="stop") + DONE))
    assert stream.text.split() == [str(i) for i in range(20)]


def test_a_slow_reader(server: MisbehavingServer) -> None:
    """A slow reader makes the server wait and memory does not grow (C35)."""
    code = """
client = polymux.Client(url, key, retry=0, timeout=polymux.Timeout(idle=60, event=60))
stream = client.chat("hello", stream=True)
next(stream)
before = status("VmRSS") * 1024
time.sleep(0.8)
for _ in range(20_000):
    next(stream)
say(json.dumps(status("VmRSS") * 1024 - before - len(stream.text)))
stream.close()
"""
    server.script(steps.event_stream(), steps.repeat_forever(event("x" * 100)))
    assert run_json(code, server.url) <= 16 * MIB


def test_a_compressed_stream_is_a_decode_error(
    server: MisbehavingServer, client: polymux.Client
) -> None:
    """Without Accept-Encoding a server may choose any encoding (RFC 9110, 12.5.3). A compressed
    stream is not reported as a lost connection.
    """
    packed = gzip.compress(b"data: [DONE]\n\n")
    server.script(steps.event_stream([("Content-Encoding", "gzip")]), steps.send(packed))
    with pytest.raises(errors.DecodeError):
        list(client.chat("hello", stream=True))
    assert server.requests[0].header("accept-encoding") == "identity"


#: The amount that the client buffers of an unread stream. Further data waits.
KEPT = event("x" * 900) * (MIB // len(event("x" * 900)) + 1)
COMMENTS = b": nothing to say\n" * (2 * MIB // 17)
HELD: list[tuple[bytes, type[errors.PolymuxError] | None]] = [
    (b"data: {no json\n\n", errors.DecodeError),
    (b'data: {"error": {"message": "out of luck"}}\n\n', errors.APIError),
    (DONE, None),
]


def test_what_was_held_back_ends_the_stream(server: MisbehavingServer) -> None:
    """The stream and its connection end correctly, whether or not more data follows."""

    async def read(client: polymux.AsyncClient, failure: Any) -> None:
        count = 0
        stream = await client.chat("hello", stream=True)
        await asyncio.sleep(1.5)  # Longer than it takes to send all buffered data.
        with nullcontext() if failure is None else pytest.raises(failure):
            async for _ in stream:
                count += 1
        assert count == KEPT.count(b"data:")

    async def main() -> None:
        reading = []
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            for held, failure in HELD:
                for more in (b"", COMMENTS):
                    path = f"/{len(reading)}"
                    play = steps.send(KEPT), steps.sleep(0.5), steps.send(held + more)
                    server.script(steps.event_stream(), *play, steps.stall(), path=path)
                    own = client.with_options(paths={"chat": path})
                    reading.append(read(own, failure))
            await asyncio.gather(*reading)
            for request in server.requests:
                await asyncio.to_thread(server.wait_closed, request.connection)

    asyncio.run(main())
