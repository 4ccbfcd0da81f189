"""local WAY COUNT: what a token of a chat costs in a program that uses `Local`, without a server.

The engine does nothing and runs in its own process, which does not count: what is measured is what
the program's process spends between the engine's pipe and the caller's loop.
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

#: The engine gives this many tokens a second, so that most of them come one by one.
RATE = 5_000
ENGINES = {"noop": EngineSettings(FAMILY, {"max_concurrency": 1}, operations=("chat",))}


def messages(tokens: int) -> list[dict[str, str]]:
    """What tells the engine to stream so many."""
    return [{"role": "user", "content": f"{STREAM} {tokens} {RATE}"}]


def sync(store: str, tokens: int) -> float:
    """CPU seconds of one stream."""
    with Local(folder=store, engines=ENGINES) as local:
        for count in (50, tokens):
            began = time.process_time()
            with local.chat(messages(count), stream=True) as stream:
                for _ in stream:
                    pass
            spent_s = time.process_time() - began
    return spent_s


async def asynchronous(store: str, tokens: int) -> float:
    """The same, on the loop of asyncio."""
    async with AsyncLocal(folder=store, engines=ENGINES) as local:
        for count in (50, tokens):
            began = time.process_time()
            async with await local.chat(messages(count), stream=True) as stream:
                async for _ in stream:
                    pass
            spent_s = time.process_time() - began
    return spent_s


def main() -> None:
    """Measures one way."""
    way, tokens = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as store:
        spent_s = sync(store, tokens) if way == "sync" else asyncio.run(asynchronous(store, tokens))
    print(json.dumps({"count": tokens, "cpu_s": spent_s}))


if __name__ == "__main__":
    main()
