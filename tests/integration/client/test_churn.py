"""Streams that come and go by the thousand: memory has no slope (transport, goal 7)."""

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

async def main(count):
    # So many streams, however long they take: on a machine that is busy the slope is of as many.
    samples, left, done = [], count, 0

    async def worker():
        nonlocal left, done
        while left > 0:
            left -= 1
            await one(client, next(numbers))
            done += 1
            if done % (count // 60) == 0:
                samples.append((done, status("VmRSS")))

    async with polymux.AsyncClient(url, key, retry=0) as client:
        await asyncio.gather(*(worker() for _ in range(48)))
        gc.collect()
        samples = samples[len(samples) // 4:]
        last = settled()
    middle = [sum(one) / len(samples) for one in zip(*samples)]
    apart = [(count - middle[0], kib - middle[1]) for count, kib in samples]
    slope = sum(x * y for x, y in apart) / sum(x * x for x, _ in apart)
    return {"whole": whole, "given_up": given_up, "kib_a_stream": slope, "last": last}

first = asyncio.run(main(int(sys.argv[2]) // 5))
say(json.dumps([first, asyncio.run(main(int(sys.argv[2])))]))
"""


@pytest.mark.parametrize("count", [3000, pytest.param(36_000, marks=pytest.mark.long)])
def test_streams_that_come_and_go(count: int, reference: ReferenceServer) -> None:
    """What is read whole, closed, dropped and cancelled, 48 at once."""
    first, found = run_json(CHURN, reference.url, count, timeout_s=120 + count / 20)
    assert min(found["whole"], found["given_up"]) >= count // 5, found
    check_flat(first["last"], found["last"], growth_mib=2, connections=48)
    # A chunk that stayed of each stream would be more.
    assert SANITIZED or found["kib_a_stream"] < (0.1 if count > 6000 else 0.2), found
