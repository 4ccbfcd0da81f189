"""One way in for every operation, whoever asks and whatever does it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from polymux import errors
from polymux.client.methods.results import JOBS
from polymux.service.admission import Admission, Bounds, Reservation
from polymux.service.chunks import collect_stream, counts_of, plain_of
from polymux.service.errors import all_failed, draining, is_of_upstream, status_error
from polymux.service.jobs import JobManager
from polymux.service.model import buffered_sink
from polymux.service.routes import NOT_FOR_IT, Routes

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Mapping,
        Sequence,
    )
    from contextlib import AbstractAsyncContextManager

    from polymux.service.backend import Backend
    from polymux.service.chunks import Chunk
    from polymux.service.job_table import Job
    from polymux.service.model import OperationRequest, OperationResult, ProgressSink
    from polymux.service.routes import Remedy, Route
    from polymux.service.store import Store

    OnSpent = Callable[[OperationRequest, float, Mapping[str, float]], object]


def answer_timeout_s(work: OperationRequest) -> float | None:
    """Time for the whole answer of freellm, all models together."""
    wanted = work.values.get("timeout") if work.operation == "free_chat" else None
    return float(wanted) if isinstance(wanted, (int, float)) else None


def _end_of(work: OperationRequest) -> float | None:
    """When that time is over, on the event loop's clock."""
    limit_s = answer_timeout_s(work)
    return None if limit_s is None else asyncio.get_running_loop().time() + limit_s


def too_late(work: OperationRequest) -> errors.InternalServerError:
    """What is told when that time is over."""
    return status_error(
        errors.InternalServerError,
        f"there was no answer within {answer_timeout_s(work):g} s",
        code="upstream_timeout",
        status=504,
        param="timeout",
    )


@asynccontextmanager
async def _in_time(work: OperationRequest, until: float | None) -> AsyncIterator[None]:
    """Ends what takes longer, by the failure of an answer that is too late."""
    if until is None:
        yield
        return
    try:
        async with asyncio.timeout_at(until):
            yield
    except TimeoutError:
        raise too_late(work) from None


async def _entered(
    stack: AsyncExitStack,
    preparing: AbstractAsyncContextManager[OperationRequest] | None,
    work: OperationRequest,
) -> OperationRequest:
    """The work as a preparation makes it, or as it is without one; given up with the stack."""
    return work if preparing is None else await stack.enter_async_context(preparing)


_log = logging.getLogger("polymux.service")
_SWEEP_EVERY_S = 30.0
#: What is no fault of the request: another backend may do it.
_NOT_THE_CALLERS = (errors.InternalServerError, errors.RateLimitError)


