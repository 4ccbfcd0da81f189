from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import aio
from support import chat_streams
from support.chat_streams import DONE, SERVERS, event
from support.memory import leaves_nothing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

HELLO = b"".join(event({"choices": [{"index": 0, "delta": {"content": t}}]}) for t in ("Hel", "lo"))


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


async def later(parts: Iterator[bytes] | list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        await asyncio.sleep(0)
        yield part


def facts(stream: Any) -> list[tuple[Any, ...]]:
    return [(c.content, c.finish_reason, c.role, c.index, c.reasoning, c.raw) for c in stream]


def contents(parts: Any) -> list[str]:
    return [chunk.content for chunk in polymux.decode_chat_stream(parts)]


def expected(body: bytes) -> list[tuple[Any, ...]]:
    """The chunks as Python's json module reads them."""
    found = []
    for line in body.splitlines():
        if line.startswith(b"data: {"):
            raw = line.removeprefix(b"data: ")
            choice = (json.loads(raw)["choices"] or [{}])[0]
            delta = choice.get("delta", {})
            texts = delta.get("content") or "", delta.get("reasoning") or ""
            details = choice.get("finish_reason"), delta.get("role"), choice.get("index")
            found.append((texts[0], *details, texts[1], raw))
    return found


@pytest.mark.parametrize("server", SERVERS)
def test_the_account_of_an_answer(server: str) -> None:
    texts = chat_streams.words(30)
    body = SERVERS[server](texts)
    stream = polymux.decode_chat_stream(pieces(body, 100))
    read = ""
    for number, chunk in enumerate(stream, 1):
        read += chunk.content
        assert stream.text == read
        assert stream.chunks == number
        assert not stream.finished or number > len(texts)
    assert stream.finished
    assert stream.finish_reason == "stop"
    if server != "ollama":
        total = body.split(b'"total_tokens":')[-1].split(b"}")[0].split(b",")[0]
        assert stream.usage.total_tokens == json.loads(total)


def test_the_async_twin_gives_the_same() -> None:
    async def read(body: bytes, size: int) -> tuple[list[Any], Any]:
        stream = aio.decode_chat_stream(later(list(pieces(body, size))))
        chunks = [chunk async for chunk in stream]
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        return facts(chunks), (stream.text, stream.finished, stream.finish_reason)

    for make in SERVERS.values():
        texts = chat_streams.words(20)
        body = make(texts)
        for size in (7, 10**6):
            chunks, account = asyncio.run(read(body, size))
            assert chunks == expected(body)
            assert account == ("".join(texts), True, "stop")


#: Text inserted into streams: delimiters of strings, lines and events, and invalid bytes.
ODD = [
    b"",
    b'"',
    b"\\",
    b"\n",
    b"\r",
    b"\n\n",
    b"\xff",
    b"\0",
    rb"\ud83d",
    b"[DONE]",
    b'"error":"x",',
]


def outcome(parts: list[bytes]) -> tuple[list[tuple[Any, ...]], str]:
    """The chunks of a stream, and its end: "finished" or the name of the exception."""
    stream = polymux.decode_chat_stream(parts)
    found = []
    try:
        while chunk := next(stream, None):
            found.append(chunk)
    except polymux.PolymuxError as error:
        return facts(found), type(error).__name__
    return facts(found), "finished"


def test_mutated_streams() -> None:
    """The result does not depend on how the bytes are split."""
    choose = random.Random(20_261_123)
    ends = set()
    for _ in range(500):
        make = choose.choice([*SERVERS.values()])
        whole = make(chat_streams.words(choose.randrange(1, 12)))
        body = bytearray(whole.replace(b"\n", choose.choice([b"\n", b"\r\n", b"\r"])))
        for _ in range(choose.randrange(4)):
            at = choose.randrange(len(body))
            body[at : at + choose.choice([0, 0, 1, 10, 100])] = choose.choice(ODD)
        if choose.random() < 0.2:
            del body[choose.randrange(1, len(body)) :]
        cuts = sorted(choose.choices(range(len(body)), k=choose.choice([1, 3, 10, 100])))
        parts = [bytes(body[begin:end]) for begin, end in pairwise([0, *cuts, len(body)])]
        found = outcome([bytes(body)])
        assert outcome(parts) == found, body
        ends.add(found[1])
    assert ends >= {"finished", "StreamInterruptedError", "DecodeError"}


async def fail_async(body: list[bytes]) -> None:
    async for _ in aio.decode_chat_stream(later(body)):
        pass


def fail_sync(body: list[bytes]) -> None:
    for _ in polymux.decode_chat_stream(body):
        pass


BOTH = pytest.mark.parametrize(
    "consume", [fail_sync, lambda body: asyncio.run(fail_async(body))], ids=["sync", "async"]
)


@BOTH
def test_a_cut_stream_raises_and_keeps_its_text(consume: Callable[[list[bytes]], None]) -> None:
    with pytest.raises(polymux.StreamInterruptedError) as caught:
        consume([HELLO, b'data: {"choi'])
    assert (caught.value.text, caught.value.chunks) == ("Hello", 2)
    assert caught.value.offset_bytes == len(HELLO) + 12
    assert not caught.value.retry_safe  # The source of the bytes is unknown.
    with pytest.raises(polymux.StreamInterruptedError, match=r"(?i)empty"):
        consume([])


@BOTH
def test_a_reported_failure_is_an_api_error(consume: Callable[[list[bytes]], None]) -> None:
    failure = {"message": "too\x1b busy", "type": "server_error", "code": "full", "param": "n\n"}
    with pytest.raises(polymux.APIError, match=r"too\\x1b busy") as caught:
        consume([HELLO + event({"error": failure}) + HELLO])
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.type, error.code, error.param) == ("server_error", "full", r"n\n")
        assert (error.text, error.chunks) == ("Hello", 2)
    with pytest.raises(polymux.APIError, match="no token") as bare:
        consume([b'{"error": "no token"}'])
    assert (bare.value.code, bare.value.type) == ("api_error", None)


