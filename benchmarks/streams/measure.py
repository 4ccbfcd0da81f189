"""measure NAME URL MODE ...: one client's streams, measured in this process.

    together STREAMS TOKENS RATE [stamped]   concurrent, TOKENS each, RATE tokens per second
    open STREAMS                             memory per idle open stream
    cancel STREAMS CANCELLED                 time until a canceled stream's connection closes

Append `uvloop` to use uvloop. Prints a line of JSON.
"""

import asyncio
import gc
import json
import os
import site
import statistics
import sys
import time
import urllib.request
from collections.abc import Sequence

from benchmarks.streams.clients import CLIENTS, Read
from benchmarks.usage import Meter, raise_file_limit, rss_bytes

SETTLE_S = 1.0
PAUSE_S = 0.005
MAX_OPENING_S = 120


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile from 1 to 99."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def let_go(_: str) -> None:
    """Ignore a text."""


async def together(read: Read, streams: int, tokens: int, rate: int, *, stamped: bool) -> None:
    """Measure concurrent streams with connections and requests, but without what the first
    request loads."""
    lags_ns: list[int] = []
    count = [0]

    def take_stamped(text: str) -> None:
        lags_ns.append(time.monotonic_ns() - int(text))

    def take(_: str) -> None:
        count[0] += 1

    await read("/stream?tokens=2&rate=0", let_go)
    target = f"/stream?tokens={tokens}&rate={rate}" + ("&stamp=1" if stamped else "")
    meter = Meter()
    await asyncio.gather(*[read(target, take_stamped if stamped else take) for _ in range(streams)])
    count[0] += len(lags_ns)
    if count[0] != streams * tokens:
        raise SystemExit(f"{count[0]} tokens received, expected {streams * tokens}")
    lags = {}
    if stamped:
        lags = {f"lag_p{one}_s": percentile(lags_ns, one) / 1e9 for one in (50, 99)}
    meter.report(count[0], **lags)


async def opened(read: Read, targets: Sequence[str]) -> list[asyncio.Task[None]]:
    """Return streams that have each received a token."""
    first = [asyncio.Event() for _ in targets]
    tasks = [
        asyncio.create_task(read(target, lambda _, event=event: event.set()))
        for target, event in zip(targets, first, strict=True)
    ]
    async with asyncio.timeout(MAX_OPENING_S):
        for event in first:
            await event.wait()
    return tasks


async def hold(read: Read, streams: int) -> None:
    """Measure the memory above that of the client with one stream, once no stream receives
    tokens."""
    target = "/stream?id={}"
    tasks = await opened(read, [target.format(0)])
    gc.collect()
    meter, before = Meter(), rss_bytes()
    tasks += await opened(read, [target.format(1 + number) for number in range(streams)])
    gc.collect()
    grown = rss_bytes() - before
    meter.report(streams, rss_bytes=grown)


async def cancel(read: Read, url: str, streams: int, cancelled: int) -> None:
    """Cancel streams one after another while the others continue."""
    targets = [f"/stream?id={number}" for number in range(streams)]
    tasks = await opened(read, targets)
    await asyncio.sleep(SETTLE_S)
    asked_ns = {}
    meter = Meter()
    for number in range(0, streams, streams // cancelled):
        asked_ns[number] = time.monotonic_ns()
        tasks[number].cancel()
        await asyncio.sleep(PAUSE_S)
    await asyncio.sleep(SETTLE_S)
    with await asyncio.to_thread(urllib.request.urlopen, f"{url}/closed") as answer:
        closed_ns = {int(number): at for number, at in json.load(answer).items()}
    lost = [number for number in asked_ns if number not in closed_ns]
    if lost:
        raise SystemExit(f"{len(lost)} connections of cancelled streams are open")
    delays_s = [(closed_ns[number] - asked_ns[number]) / 1e9 for number in asked_ns]
    delays = {f"closed_p{one}_s": percentile(delays_s, one) for one in (50, 99)}
    meter.report(len(asked_ns), **delays)


async def measure(name: str, url: str, mode: str, *rest: str) -> None:
    """Run one mode."""
    read = CLIENTS[name](url)
    numbers = [int(one) for one in rest if one.isdigit()]
    if mode == "together":
        await together(read, *numbers, stamped="stamped" in rest)
    elif mode == "open":
        await hold(read, *numbers)
    else:
        await cancel(read, url, *numbers)
    sys.stdout.flush()
    os._exit(0)  # Endless streams are still open, so a normal exit would not end.


def main() -> None:
    """Run on asyncio's event loop, or on uvloop."""
    raise_file_limit()
    run = asyncio.run
    if "uvloop" in sys.argv:
        site.addsitedir(os.environ["PEERS_PACKAGES"])
        import uvloop

        run = uvloop.run
    run(measure(*[one for one in sys.argv[1:] if one != "uvloop"]))


if __name__ == "__main__":
    main()
