"""Admission of requests: limits, bounded queues and reservations."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
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
#: Operations that can take minutes or hours without suitable hardware.
_GENERATIONS = ("generate_image", "generate_video", "generate_music")
_DETAIL = ("upscale_image", "A")
_CHATS = ("chat", "free_chat")


class Bounds(NamedTuple):
    """Limits for the estimate of a request.

    Attributes:
        memory_bytes: Maximum memory of one request; None for no limit.
        max_generation_s: Maximum estimated time of a generation, for callers without their own
            limit; None for no limit.
    """

    memory_bytes: int | None = None
    max_generation_s: float | None = None

    def hold_for(self, work: OperationRequest) -> bool:
        """Check whether a limit applies to this request. Chats cannot be estimated."""
        if work.operation in _CHATS:
            return False
        return self.memory_bytes is not None or self._max_s(work) is not None

    def check(self, work: OperationRequest, estimate: Estimate) -> None:
        """Reject a request whose estimated time or memory exceeds a limit.

        A caller's own limit applies exactly. The general limit applies exactly only if such work
        was measured before; otherwise `Estimate.doubt` widens it.

        Raises:
            UnprocessableEntityError: A limit is exceeded (code ``estimate_over_limit``).
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
                f"the request needs too much memory (estimated {needed >> 20} "
                f"MiB{_because(estimate)}allowed {self.memory_bytes >> 20} MiB). "
                f"{_instead(estimate)}",
                code="estimate_over_limit",
            )

    def _max_s(self, work: OperationRequest) -> float | None:
        """Return the caller's limit, which may exceed the general limit, else the general one."""
        own = work.caller.max_estimate_s
        return self.max_generation_s if own is None and _is_generation(work) else own


class Reservation:
    """A reserved place in a queue for admitted work; `release` has an effect only once."""

    def __init__(self, admission: Admission, owner: str) -> None:
        self.admission = admission
        self._owner = owner
        self._is_open = True
        admission.reserved[owner] += 1

    def release(self) -> None:
        """Release the place because the work has taken it or will not come."""
        if self._is_open:
            self._is_open = False
            self.admission.reserved[self._owner] -= 1


class Admission:
    """Limits a backend to `max_concurrency` running requests and a bounded queue.

    API keys take turns: the requests of one key, first come, first served, cannot starve those of
    another. A quarter of the queue stays free for other keys.
    """

    def __init__(self, backend: Backend, queue: int) -> None:
        self._backend = backend
        self._queue = queue
        self._queue_of_key = queue - queue // 4
        #: By API key. The next turn belongs to the first key, which then goes to the end.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self.running = 0
        #: Number of reservations not yet used or released, by API key.
        self.reserved = Counter[str]()
        self._usual_s = _FIRST_GUESS_S

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def place(
        self, owner: str, reservation: Reservation | None = None
    ) -> AsyncIterator[None]:
        """Wait in the queue, then run in the context. Cancellation frees the place at once.

        Args:
            owner: Id of the API key.
            reservation: A reservation in this queue guarantees a place. Default: none.

        Raises:
            OverloadedError: The queue is full.
        """
        reserved = reservation is not None and reservation.admission is self
        if reservation is not None:
            reservation.release()
        if self.running >= self._backend.max_concurrency or self._waiting:
            if not reserved:
                self.check_room(owner)
            await self._wait(owner)
        else:
            self.running += 1
        began = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            took = asyncio.get_running_loop().time() - began
            self._usual_s += _WEIGHT * (took - self._usual_s)
            self._leave()

    def reserve(self, owner: str) -> Reservation:
        """Reserve a place in the queue: admitted work must not be rejected later.

        Raises:
            OverloadedError: The queue is full.
        """
        self.check_room(owner)
        return Reservation(self, owner)

    def check_room(self, owner: str) -> None:
        """Raise OverloadedError if the queue, or an API key's part of it, is full."""
        waiting = self.waiting + self.reserved.total()
        of_key = len(self._waiting.get(owner, ())) + self.reserved[owner]
        free = self._backend.max_concurrency - self.running
        if waiting >= free + self._queue:
            whose, allowed = "", self._queue
        elif of_key >= free + self._queue_of_key:
            whose, allowed, waiting = " for this API key", self._queue_of_key, of_key
        else:
            return
        turns = (waiting + self.running) / self._backend.max_concurrency
        raise status_error(
            errors.OverloadedError,
            f"the queue of {self._backend.name} is full{whose} ({self.running} running, {waiting} "
            f"waiting, allowed to wait: {allowed}). Try again later",
            retry_after_s=min(600.0, max(1.0, turns * self._usual_s)),
        )

    async def _wait(self, owner: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # The place was assigned at the moment of cancellation.
            else:
                self._withdraw(owner, turn)
            raise

    def _withdraw(self, owner: str, turn: asyncio.Future[None]) -> None:
        with suppress(KeyError, ValueError):
            self._waiting[owner].remove(turn)
            if not self._waiting[owner]:
                del self._waiting[owner]

    def _leave(self) -> None:
        """Give the place to the next waiting request, or free it."""
        while self._waiting:
            owner = next(iter(self._waiting))
            turns = self._waiting.pop(owner)
            turn = turns.popleft()
            if turns:
                self._waiting[owner] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1


def _is_generation(work: OperationRequest) -> bool:
    return work.operation in _GENERATIONS or (work.operation, work.variant) == _DETAIL


def _too_long(work: OperationRequest, estimate: Estimate, max_s: float) -> errors.APIStatusError:
    """Return an error with the estimate, the limit and remedies."""
    whose, raised = " for this API key", "ask for a higher max_estimate_s of the API key"
    if work.caller.max_estimate_s is None:
        whose, raised = "", "use an API key with a higher max_estimate_s"
        if work.caller is LOCAL:
            raised = (
                "use --max-generation of a command, --timeout of a batch, or max_generation_s of "
                "Local"
            )
    return status_error(
        errors.UnprocessableEntityError,
        f"the request would take too long (estimated {estimate.seconds:.0f} s{_because(estimate)}"
        f"allowed {max_s:.0f} s{whose}). {_instead(estimate)}. To allow more time, {raised}",
        code="estimate_over_limit",
    )


def _instead(estimate: Estimate) -> str:
    words = estimate.remedies or "request less, or choose a smaller model"
    return words[0].upper() + words[1:]


def _because(estimate: Estimate) -> str:
    """Return the text between the estimate and the limit."""
    return f": {estimate.why}; " if estimate.why else ", "


_PACE_WEIGHT = 0.3


class ThroughputEstimator:
    """Estimates the time of work from its amount and earlier measurements.

    Args:
        unit: Such as ``"s of audio"``, for people.
        first_guess_s: Seconds per unit before the first measurement.

    Example:
        >>> pace = ThroughputEstimator("s of audio", 0.5)
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
        # The first measurement replaces the guess; later ones form a moving average.
        self._each_s += (_PACE_WEIGHT if self._measured else 1.0) * (each_s - self._each_s)
        self._measured = True

    def words(self, units: float) -> str:
        known = "measured on this machine" if self._measured else "a guess before the first job"
        return f"{units:.1f} {self._unit} at {self._each_s:.2g} s each, {known}"
