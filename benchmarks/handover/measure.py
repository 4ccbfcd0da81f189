"""measure WAY COUNT [URL]: what a chunk costs that is decoded already, above a loop over a list."""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Iterator

EVENT = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n'
)
END = b"data: [DONE]\n\n"
#: As many as a stream keeps ready; the rest of a fast answer waits in its socket.
READY = 1_000


def loop_ns(chunks: Iterator[object]) -> int:
    """Of this thread, for all of them."""
    began = time.thread_time_ns()
    for _ in chunks:
        pass
    return time.thread_time_ns() - began


def sync(count: int) -> int:
    """From the decoder, which decodes a whole piece when its first chunk is asked for."""
    from polymux import decode_chat_stream

    stream = iter(decode_chat_stream([EVENT * (count + 1) + END]))
    next(stream)
    return loop_ns(stream)


def bound(count: int) -> int:
    """Objects of pybind11."""
    from benchmarks.handover.bound import module

    return loop_ns(iter(module().Chunks(" word", count)))


async def ready(count: int, url: str) -> int:
    """From a client of asyncio, after a while in which the server sent more than is kept ready."""
    from polymux import AsyncClient

    from benchmarks.requests.conversation import KEY, MESSAGES, MODEL

    client = AsyncClient(url, KEY, chat_model=MODEL)
    at = client.with_options(paths={"chat": f"/stream?tokens={4 * READY}&rate=0"})
    spent_ns = 0
    for _ in range(count // READY):
        stream = await at.chat(MESSAGES, stream=True)
        await anext(stream)
        await asyncio.sleep(0.1)
        taken, began = 0, time.thread_time_ns()
        async for _ in stream:
            taken += 1
            if taken == READY:
                break
        spent_ns += time.thread_time_ns() - began
        await stream.aclose()
    await client.aclose()
    return spent_ns


def main() -> None:
    """Measures one way after a trial."""
    way, count = sys.argv[1], int(sys.argv[2])
    gc.disable()
    ns: list[int] = []
    for _ in range(2):
        if way == "ready":
            ns.append(asyncio.run(ready(count, sys.argv[3])))
        else:
            ns.append({"sync": sync, "bound": bound}[way](count))
    plain = min(loop_ns(iter([object()] * count)) for _ in range(3))
    print(json.dumps({"count": count, "spent_ns": ns[-1], "above_ns": ns[-1] - plain}))


if __name__ == "__main__":
    main()
