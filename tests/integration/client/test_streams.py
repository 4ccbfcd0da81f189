"""Streams that are cut, damaged, slow or strange (C20 to C31)."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_children import KEY, MIB, run_json
from support.hostile_check import PATIENCE, SANITIZED

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer
    from servers.steps import Step

DONE = b"data: [DONE]\n\n"


def event(content: str, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, **more}
    return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n".encode()


def read(client: polymux.Client, server: MisbehavingServer, *play: Step) -> polymux.ChatStream:
    """A stream that is answered so, read to its end; it must end well."""
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
    """The error of such a stream. The text before it is kept, and told again when asked again."""
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
    server.script(steps.event_stream(), steps.send(event("x", finish_reason="stop") + DONE))
    assert "".join(client.chat("hello", stream=True).texts()) == "x"
    return caught.value


HELLO = steps.send(event("Hel") + event("lo"))


def test_cut_between_chunks(server: MisbehavingServer, client: polymux.Client) -> None:
    """C20: closed in order, or reset, before the end."""
    end = errors.StreamInterruptedError
    assert broken(end, client, server, steps.event_stream(), HELLO, steps.close()).chunks == 2
    play = steps.event_stream(), HELLO, steps.half_close(), steps.stall()
    broken(end, client, server, *play)
    # What came before a reset may be lost with it: here it has arrived.
    server.script(steps.event_stream(), HELLO, steps.sleep(0.3), steps.reset())
    stream = client.chat("hello", stream=True)
    assert [next(stream).content, next(stream).content] == ["Hel", "lo"]
    with pytest.raises(end):
        next(stream)


def test_cut_in_http_chunks(server: MisbehavingServer, client: polymux.Client) -> None:
    """C20: the connection ends where a chunk of HTTP is due, or within one."""
    for rest in (b"", b"5\r\nda", b"zz\r\n"):
        play = (
            steps.chunked_head(content_type="text/event-stream"),
            steps.chunk(event("Hel") + event("lo")), steps.send(rest), steps.close(),
        )  # fmt: skip
        kinds = (errors.StreamInterruptedError, errors.DecodeError)
        server.script(*play)
        stream = client.chat("hello", stream=True)
        with pytest.raises(kinds) as caught:
            list(stream)
        assert caught.value.text == "Hello"  # type: ignore[union-attr]


def test_cut_within_a_letter(server: MisbehavingServer, client: polymux.Client) -> None:
    """C21: within an event and within a letter's bytes; no U+FFFD is made of it."""
    whole = event("süß €")
    for end in range(1, len(whole) - 2):
        server.script(steps.event_stream(), HELLO, steps.send(whole[:end]), steps.close())
        stream = client.chat("hello", stream=True)
        with pytest.raises(errors.StreamInterruptedError) as caught:
            list(stream)
        assert stream.text == caught.value.text == "Hello"


def test_a_letter_in_two_halves(server: MisbehavingServer, client: polymux.Client) -> None:
    """C21: a server that escapes in UTF-16 cuts a character between two chunks."""
    frame = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'
    cases = [
        ((rb"a\ud83d", rb"\ude00b"), ["a", "\U0001f600b"]),
        ((rb"\uD83D", b"", rb"\uDE00"), ["", "", "\U0001f600"]),
        ((rb"a\ud83d", b"b"), ["a", "b"]),
        ((rb"\ude00x\ud83dy",), ["\ufffdx\ufffdy"]),
        ((rb"\\ud83d", rb"\\\ud83d"), ["\\ud83d", "\\"]),
    ]
    for parts, expected in cases:
        data = b"".join(frame % part for part in parts) + b"data: [DONE]\n\n"
        server.script(steps.event_stream(), steps.send(data), steps.close())
        stream = client.chat("hello", stream=True)
        chunks = list(stream)
        assert [chunk.content for chunk in chunks] == expected
        assert [chunk.choices[0].delta.content for chunk in chunks] == expected
        assert [one.json()["choices"][0]["delta"]["content"] for one in chunks] == expected
        assert stream.finished
        assert stream.text == "".join(expected)
    body = rb'{"choices":[{"message":{"role":"assistant","content":"a\ud83d\ude00\ud83d"}}]}'
    server.script(steps.answer(200, body))
    answer = client.chat("hello")
    assert answer.text == "a\U0001f600\ufffd"
    assert answer.raw == body


