"""`measure WAY COUNT`: cost of a chunk that is already decoded, above a loop over a list."""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator

EVENT = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n'
)
END = b"data: [DONE]\n\n"


def loop_ns(chunks: Iterator[object]) -> int:
    """Return this thread's CPU time for a loop over all chunks, in ns."""
    began = time.thread_time_ns()
    for _ in chunks:
        pass
    return time.thread_time_ns() - began


def sync(count: int) -> int:
    """Read from the decoder, which decodes a whole piece when its first chunk is requested."""
    from polymux import decode_chat_stream

    stream = iter(decode_chat_stream([EVENT * (count + 1) + END]))
    next(stream)
    return loop_ns(stream)


def bound(count: int) -> int:
    from benchmarks.handover.bound import module

    return loop_ns(iter(module().Chunks(" word", count)))


async def ready(count: int) -> int:
    """Read as an asyncio client does after a piece has arrived."""
    from polymux.aio import decode_chat_stream

    async def body() -> AsyncIterator[bytes]:
        yield EVENT * (count + 1) + END

    stream = decode_chat_stream(body())
    await anext(stream)
    began = time.thread_time_ns()
    async for _ in stream:
        pass
    return time.thread_time_ns() - began


def main() -> None:
    way, count = sys.argv[1], int(sys.argv[2])
    gc.disable()
    ns: list[int] = []
    for _ in range(2):
        if way == "ready":
            ns.append(asyncio.run(ready(count)))
        else:
            ns.append({"sync": sync, "bound": bound}[way](count))
    plain = min(loop_ns(iter([object()] * count)) for _ in range(3))
    print(json.dumps({"count": count, "spent_ns": ns[-1], "above_ns": ns[-1] - plain}))


if __name__ == "__main__":
    main()
