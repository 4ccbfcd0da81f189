"""Threads on which fetches and look-ups of event loops run: `polymux.fetch.fetcher` uses them.

A loop's own executor has few, for everybody: a slow address would hold up all else in there, and
what is busy in there would hold a fetch up beyond its deadline.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
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
#: Of this process: a child of a fork has none of its parent's threads, and waits for no lock of it.
_OWN: dict[tuple[int, str], Threads] = {}


class Threads:
    """So many threads at most, each for as long as there is something to do.

    A program that ends does not wait for them.

    Args:
        most: How many; what is given to them beyond waits.
        name: What they are called.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._at_work = 0

    def start(self, job: Callable[[], None]) -> bool:
        """Takes a job, which raises nothing. False where it waits for a thread."""
        with self._lock:
            if self._at_work >= self._most:
                self._waiting.append(job)
                return False
            self._at_work += 1
        try:
            threading.Thread(target=self._work, args=(job,), name=self._name, daemon=True).start()
        except BaseException:
            with self._lock:
                self._at_work -= 1
            raise
        return True

    def withdraw(self, job: Callable[[], None]) -> bool:
        """Takes back a job that waits; False where it has begun."""
        with self._lock:
            try:
                self._waiting.remove(job)
            except ValueError:
                return False
            return True

    def _work(self, job: Callable[[], None] | None) -> None:
        while job is not None:
            job()
            job = None  # Nothing of it is held while the lock is awaited.
            with self._lock:
                if self._waiting:
                    job = self._waiting.popleft()
                else:
                    self._at_work -= 1


def threads(kind: str) -> Threads:
    """This process's threads of a kind: those who wait for a slow server hold up no other kind."""
    key = (os.getpid(), kind)
    return _OWN.get(key) or _OWN.setdefault(key, Threads(_MAX_THREADS, f"polymux-{kind}"))


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
    loop = asyncio.get_running_loop()
    token = core.CancelToken()
    context = copy_context()
    ended: asyncio.Future[None] = loop.create_future()
    outcome: list[tuple[Any, BaseException | None]] = []
    begun = time.monotonic()

    def run() -> None:
        waited_ms = int((time.monotonic() - begun) * 1000)
        try:
            outcome.append((context.run(call, token, waited_ms), None))
        except BaseException as error:  # It is raised where it is awaited.
            outcome.append((None, error))
        with suppress(RuntimeError):  # The loop is closed: nobody waits.
            loop.call_soon_threadsafe(_complete, ended)

    def give_up() -> None:
        if pool.withdraw(run):
            outcome.append((None, _passed_total()))
            _complete(ended)

    pool = threads(kind)
    timer = None if pool.start(run) else loop.call_later(total_ms / 1000, give_up)
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        token.cancel()
        if not pool.withdraw(run):
            await _end_of(ended)
        raise
    finally:
        if timer is not None:
            timer.cancel()
    value, error = outcome.pop()
    try:
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]
    finally:
        del error  # It leads to this frame, and the frame would lead to it.


def _complete(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _passed_total() -> RequestTimeoutError:
    """As the core says it."""
    error = RequestTimeoutError("the fetch took too long (limit total)")
    error.limit = "total"
    return error


async def _end_of(ended: asyncio.Future[None]) -> None:
    """Waits for it, however often the waiting is cancelled."""
    while not ended.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({ended})
