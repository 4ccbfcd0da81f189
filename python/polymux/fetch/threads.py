"""Threads for fetches and DNS lookups in asyncio, used by `polymux.fetch.fetcher`.

The loop's default executor has only a few threads, which all code shares. A slow server would block
other tasks there, and other tasks could delay a fetch beyond its deadline.
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

#: Maximum number per kind: the number of names that the core looks up at once.
_MAX_THREADS = 64
#: Separate for each event loop and kind: slow servers do not delay other kinds.
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
    """Run a call of the core on a new thread; canceling the task aborts it.

    A call that has no thread yet ends at once. Otherwise the cancellation is raised after the
    thread has ended.

    Args:
        kind: Kind of thread.
        call: Called with the token and the milliseconds that it has waited for its thread.
        total_ms: Timeout including this wait.

    Raises:
        RequestTimeoutError: No thread was available in time.
    """
    begun = time.monotonic()
    places = _places(kind)
    try:
        async with asyncio.timeout(total_ms / 1000):
            await places.acquire()
    except TimeoutError:
        # The core's message.
        error = RequestTimeoutError("the download took too long (timeout: total)")
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
        except BaseException as error:  # Raised again in the awaiting task.
            outcome.append((None, error))
        with suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(ended.set_result, None)

    # A daemon thread does not delay the end of the program.
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
        del error  # Breaks the reference cycle between the error and this frame.


async def _end_of(ended: asyncio.Future[None]) -> None:
    """Wait for the end even if the wait is canceled repeatedly."""
    while not ended.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({ended})
