"""Fetches in event loops use a bounded thread pool that blocks no other work."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest
from polymux import errors
from polymux.fetch.fetcher import FetchLimits, FetchPolicy, afetch, ajudged
from support.fetches import OK, limit_of, sending, wait_until
from support.hostile_check import PATIENCE
from support.http_server import Server

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from polymux.fetch.fetcher import Fetched

MAX_THREADS = 64
HELD = sending(OK + b"Content-Length: 100\r\n\r\n", then="stall")


def fetching(server: Server, **limits: int) -> Coroutine[Any, Any, Fetched]:
    policy = FetchPolicy(allowed_hosts=(server.authority,))
    return afetch(server.url(), policy=policy, limits=FetchLimits(**limits))


def own_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "polymux-fetch"]


def test_slow_addresses_hold_up_no_more_than_fetches() -> None:
    """Other users of the loop's executor and URL checks do not wait for slow fetches."""

    async def main(server: Server) -> None:
        slow = [asyncio.create_task(fetching(server)) for _ in range(MAX_THREADS + 10)]
        while len(server.requests) < MAX_THREADS:
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        assert await asyncio.to_thread(lambda: 2) == 2
        with pytest.raises(errors.URLRefusedError):
            await ajudged("http://127.0.0.1/")
        queued = asyncio.create_task(fetching(server))
        with pytest.raises(errors.RequestTimeoutError) as caught:
            await fetching(server, total_ms=300)
        assert limit_of(caught.value) == "total"
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        assert time.monotonic() - begun < 10 * PATIENCE
        assert len(own_threads()) == MAX_THREADS
        assert len(server.requests) == MAX_THREADS
        # Waiting for a thread counts against the total timeout.
        begun = time.monotonic()
        queued = asyncio.create_task(fetching(server, total_ms=3000))
        await asyncio.sleep(2.5)
        for task in slow:
            task.cancel()
        with pytest.raises(errors.RequestTimeoutError):
            await queued
        assert 2.9 <= time.monotonic() - begun <= 5 * PATIENCE
        await asyncio.gather(*slow, return_exceptions=True)

    with Server(HELD) as server:
        asyncio.run(main(server))
        wait_until(lambda: not own_threads())