def test_an_error_within(server: MisbehavingServer, client: polymux.Client) -> None:
    """C22: as an event of its own name, or as a member of the data."""
    body = {"error": {"message": "out of cards", "type": "server_error", "code": "gpu"}}
    data = b"data: %b\n\n" % json.dumps(body).encode()
    for play in (data, b"event: error\n" + data):
        error = broken(
            errors.APIError, client, server,
            steps.event_stream(), HELLO, steps.send(play), steps.stall(),
        )  # fmt: skip
        assert (error.message, error.code, error.type) == ("out of cards", "gpu", "server_error")


@pytest.mark.parametrize("bad", [b"{", b"NaN", b'{"choices":[}', b"[1]", b'{"choices":[]}x'])
def test_wrong_json(bad: bytes, server: MisbehavingServer, client: polymux.Client) -> None:
    """C23: a chunk that is none."""
    play = steps.event_stream(), HELLO, steps.send(b"data: %b\n\n" % bad), steps.stall()
    error = broken(errors.DecodeError, client, server, *play)
    assert error.offset_bytes is not None


def test_every_split(server: MisbehavingServer) -> None:
    """C24: the text is the same however the bytes are cut and the lines are ended."""
    body = event("süß ") + b": still there\n\n" + event("€", finish_reason="stop") + DONE
    with polymux.Client(server.url, KEY, retry=0) as client:
        for line_end in (b"\n", b"\r\n", b"\r"):
            data = body.replace(b"\n", line_end)
            for at in range(1, len(data), 3):
                stream = read(client, server, steps.send(data[:at]), steps.send(data[at:]))
                assert stream.text == "süß €"
            stream = read(client, server, steps.split(1, 0), steps.send(data), steps.close())
            assert stream.text == "süß €"


def test_lines_of_all_kinds(server: MisbehavingServer, client: polymux.Client) -> None:
    """C25: comments, fields that do not matter, no blank after the colon, several data lines."""
    data = (
        b"\xef\xbb\xbf: first\nid: 7\nretry: 10\nevent: message\n"
        b'data:{"choices":[{"index":0,\ndata: "delta":{"content":"A"}}]}\n\n'
        b"data\n\nunknown: x\n\n: \n\n" + event("B", finish_reason="stop") + DONE
    )
    stream = read(client, server, steps.send(data))
    assert stream.text == "AB"


def test_a_line_without_end(server: MisbehavingServer) -> None:
    """C26: 16 MiB without a line end are refused, and so are endless comments by a deadline."""
    code = """
client = polymux.Client(url, key, retry=0, timeout=polymux.Timeout(event=5, first_byte=3))
list(client.chat("hello", stream=True))
before = status("VmHWM") * 1024
try:
    list(client.chat("hello", stream=True))
except polymux.PolymuxError as error:
    say(json.dumps([type(error).__name__, str(error), status("VmHWM") * 1024 - before]))
"""
    good = steps.event_stream(), steps.send(event("x", finish_reason="stop") + DONE)
    server.script(*good)
    server.script(steps.event_stream(), steps.send(b"data: "), steps.repeat_forever(b"x"))
    name, message, growth = run_json(code, server.url)
    assert name == "DecodeError", message
    assert SANITIZED or growth <= 64 * MIB, f"{growth / MIB:.0f} MiB"
    server.script(*good)
    server.script(steps.event_stream(), steps.repeat_forever(b": still there\n\n"))
    name, message, growth = run_json(code, server.url)
    assert name == "RequestTimeoutError", message
    assert "first_byte" in message
    assert SANITIZED or growth <= 64 * MIB, f"{growth / MIB:.0f} MiB"


def test_how_long_an_event_may_be(server: MisbehavingServer) -> None:
    """As the client was told; another one that shares its connections may take longer ones."""
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
    """C27: longer than the deadlines allow; bytes that are no chunk do not count as one."""
    deadlines = polymux.Timeout(first_byte=5, idle=0.5, event=20)
    with polymux.Client(server.url, KEY, retry=0, timeout=deadlines) as client:
        play = steps.event_stream(), HELLO, steps.stall()
        assert broken(errors.RequestTimeoutError, client, server, *play).limit == "idle"
    deadlines = polymux.Timeout(first_byte=5, idle=20, event=0.5)
    with polymux.Client(server.url, KEY, retry=0, timeout=deadlines) as client:
        comments = [one for _ in range(100) for one in (steps.send(b": on\n\n"), steps.sleep(0.05))]
        play = steps.event_stream(), HELLO, *comments
        assert broken(errors.RequestTimeoutError, client, server, *play).limit == "event"


