"""Who may begin now, who waits, and who is told to come back: decided before any work."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from polymux import errors
from polymux.service.failures import refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from polymux.service.backend import Backend
    from polymux.service.work import Estimate, Work

_FIRST_GUESS_S = 10.0
_WEIGHT = 0.2


class Promise:
    """A place in a queue for work that was told that it may come; given up once only."""

    def __init__(self, admission: Admission) -> None:
        """Counts from now on."""
        self.admission = admission
        self._is_open = True
        admission.promised += 1

    def give_up(self) -> None:
        """It is taken, or nobody comes."""
        if self._is_open:
            self._is_open = False
            self.admission.promised -= 1


class Admission:
    """The places of one backend: `slots` at work, and a queue of bounded length, first come first.

    Args:
        backend: Whose.
        queue: How many may wait at most.
    """

    def __init__(self, backend: Backend, queue: int) -> None:
        """Nobody is there."""
        self._backend = backend
        self._queue = queue
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.running = 0
        #: Places of those who may come and have not yet.
        self.promised = 0
        self._usual_s = _FIRST_GUESS_S

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def place(self, promise: Promise | None = None) -> AsyncIterator[None]:
        """A place at work, after a place in the queue. Cancelled, it is the next one's at once.

        Args:
            promise: Whoever has one of this queue finds it never full. Default: none.

        Raises:
            OverloadedError: The queue is full.
        """
        promised = promise is not None and promise.admission is self
        if promise is not None:
            promise.give_up()
        if self.running >= self._backend.slots or self._waiting:
            if not promised:
                self.check_room()
            await self._wait()
        else:
            self.running += 1
        began = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            took = asyncio.get_running_loop().time() - began
            self._usual_s += _WEIGHT * (took - self._usual_s)
            self._leave()

    def promise(self) -> Promise:
        """A place in the queue for what comes soon: who was told yes is not told no later.

        Raises:
            OverloadedError: The queue is full.
        """
        self.check_room()
        return Promise(self)

    def check_room(self) -> None:
        """Raises where whoever comes now would find the queue full.

        Raises:
            OverloadedError: It is.
        """
        waiting = len(self._waiting) + self.promised
        if self.running + waiting >= self._backend.slots + self._queue:
            turns = (waiting + self.running) / self._backend.slots
            raise refusal(
                errors.OverloadedError,
                f"{self._backend.name} is busy: {self.running} at work, {waiting} "
                f"waiting, and no more than {self._queue} may wait; ask again later",
                retry_after_s=min(600.0, max(1.0, turns * self._usual_s)),
            )

    async def _wait(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # The place was given in the moment of leaving.
            else:
                with suppress(ValueError):
                    self._waiting.remove(turn)
            raise

    def _leave(self) -> None:
        """Hands the place on, or gives it up."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1


def check_estimate(work: Work, estimate: Estimate, memory_limit_bytes: int | None) -> None:
    """Refuses what would take longer than its caller may, or more memory than there is.

    Raises:
        UnprocessableEntityError: It would (code ``estimate_over_limit``).
    """
    limit_s = work.caller.longest_estimate_s
    if limit_s is not None and estimate.seconds is not None and estimate.seconds > limit_s:
        raise refusal(
            errors.UnprocessableEntityError,
            f"this would take about {estimate.seconds:.0f} s, and this key may ask for "
            f"{limit_s:.0f} s{_because(estimate)}: {_instead(estimate)}, or have the key's limit "
            "raised",
            code="estimate_over_limit",
        )
    needed = estimate.memory_bytes
    if memory_limit_bytes is not None and needed is not None and needed > memory_limit_bytes:
        raise refusal(
            errors.UnprocessableEntityError,
            f"this would take about {needed >> 20} MiB of memory, and the server has "
            f"{memory_limit_bytes >> 20} MiB for it{_because(estimate)}: {_instead(estimate)}",
            code="estimate_over_limit",
        )


def _instead(estimate: Estimate) -> str:
    return estimate.remedies or "ask for less or choose a smaller model"


def _because(estimate: Estimate) -> str:
    return f" ({estimate.why})" if estimate.why else ""
