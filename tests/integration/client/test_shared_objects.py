"""One object in many threads at once: what is allowed works, all else is an error and no crash.

Most telling where threads run at once, in an interpreter without a GIL, and there with
ThreadSanitizer; see `scripts/check-free-threaded`. Objects without a server are in
`unit/test_many_threads.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import CHUNK, FINE, SILENT_STREAM
from support.client_children import KEY, eventually
from support.many_threads import at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

#: What a stream's reader is told where another reads, or closes it.
ENDED = (RuntimeError, errors.OperationCancelledError, errors.StreamInterruptedError)


def test_a_client_that_is_closed(server: MisbehavingServer) -> None:
    server.script(FINE, times=None)
    for _ in range(10):
        client = polymux.Client(server.url, KEY, retry=0)

        def work(thread: int) -> None:
            with contextlib.suppress(errors.OperationCancelledError, errors.InvalidRequestError):
                for _ in range(5):
                    assert client.free_chat("x").text == "fine"  # noqa: B023
                    if thread == 0:
                        client.close()  # noqa: B023

        at_once(work)
    assert eventually(lambda: not server.open_connections)


@pytest.mark.parametrize("end", ["closed", "dropped"])
def test_a_stream(end: str, server: MisbehavingServer) -> None:
    """Read by four threads, looked at by two, closed or dropped by the rest."""
    server.script(steps.event_stream(), steps.repeat_forever(CHUNK), times=None)
    with polymux.Client(server.url, KEY, retry=0, timeout=60) as client:
        for _ in range(6):
            held = [client.chat("x", stream=True)]
            over = threading.Event()

            def work(thread: int) -> int:
                with contextlib.suppress(IndexError):
                    return look(held[0], thread)  # noqa: B023
                return 0

            def look(stream: polymux.ChatStream, thread: int) -> int:
                if thread >= 6:
                    while stream.chunks < 50 and not over.is_set():  # noqa: B023
                        time.sleep(0.001)
                    over.set()  # noqa: B023
                    held.clear()  # noqa: B023
                    if end == "closed":
                        stream.close()
                    return 0
                read = 0
                while not over.is_set() or (end == "closed" and thread < 4):  # noqa: B023
                    if thread >= 4:
                        assert set(stream.text) <= {"x"}
                        assert (stream.finished, stream.usage) == (False, None)
                        assert stream.finish_reason is None
                        continue
                    try:
                        assert next(stream).content == "x"
                        read += 1
                    except ENDED as error:
                        if "one reader" not in str(error):
                            break
                return read

            stream = held[0] if end == "closed" else None
            read = sum(at_once(work))
            assert stream is None or stream.chunks == read == len(stream.text)
    assert eventually(lambda: not server.open_connections)


def test_an_async_client_in_loops_of_many_threads(reference: ReferenceServer) -> None:
    """All loops share one thread; streams of each go on at the same time."""
    client = polymux.AsyncClient(reference.url, KEY, timeout=120)

    async def call(text: str) -> None:
        assert (await client.chat(text)).text == f"You said: {text}"
        async with await client.chat(text, stream=True) as stream:
            assert "".join([one async for one in stream.texts()]) == f"You said: {text}"

    async def main(thread: int) -> None:
        for number in range(4):
            await asyncio.gather(*(call(f"{thread} {number} {one}") for one in range(5)))

    at_once(lambda thread: asyncio.run(main(thread)))
    asyncio.run(client.aclose())


def test_an_async_stream_that_other_threads_look_at_and_close(server: MisbehavingServer) -> None:
    server.script(steps.event_stream(), steps.repeat_forever(CHUNK), times=None)

    async def all_of(stream: polymux.AsyncChatStream) -> None:
        async for chunk in stream:
            assert chunk.content == "x"

    async def main(streams: list[polymux.AsyncChatStream], begun: threading.Barrier) -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0, timeout=60) as client:
            for _ in range(10):
                stream = await client.chat("x", stream=True)
                streams.append(stream)
                await asyncio.to_thread(begun.wait, 60)
                with pytest.raises(ENDED):
                    await all_of(stream)

    streams: list[polymux.AsyncChatStream] = []
    begun = threading.Barrier(4)

    def work(thread: int) -> None:
        if thread == 0:
            asyncio.run(main(streams, begun))
            return
        for number in range(10):
            begun.wait(60)
            stream = streams[number]
            while stream.chunks < 20:
                assert set(stream.text) <= {"x"}
                assert not stream.finished
                time.sleep(0)
            asyncio.run(stream.aclose())

    at_once(work, threads=4)


def test_one_awaitable(server: MisbehavingServer) -> None:
    """Awaited, closed and thrown into by threads with and without a loop: once at most."""
    server.script(*SILENT_STREAM, times=None)

    async def wait(thing: Any) -> Any:
        return await thing

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0, timeout=60) as client:
            for number in range(8):
                stream = await client.chat("x", stream=True)
                if number % 2:
                    assert (await anext(stream)).content == "x"
                awaitable: Any = anext(stream).__await__()  # type: ignore[attr-defined]
                given = await asyncio.to_thread(at_once, lambda thread: use(awaitable, thread))  # noqa: B023
                assert sum(given) <= 1
                await stream.aclose()

    def use(awaitable: Any, thread: int) -> int:
        """1 where it gave the chunk."""
        ways: list[Callable[[], Any]] = [
            lambda: next(awaitable),
            lambda: asyncio.run(wait(awaitable)),
            lambda: awaitable.throw(asyncio.CancelledError()),
            lambda: awaitable.close(),
        ]
        try:
            ways[thread % 4]()
        except StopIteration:
            return 1
        except (*ENDED, asyncio.CancelledError, AttributeError):
            pass
        return 0

    asyncio.run(main())
