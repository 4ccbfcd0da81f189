"""Streams that come and go for a while: memory has no slope (transport, goal 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.client_children import check_flat, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from servers.reference import ReferenceServer

CHURN = """
import gc, itertools
numbers = itertools.count()
whole = given_up = 0

async def one(client, number):
    # Read to its end, closed early, dropped, and cancelled while it is waited for.
    global whole, given_up
    asked = f"{number} " + "word " * (number % 40)
    stream = await client.chat(asked, stream=True)
    if number % 4 == 0:
        texts = [text async for text in stream.texts()]
        assert "".join(texts) == f"You said: {asked}", texts
        whole += 1
        return
    given_up += 1
    async for _ in stream:
        break
    if number % 4 == 1:
        await stream.aclose()
    if number % 4 == 2:
        reading = asyncio.ensure_future(anext(stream, None))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

async def worker(client, end):
    while time.monotonic() < end:
        await one(client, next(numbers))

async def main(seconds):
    samples = []
    async with polymux.AsyncClient(url, key, retry=0) as client:
        begin = time.monotonic()
        workers = [asyncio.ensure_future(worker(client, begin + seconds)) for _ in range(48)]
        while not all(one.done() for one in workers):
            await asyncio.sleep(seconds / 60)
            samples.append((whole + given_up, status("VmRSS")))
        await asyncio.gather(*workers)
        gc.collect()
        samples = samples[len(samples) // 4:]
        last = settled()
    middle = [sum(one) / len(samples) for one in zip(*samples)]
    apart = [(count - middle[0], kib - middle[1]) for count, kib in samples]
    slope = sum(x * y for x, y in apart) / sum(x * x for x, _ in apart)
    return {"whole": whole, "given_up": given_up, "kib_a_stream": slope, "last": last}

first = asyncio.run(main(float(sys.argv[2]) / 5))
say(json.dumps([first, asyncio.run(main(float(sys.argv[2])))]))
"""


def check_churn(reference: ReferenceServer, seconds: float) -> None:
    first, found = run_json(CHURN, reference.url, seconds, timeout_s=120 + 4 * seconds)
    assert min(found["whole"], found["given_up"]) > 20 * seconds, found
    check_flat(first["last"], found["last"], growth_mib=2, connections=48)
    # A chunk that stayed of each stream would be more.
    assert SANITIZED or found["kib_a_stream"] < 0.1, found


def test_streams_that_come_and_go(reference: ReferenceServer) -> None:
    """In short: what is read whole, closed, dropped and cancelled, 48 at once."""
    check_churn(reference, 10)


@pytest.mark.long
def test_streams_that_come_and_go_for_a_minute(reference: ReferenceServer) -> None:
    """The same for 60 s."""
    check_churn(reference, 60)
