"""`local WAY COUNT`: cost of a chat token in a program that uses `Local`, without a server.

The engine does nothing and runs in its own process, which is not counted. The figure is the time
that the program's process spends between the engine's pipe and the calling loop.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time

from polymux import AsyncLocal, Local
from polymux.runtime.settings import EngineSettings

from benchmarks.server.conversation import STREAM
from benchmarks.server.engines import FAMILY

#: Tokens per second of the engine: slow enough for most tokens to arrive one by one.
RATE = 5_000
ENGINES = {"noop": EngineSettings(FAMILY, {"max_concurrency": 1}, operations=("chat",))}


def messages(tokens: int) -> list[dict[str, str]]:
    """Return the messages that make the engine stream `tokens` tokens."""
    return [{"role": "user", "content": f"{STREAM} {tokens} {RATE}"}]


def sync(store: str, tokens: int) -> float:
    """Return the CPU seconds of one stream."""
    with Local(folder=store, engines=ENGINES) as local:
        for count in (50, tokens):
            began = time.process_time()
            with local.chat(messages(count), stream=True) as stream:
                for _ in stream:
                    pass
            spent_s = time.process_time() - began
    return spent_s


async def asynchronous(store: str, tokens: int) -> float:
    async with AsyncLocal(folder=store, engines=ENGINES) as local:
        for count in (50, tokens):
            began = time.process_time()
            async with await local.chat(messages(count), stream=True) as stream:
                async for _ in stream:
                    pass
            spent_s = time.process_time() - began
    return spent_s


def main() -> None:
    way, tokens = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as store:
        spent_s = sync(store, tokens) if way == "sync" else asyncio.run(asynchronous(store, tokens))
    print(json.dumps({"count": tokens, "cpu_s": spent_s}))


if __name__ == "__main__":
    main()
