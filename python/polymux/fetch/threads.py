"""Threads on which fetches and look-ups of event loops run, one each: for `polymux.fetch.fetcher`.

A loop's own executor has few, for everybody: a slow address would hold up all else in there, and
what is busy in there would hold a fetch up beyond its deadline.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from polymux._native import core
from polymux.errors import RequestTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux._native import _core

Result = TypeVar("Result")

#: Of each kind. As many names as the core looks up at once.
_MAX_THREADS = 64
#: Of each event loop, by kind: those who wait for a slow server hold up no other kind.
_PLACES: dict[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]] = {}


def _places(kind: str) -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    if loop not in _PLACES:
        for other in list(_PLACES):
            if other.is_closed():
                _PLACES.pop(other, None)
        _PLACES[loop] = {}
    return _PLACES[loop].setdefault(kind, asyncio.Semaphore(_MAX_THREADS))


async def on_a_thread(
    kind: str, call: Callable[[_core.CancelToken, int], Result], total_ms: int
) -> Result:
    """Runs a call of the core that a token ends.

    Cancelled before it has a thread, it ends at once; afterwards the cancellation is passed on when
    nothing of it runs any more.

    Args:
        kind: Of threads.
        call: Gets the token, and how many milliseconds it has waited for its thread.
        total_ms: How long it may take, this wait included.

    Raises:
        RequestTimeoutError: No thread was free in that time.
    """
    begun = time.monotonic()
    places = _places(kind)
    try:
        async with asyncio.timeout(total_ms / 1000):
            await places.acquire()
    except TimeoutError:
        error = RequestTimeoutError("the fetch took too long (limit total)")  # As the core says it.
        error.limit = "total"
        raise error from None
    try:
        return await _on_new_thread(kind, call, int((time.monotonic() - begun) * 1000))
    finally:
        places.release()


async def _on_new_thread(
    kind: str, call: Callable[[_core.CancelToken, int], Result], waited_ms: int
) -> Result:
    loop = asyncio.get_running_loop()
    token = core.CancelToken()
    context = copy_context()
    ended: asyncio.Future[None] = loop.create_future()
    outcome: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            outcome.append((context.run(call, token, waited_ms), None))
        except BaseException as error:  # It is raised where it is awaited.
            outcome.append((None, error))
        with suppress(RuntimeError):  # The loop is closed: nobody waits.
            loop.call_soon_threadsafe(ended.set_result, None)

    # A program that ends does not wait for it.
    threading.Thread(target=run, name=f"polymux-{kind}", daemon=True).start()
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        token.cancel()
        await _end_of(ended)
        raise
    value, error = outcome.pop()
    try:
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]
    finally:
        del error  # It leads to this frame, and the frame would lead to it.


async def _end_of(ended: asyncio.Future[None]) -> None:
    """Waits for it, however often the waiting is cancelled."""
    while not ended.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({ended})