def test_data_after_the_end(server: MisbehavingServer, client: polymux.Client) -> None:
    """C28: is ignored, and the connection let go."""
    body = event("x", finish_reason="stop") + DONE
    assert read(client, server, steps.send(body + event("more") + b"garbage")).text == "x"
    server.script(steps.event_stream(), steps.send(body), steps.repeat_forever(b": more\n\n"))
    stream = client.chat("hello", stream=True)
    assert "".join(stream.texts()) == "x"
    endless = server.requests[-1].connection
    # Somebody has to look at it: the next call does.
    for _ in range(20):
        assert read(client, server, steps.send(body)).text == "x"
        time.sleep(0.1)
        if endless.closed_at is not None:
            break
    server.wait_closed(endless)


def test_an_end_without_done(server: MisbehavingServer, client: polymux.Client) -> None:
    """C20: a finish reason says as much as [DONE] does."""
    assert read(client, server, steps.send(event("x", finish_reason="stop")), steps.close()).text


def test_plain_json_instead_of_a_stream(server: MisbehavingServer, client: polymux.Client) -> None:
    """C29: is read as one chunk; HTML and nothing are none."""
    body = {"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
    server.script(steps.answer(200, json.dumps(body).encode()))
    assert "".join(client.chat("hello", stream=True).texts()) == "Hello"
    for bad in (b"<html>busy</html>", b"null", b"[]", b"", b"{", b'{"choices":'):
        server.script(steps.answer(200, bad))
        with pytest.raises((errors.DecodeError, errors.StreamInterruptedError)):
            list(client.chat("hello", stream=True))


def test_a_stream_that_nobody_asked_for(server: MisbehavingServer, client: polymux.Client) -> None:
    """C30: is no answer to a request for a whole one."""
    server.script(steps.event_stream(), HELLO, steps.send(DONE), steps.close())
    with pytest.raises(errors.DecodeError):
        client.chat("hello")


def test_statuses_instead_of_a_stream(server: MisbehavingServer, client: polymux.Client) -> None:
    """C01, C22: the error comes from the call, before there is a stream."""
    server.script(steps.answer(429, b'{"error":"slower"}'))
    with pytest.raises(errors.RateLimitError, match="slower"):
        client.chat("hello", stream=True)
    server.script(steps.stall())
    with pytest.raises(errors.RequestTimeoutError):
        client.chat("hello", stream=True, timeout=polymux.Timeout(first_byte=0.3))


def test_chunks_with_nothing_in_them(server: MisbehavingServer, client: polymux.Client) -> None:
    """C31: no choices, counts alone, members nobody knows, an index that jumps."""
    usage = {"choices": [], "usage": {"total_tokens": 5}, "unknown": {"a": [1]}}
    body = (
        b'data: {"choices":[]}\n\n' + event("A") + b"data: %b\n\n" % json.dumps(usage).encode()
        + b'data: {"choices":[{"index":7,"delta":{"content":"other"}}]}\n\n'
        + event("B", finish_reason="stop") + DONE
    )  # fmt: skip
    server.script(steps.event_stream(), steps.send(body))
    stream = client.chat("hello", stream=True)
    contents = [chunk.content for chunk in stream]
    assert "A" in contents
    assert "B" in contents
    assert stream.usage.total_tokens == 5
    assert stream.text == "AB"


def test_text_that_looks_like_the_end(server: MisbehavingServer, client: polymux.Client) -> None:
    """C40: a content that holds an end of a stream is a content."""
    content = "\n\ndata: [DONE]\n\n\x00\x1b[2J"
    body = event(content) + event("!", finish_reason="stop") + DONE
    assert read(client, server, steps.send(body)).text == content + "!"


def test_a_slow_stream(server: MisbehavingServer) -> None:
    """C37, in short: many times longer than every deadline between two chunks, and it completes."""
    deadlines = polymux.Timeout(first_byte=1, idle=1, event=1)
    words = [one for i in range(40) for one in (steps.send(event(f"{i} ")), steps.sleep(0.1))]
    with polymux.Client(server.url, KEY, retry=0, timeout=deadlines) as client:
        stream = read(client, server, *words, steps.send(event("", finish_reason="stop") + DONE))
    assert stream.text.split() == [str(i) for i in range(40)]


def test_a_slow_reader(server: MisbehavingServer) -> None:
    """C35: whoever does not read makes the server wait, and no memory is filled."""
    code = """
client = polymux.Client(url, key, retry=0, timeout=polymux.Timeout(idle=60, event=60))
stream = client.chat("hello", stream=True)
next(stream)
before = status("VmRSS") * 1024
time.sleep(1.5)
for _ in range(20_000):
    next(stream)
say(json.dumps(status("VmRSS") * 1024 - before - len(stream.text)))
stream.close()
"""
    server.script(steps.event_stream(), steps.repeat_forever(event("x" * 100)))
    assert run_json(code, server.url) <= 16 * MIB


def test_a_slow_reader_of_asyncio(server: MisbehavingServer) -> None:
    """C35: the same where a thread reads beside the reader."""
    code = """
async def main():
    async with polymux.AsyncClient(url, key, retry=0) as client:
        stream = await client.chat("hello", stream=True)
        await anext(stream)
        before = status("VmRSS") * 1024
        await asyncio.sleep(1.5)
        say(json.dumps(status("VmRSS") * 1024 - before))
        await stream.aclose()
asyncio.run(main())
"""
    server.script(steps.event_stream(), steps.repeat_forever(event("x" * 1000)))
    assert run_json(code, server.url) <= 16 * MIB
    server.wait_closed(server.connections[-1])


async def reads_stop(server: MisbehavingServer) -> None:
    """The server cannot send on, beyond the stream's 1 MiB and what both kernels hold."""
    async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
        stream = await client.chat("hello", stream=True)
        await anext(stream)
        sent = -1
        while sent != (sent := server.connections[-1].sent_bytes):
            await asyncio.sleep(0.5)
        assert sent <= 16 * MIB
        for _ in range(40_000):
            await anext(stream)
        assert server.connections[-1].sent_bytes > sent
        await stream.aclose()


def test_a_server_is_made_to_wait(server: MisbehavingServer) -> None:
    """C35: what nobody reads is not taken from the socket; it is again when somebody does."""
    server.script(steps.event_stream(), steps.repeat_forever(event("x" * 1000)))
    asyncio.run(asyncio.wait_for(reads_stop(server), 30 * PATIENCE))
    server.wait_closed(server.connections[-1])


def test_a_hundred_thousand_small_chunks(server: MisbehavingServer) -> None:
    """C46: each byte by itself, and each letter an event: no work grows with the square."""
    body = b"".join(event("x") for _ in range(100_000)) + event("", finish_reason="stop") + DONE
    with polymux.Client(server.url, KEY, retry=0) as client:
        server.script(steps.event_stream(), steps.send(body))
        begun = time.process_time()
        stream = client.chat("hello", stream=True)
        assert sum(len(one) for one in stream.texts()) == 100_000
        assert stream.text == "x" * 100_000
        assert SANITIZED or time.process_time() - begun <= 10
        small = body[: len(event("x")) * 1000]
        play = steps.split(1, 0), steps.send(small), steps.close()
        server.script(steps.event_stream(), *play)
        with pytest.raises(errors.StreamInterruptedError) as caught:
            list(client.chat("hello", stream=True))
        assert caught.value.text == "x" * 1000


def test_a_compressed_stream_is_told_as_such(server: MisbehavingServer) -> None:
    """RFC 9110, 12.5.3: who names no coding may get any; a proxy's is not a broken connection."""
    packed = gzip.compress(b"data: [DONE]\n\n")
    server.script(steps.event_stream([("Content-Encoding", "gzip")]), steps.send(packed))
    with (
        polymux.Client(server.url, KEY, retry=0) as client,
        pytest.raises(errors.DecodeError, match="the stream is compressed, which it was asked not"),
    ):
        list(client.chat("hello", stream=True))
    assert server.requests[0].header("accept-encoding") == "identity"