@pytest.mark.parametrize(
    "error",
    [
        {"detail": "it broke"},
        {"detail": [{"loc": ["body"], "msg": "it broke", "type": "missing"}]},
        {"code": 500, "message": "it broke"},
        {"type": "error", "message": "it broke"},
        {"errors": [{"message": "it broke"}]},
        {"error": True, "message": "it broke"},
        [{"error": {"message": "it broke"}}],
    ],
)
def test_errors_of_other_servers(error: Any) -> None:
    """In an event without a type, and as the whole body, also with status 200."""
    for body in (event(error), json.dumps(error).encode()):
        with pytest.raises(polymux.APIError, match=r"^it broke$"):
            list(polymux.decode_chat_stream([body]))


def choice(index: int, text: str, reason: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": {"content": text}, "finish_reason": reason}


def test_a_last_chunk_that_repeats_the_whole_answer() -> None:
    message = {"role": "assistant", "content": "Hello", "reasoning_content": "Hm"}
    whole = {"index": 0, "finish_reason": "stop", "message": message}
    stream = polymux.decode_chat_stream([HELLO + event({"choices": [whole]})])
    chunks = list(stream)
    assert stream.text == "Hello" == "".join(chunk.content for chunk in chunks)
    assert chunks[-1].reasoning == ""
    assert stream.finish_reason == "stop"
    # Passed on as chunks, for example by an upstream.
    passed_on = polymux.decode_chat_stream([*chunks, DONE])
    assert list(passed_on) == chunks
    assert passed_on.text == "Hello"
    only = polymux.decode_chat_stream([event({"choices": [whole]}) + DONE])
    assert (next(only).reasoning, list(only), only.text) == ("Hm", [], "Hello")


def test_several_answers_in_one_stream() -> None:
    """Totals are those of the first answer, whatever the order of the others."""
    stream = polymux.decode_chat_stream(
        [
            event({"choices": [choice(1, "B"), choice(0, "A")]}),
            event({"choices": [choice(0, "a", "length")]}),
            event({"choices": [choice(1, "b", "stop")]}),
            DONE,
        ]
    )
    assert [(chunk.index, chunk.content) for chunk in stream] == [(0, "A"), (0, "a"), (1, "b")]
    assert (stream.text, stream.finish_reason) == ("Aa", "length")


def test_a_half_of_a_character_without_the_other() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'
    for parts in ([b"a\\ud83d", b"b", b"c"], [b"a\\ud83d", b"b\\ud83d", b"\\ude00c"]):
        stream = polymux.decode_chat_stream([body % part for part in parts] + [DONE])
        assert "".join(stream.texts()) == "a\ufffdb" + (
            "c" if len(parts[1]) == 1 else "\U0001f600c"
        )


def test_values_that_other_parsers_refuse() -> None:
    """Numbers beyond 64 bits, and token counts within the choice."""
    large = event({"choices": [choice(0, "x")], "created": 10**30, "seed": 1.5}).replace(
        b"1.5", b"1e999"
    )
    end = choice(0, "", "stop") | {"usage": {"total_tokens": 7}}
    stream = polymux.decode_chat_stream([large, event({"choices": [end]}), DONE])
    assert next(stream).created == 10**30
    assert [chunk.usage.total_tokens for chunk in stream] == [7]
    assert stream.text == "x"
    assert stream.usage.total_tokens == 7
    with pytest.raises(polymux.DecodeError):
        list(polymux.decode_chat_stream([b'data: {"choices":[],"created":012345678901234567}\n\n']))


@BOTH
def test_what_is_no_stream_is_a_decode_error(consume: Callable[[list[bytes]], None]) -> None:
    with pytest.raises(polymux.DecodeError) as caught:
        consume([HELLO, b"data: {]\n\n", HELLO])
    assert caught.value.offset_bytes == len(HELLO) + 6
    assert caught.value.text == "Hello"
    with pytest.raises(polymux.DecodeError):
        consume([b"<html>"])
    with pytest.raises(polymux.DecodeError, match="UTF-8"):
        consume([b'data: {"a":"\xff"}\n\n'])


def test_the_error_stays_and_done_stays() -> None:
    stream = polymux.decode_chat_stream([HELLO])
    assert [next(stream).content, next(stream).content] == ["Hel", "lo"]
    for _ in range(2):
        with pytest.raises(polymux.StreamInterruptedError):
            next(stream)
    assert not stream.finished
    stream = polymux.decode_chat_stream(iter([HELLO + DONE, b"data: {bad"]))
    assert len(list(stream)) == 2
    assert list(stream) == []
    assert stream.finished


def test_after_done_the_source_is_left_alone() -> None:
    source = iter([HELLO, DONE, b"more"])
    assert len(list(polymux.decode_chat_stream(source))) == 2
    assert next(source) == b"more"


def test_an_event_over_the_limit() -> None:
    with pytest.raises(polymux.DecodeError, match="100"):
        list(polymux.decode_chat_stream([b"data: " + b"x" * 200], max_event_bytes=100))
    for limit in (0, (1 << 30) + 1):
        with pytest.raises(polymux.InvalidRequestError, match="max_event_bytes"):
            polymux.decode_chat_stream([], max_event_bytes=limit)


def test_what_the_source_raises_is_passed_on() -> None:
    def broken() -> Iterator[bytes]:
        yield HELLO
        raise LookupError("mine")

    stream = polymux.decode_chat_stream(broken())
    with pytest.raises(LookupError, match="mine"):
        list(stream)
    assert stream.text == "Hello"


def test_pieces_may_be_any_bytes_and_nothing_else() -> None:
    with pytest.raises(TypeError, match=r"\bstr\b"):
        contents(["data: x"])
    with pytest.raises(TypeError):
        contents(5)
    for make in (bytes, bytearray, memoryview):
        assert contents([make(HELLO + DONE)]) == contents(make(HELLO + DONE)) == ["Hel", "lo"]


def test_one_reader_at_a_time() -> None:
    def nosy() -> Iterator[bytes]:
        with pytest.raises(RuntimeError):
            next(stream)
        yield HELLO + DONE

    stream = polymux.decode_chat_stream(nosy())
    assert len(list(stream)) == 2

    async def two() -> None:
        shared = aio.decode_chat_stream(later([HELLO + DONE]))
        done = await asyncio.gather(anext(shared), anext(shared), return_exceptions=True)
        assert [type(value) for value in done] == [polymux.ChatChunk, RuntimeError]

    asyncio.run(two())


def test_closing_closes_the_source() -> None:
    closed = []

    def source() -> Iterator[bytes]:
        try:
            yield HELLO
        finally:
            closed.append("sync")

    async def a_source() -> AsyncIterator[bytes]:
        with contextlib.closing(source()) as pieces:
            for piece in pieces:
                yield piece

    async def leave() -> None:
        async with aio.decode_chat_stream(a_source()) as stream:
            assert (await anext(stream)).content == "Hel"

    with polymux.decode_chat_stream(source()) as stream:
        assert next(stream).content == "Hel"
    assert closed == ["sync"]
    assert next(stream).content == "lo"
    with pytest.raises(polymux.StreamInterruptedError):
        next(stream)
    asyncio.run(leave())
    assert closed == ["sync", "sync"]


def test_a_cancelled_wait_leaves_the_stream_readable() -> None:
    async def run() -> None:
        async def source() -> AsyncIterator[bytes]:
            yield HELLO
            await asyncio.Event().wait()

        stream = aio.decode_chat_stream(source())
        assert [(await anext(stream)).content for _ in range(2)] == ["Hel", "lo"]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream), 0.01)
        assert stream.text == "Hello"
        with pytest.raises(polymux.StreamInterruptedError):  # The canceled generator has ended.
            await anext(stream)

    asyncio.run(run())


def test_a_thousand_streams_leave_nothing() -> None:
    body = chat_streams.vllm(chat_streams.words(20))

    def use() -> None:
        list(polymux.decode_chat_stream(pieces(body, 333)))
        next(polymux.decode_chat_stream(pieces(body, 333)))  # dropped before its end
        polymux.ChatChunk(b'{"response":"x"}').json()

    leaves_nothing(use)
