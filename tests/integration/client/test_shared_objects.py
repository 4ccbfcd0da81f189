"""One object used by many threads at once: allowed uses work, all others raise an error and never
crash.

These tests find most without a GIL, in particular with ThreadSanitizer: see
`scripts/check-free-threaded`. `unit/test_many_threads.py` tests objects that need no server.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import CHUNK, FINE
from support.client_children import KEY, eventually
from support.many_threads import at_once

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

#: Errors for a reader whose stream another thread reads or closes.
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
    """Four threads read, two inspect, and the others close or drop the stream."""
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
                        if not isinstance(error, RuntimeError):
                            break
                return read

            stream = held[0] if end == "closed" else None
            read = sum(at_once(work))
            assert stream is None or stream.chunks == read == len(stream.text)
    assert eventually(lambda: not server.open_connections)


def test_an_async_client_in_loops_of_many_threads(reference: ReferenceServer) -> None:
    """All loops share one thread. Streams of every loop progress at the same time."""
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