class Service:
    """Runs operations on backends. Belongs to one event loop, from `start` on.

    Args:
        backends: All there are.
        routes: As `Routes` takes them.
        store: Where jobs and files are kept.
        queue: How many may wait for one backend.
        bounds: What work may come to. Default: anything.
        on_spent: Called when work has left its backend, done or not, with the work, how long it was
            there in seconds, and the numbers of tokens that it told. Default: nobody is.
        remedy: As `Routes` takes it.

    Raises:
        InvalidRequestError: A route names a backend that does not exist, or cannot do it; two
            backends have one name.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        store: Store,
        *,
        routes: Mapping[str, Sequence[Route]] | None = None,
        queue: int = 32,
        bounds: Bounds | None = None,
        on_spent: OnSpent | None = None,
        remedy: Remedy | None = None,
    ) -> None:
        self.store = store
        self._on_spent = on_spent
        self.routes = Routes(backends, routes, remedy)
        self.backends = self.routes.backends
        self.places = {one.name: Admission(one, queue) for one in backends}
        self.jobs = JobManager(store, self._do_job)
        self._bounds = bounds or Bounds()
        self._sweeper: asyncio.Task[None] | None = None
        self._draining = False
        for backend in backends:
            backend.bind(self)

    async def start(self) -> None:
        """Begins to remove what has expired."""
        self._sweeper = asyncio.create_task(self._sweep(), name="polymux sweeper")

    async def _sweep(self) -> None:
        while True:
            # Neither waits for the other: what is swept may be the room that an end lacks.
            for step in (self._sweep_once, self.jobs.write_again):
                try:
                    await step()
                except errors.PolymuxError as error:
                    _log.error("the store cannot be swept: %s", error)
                except Exception:
                    _log.exception("the store cannot be swept")
            await asyncio.sleep(_SWEEP_EVERY_S)

    async def _sweep_once(self) -> None:
        while await self.store.run(self.store.sweep):
            pass  # In pieces, so that others have their turn at the catalogue.

    def drain(self) -> None:
        """Takes no new work from now on."""
        self._draining = True

    async def close(self) -> None:
        """Ends what runs, and gives up all backends and the store."""
        self._draining = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        # Together: work that does not stop is ended by the end of its process.
        backends = [backend.close() for backend in self.backends.values()]
        await asyncio.gather(self.jobs.close(), *backends)
        await asyncio.to_thread(self.store.close)

    def backends_of(self, work: OperationRequest) -> list[Backend]:
        """The backends that can do it now; see `Routes.backends_of`.

        Raises:
            OverloadedError: The service is about to stop; and as there.
        """
        if self._draining:
            raise draining()
        return self.routes.backends_of(work)

    async def call(
        self, work: OperationRequest, sink: ProgressSink | None = None
    ) -> OperationResult:
        """Does work that is no job, whole.

        Raises:
            NoBackendError: Nothing here can do it.
            OverloadedError: Too much waits already.
            PolymuxError: It failed.
        """
        async with _in_time(work, _end_of(work)):
            return await self._do(work, sink or buffered_sink(self.store.media.draft), _nothing)

    async def do_behind(
        self, backend: Backend, work: OperationRequest, sink: ProgressSink
    ) -> OperationResult | None:
        """Has the first of those do it that does not refuse; None where there is none."""
        for other in self.routes.behind(backend, work):
            try:
                other.refuse(work)
            except NOT_FOR_IT:
                continue
            preparing = other.prepared(work, sink)
            if preparing is not None:
                return await self._do_prepared(preparing, other, sink, _nothing, None)
            return await self._run(other, work, sink)
        return None

    @asynccontextmanager
    async def _place(
        self, backend: Backend, work: OperationRequest, reservation: Reservation | None = None
    ) -> AsyncIterator[dict[str, float]]:
        """A place at a backend; what is told of tokens goes into the dict."""
        async with self.places[backend.name].place(reservation):
            began, counts = time.monotonic(), dict[str, float]()
            try:
                yield counts
            finally:
                if self._on_spent is not None:
                    self._on_spent(work, time.monotonic() - began, counts)

    async def _run(
        self,
        backend: Backend,
        work: OperationRequest,
        sink: ProgressSink,
        reservation: Reservation | None = None,
        started: Callable[[], Awaitable[None]] | None = None,
    ) -> OperationResult:
        async with self._place(backend, work, reservation) as counts:
            await (started or _nothing)()
            async with AsyncExitStack() as stack:
                opened = await _entered(stack, backend.opened(work, sink), work)
                product = await backend.run(opened, sink)
            if isinstance(product.output, dict):
                counts |= counts_of(product.output)
            return product

    async def _do(
        self,
        work: OperationRequest,
        sink: ProgressSink,
        started: Callable[[], Awaitable[None]],
        reservation: Reservation | None = None,
        *,
        unmeasured: bool = False,
    ) -> OperationResult:
        backends = self.backends_of(work)
        failures: dict[str, errors.APIStatusError] = {}
        for number, backend in enumerate(backends, 1):
            try:
                if number > 1 or unmeasured or not is_job(work.operation):
                    await self._check_estimate(work, backend)
                preparing = backend.prepared(work, sink)
                if preparing is not None:
                    return await self._do_prepared(preparing, backend, sink, started, reservation)
                return await self._run(backend, work, sink, reservation, started)
            except errors.APIStatusError as error:
                if not _fails_over(work, error):
                    raise
                failures[backend.name] = error
        raise all_failed(failures)

    async def _do_job(
        self,
        work: OperationRequest,
        sink: ProgressSink,
        started: Callable[[], Awaitable[None]],
        reservation: Reservation | None = None,
    ) -> OperationResult:
        """What a job is: its preparation, then the work; of a chat in pieces each is told."""
        async with AsyncExitStack() as stack:
            unmeasured = work.prepare is not None
            if work.prepare is not None:
                await started()
                started = _nothing
                work = await stack.enter_async_context(work.prepare(work, sink))
            if work.streamed:
                return await collect_stream(self.stream(work, sink, started, reservation), sink)
            return await self._do(work, sink, started, reservation, unmeasured=unmeasured)

    async def _do_prepared(
        self,
        preparing: AbstractAsyncContextManager[OperationRequest],
        backend: Backend,
        sink: ProgressSink,
        started: Callable[[], Awaitable[None]],
        reservation: Reservation | None,
    ) -> OperationResult:
        await started()
        async with preparing as ready:
            # What lay at an address has a length only now.
            await self._check_estimate(ready, backend)
            return await self._run(backend, ready, sink, reservation)

    async def stream(
        self,
        work: OperationRequest,
        sink: ProgressSink | None = None,
        started: Callable[[], Awaitable[None]] | None = None,
        reservation: Reservation | None = None,
    ) -> AsyncGenerator[Chunk]:
        """Does a chat in pieces. Where a backend fails before its first piece, the next is tried.

        Args:
            work: What is to be done.
            sink: Where it is told of. Default: nowhere.
            started: Awaited when it has its place. Default: nothing is.
            reservation: Of a place in a queue. Default: none.

        Raises:
            The same as `call`, before the first piece or between two.
        """
        backends = self.backends_of(work)
        sink = sink or buffered_sink(self.store.media.draft)
        until = _end_of(work)
        failures: dict[str, errors.APIStatusError] = {}
        for backend in backends:
            chunk: Chunk | None = None
            try:
                async with AsyncExitStack() as stack:
                    async with _in_time(work, until):
                        prepared = await _entered(stack, backend.prepared(work, sink), work)
                        place = self._place(backend, work, reservation)
                        counts = await stack.enter_async_context(place)
                        await (started or _nothing)()
                        opened = await _entered(stack, backend.opened(prepared, sink), prepared)
                    pieces = backend.stream(opened, sink)
                    await stack.enter_async_context(aclosing(pieces))  # type: ignore[type-var]
                    while True:
                        # What the reader of a piece does takes no time of the answer. Without a
                        # deadline nothing is wrapped: this runs for every token.
                        if until is None:
                            following = await anext(pieces, None)
                        else:
                            async with _in_time(work, until):
                                following = await anext(pieces, None)
                        if following is None:
                            break
                        chunk = following
                        yield chunk
                    if chunk is not None:
                        counts |= counts_of(plain_of(chunk))  # The last one tells it.
            except errors.APIStatusError as error:
                late = until is not None and asyncio.get_running_loop().time() >= until
                if chunk is not None or late or not _fails_over(work, error):
                    raise
                failures[backend.name] = error
            else:
                return
        raise all_failed(failures)

    async def submit(
        self, work: OperationRequest, idempotency_key: str | None = None
    ) -> tuple[Job, bool]:
        """Begins a job; see `JobManager.begin`.

        Raises:
            NoBackendError: Nothing here can do it: no job is made.
            OverloadedError: Too much waits already: no job is made.
            UnprocessableEntityError: It would take too long: no job is made.
            ConflictError: Another request has come under that key.
            NotFoundError: The same has, and its job is gone (code ``gone``).
        """

        async def admit() -> Reservation:
            # Not before: what the same request has made may be there, whatever became of that.
            first = self.backends_of(work)[0]
            reservation = self.places[first.name].reserve()
            try:
                if work.prepare is None:
                    await self._check_estimate(work, first)
            except BaseException:
                reservation.release()
                raise
            return reservation

        return await self.jobs.submit(work, idempotency_key, admit)

    async def _check_estimate(self, work: OperationRequest, backend: Backend) -> None:
        """Refuses what would take too long or too much; what has no limit is not measured."""
        if self._bounds.hold_for(work):
            self._bounds.check(work, await backend.estimate(work))


def is_job(operation: str) -> bool:
    """Whether an operation makes a prediction that can be looked at, waited for and cancelled."""
    return operation in JOBS


async def _nothing() -> None:
    pass


def _fails_over(work: OperationRequest, error: errors.APIStatusError) -> bool:
    """Whether the next backend is asked. What this server itself refuses, all would get."""
    if work.operation != "free_chat":
        return False
    # A model that is gone, or too small for this chat, is the backend's own and not the request's.
    return (
        isinstance(error, _NOT_THE_CALLERS)
        or is_of_upstream(error)
        or error.code == "context_length_exceeded"
    )
