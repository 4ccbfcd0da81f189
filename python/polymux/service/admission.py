"""Who may begin now, who waits, and who is told to come back: decided before any work."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from polymux import errors
from polymux.service.errors import status_error
from polymux.service.model import LOCAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from polymux.service.backend import Backend
    from polymux.service.model import Estimate, OperationRequest

_FIRST_GUESS_S = 10.0
_WEIGHT = 0.2
#: Of all operations, what alone is minutes or hours where the machine is not made for it.
_GENERATIONS = ("generate_image", "generate_video", "generate_music")
_DETAIL = ("upscale_image", "A")
_CHATS = ("chat", "free_chat")


class Bounds(NamedTuple):
    """What work may come to, whoever asks.

    Attributes:
        memory_bytes: Most that one piece of work may take; None for no limit.
        max_generation_s: Longest that a generation may be thought to take, of callers that have
            no limit of their own; None for no limit.
    """

    memory_bytes: int | None = None
    max_generation_s: float | None = None

    def hold_for(self, work: OperationRequest) -> bool:
        """Whether it must be known what the work will take. Of a chat nobody knows."""
        if work.operation in _CHATS:
            return False
        return self.memory_bytes is not None or self._max_s(work) is not None

    def check(self, work: OperationRequest, estimate: Estimate) -> None:
        """Refuses what would take longer than its caller may, or more memory than there is.

        A caller's own limit counts to the second. That of all does where such work was timed here
        before; where it was only counted, what is beyond doubt alone is refused.

        Raises:
            UnprocessableEntityError: It would (code ``estimate_over_limit``).
        """
        max_s, seconds = self._max_s(work), estimate.seconds
        if max_s is not None and seconds is not None:
            doubt = estimate.doubt if work.caller.max_estimate_s is None else 1.0
            if seconds > max_s * doubt:
                raise _too_long(work, estimate, max_s)
        needed = estimate.memory_bytes
        if self.memory_bytes is not None and needed is not None and needed > self.memory_bytes:
            raise status_error(
                errors.UnprocessableEntityError,
                f"this would take about {needed >> 20} MiB of memory, and the server has "
                f"{self.memory_bytes >> 20} MiB for it{_because(estimate)}: {_instead(estimate)}",
                code="estimate_over_limit",
            )

    def _max_s(self, work: OperationRequest) -> float | None:
        """The caller's own limit, which may be longer, before that of all."""
        own = work.caller.max_estimate_s
        return self.max_generation_s if own is None and _is_generation(work) else own


class Reservation:
    """A place in a queue for work that was told that it may come; given up once only."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self._is_open = True
        admission.reserved += 1

    def release(self) -> None:
        """It is taken, or nobody comes."""
        if self._is_open:
            self._is_open = False
            self.admission.reserved -= 1


class Admission:
    """The places of a backend: `max_concurrency` at work, and a bounded queue, first come first."""

    def __init__(self, backend: Backend, queue: int) -> None:
        self._backend = backend
        self._queue = queue
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.running = 0
        #: Places of those who may come and have not yet.
        self.reserved = 0
        self._usual_s = _FIRST_GUESS_S

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def place(self, reservation: Reservation | None = None) -> AsyncIterator[None]:
        """A place at work, after a place in the queue. Cancelled, it is the next one's at once.

        Args:
            reservation: Whoever has one of this queue finds it never full. Default: none.

        Raises:
            OverloadedError: The queue is full.
        """
        reserved = reservation is not None and reservation.admission is self
        if reservation is not None:
            reservation.release()
        if self.running >= self._backend.max_concurrency or self._waiting:
            if not reserved:
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

    def reserve(self) -> Reservation:
        """A place in the queue for what comes soon: who was told yes is not told no later.

        Raises:
            OverloadedError: The queue is full.
        """
        self.check_room()
        return Reservation(self)

    def check_room(self) -> None:
        """Raises where whoever comes now would find the queue full."""
        waiting = len(self._waiting) + self.reserved
        if self.running + waiting >= self._backend.max_concurrency + self._queue:
            turns = (waiting + self.running) / self._backend.max_concurrency
            raise status_error(
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


def _is_generation(work: OperationRequest) -> bool:
    return work.operation in _GENERATIONS or (work.operation, work.variant) == _DETAIL


def _too_long(work: OperationRequest, estimate: Estimate, max_s: float) -> errors.APIStatusError:
    """Names the estimate, the limit and what helps."""
    whose, raised = f"this key may ask for {max_s:.0f} s", "have the key's limit raised"
    if work.caller.max_estimate_s is None:
        whose = f"{max_s:.0f} s are the most that a generation may take"
        raised = "have a key that may ask for longer work"
        if work.caller is LOCAL:
            raised = (
                "allow it (--max-generation of a command, --timeout of a batch, "
                "max_generation_s of Local)"
            )
    return status_error(
        errors.UnprocessableEntityError,
        f"this would take about {estimate.seconds:.0f} s, and {whose}{_because(estimate)}: "
        f"{_instead(estimate)}, or {raised}",
        code="estimate_over_limit",
    )


def _instead(estimate: Estimate) -> str:
    return estimate.remedies or "ask for less or choose a smaller model"


def _because(estimate: Estimate) -> str:
    return f" ({estimate.why})" if estimate.why else ""


_PACE_WEIGHT = 0.3


class ThroughputEstimator:
    """Seconds of work for each unit of it.

    Args:
        unit: Such as ``"s of sound"``, for people.
        first_guess_s: Of a unit, before anything was measured.

    Example:
        >>> pace = ThroughputEstimator("s of sound", 0.5)
        >>> pace.seconds(60)
        30.0
        >>> pace.learn(60, 12)
        >>> pace.seconds(60)
        12.0
    """

    def __init__(self, unit: str, first_guess_s: float) -> None:
        self._unit = unit
        self._each_s = first_guess_s
        self._measured = False

    def seconds(self, units: float) -> float:
        return units * self._each_s

    def learn(self, units: float, seconds: float) -> None:
        if units <= 0:
            return
        each_s = seconds / units
        # The first measurement replaces the guess, the others move what is known.
        self._each_s += (_PACE_WEIGHT if self._measured else 1.0) * (each_s - self._each_s)
        self._measured = True

    def words(self, units: float) -> str:
        known = "as measured here" if self._measured else "a first guess, nothing was measured yet"
        return f"{units:.1f} {self._unit} at {self._each_s:.2g} s each, {known}"
