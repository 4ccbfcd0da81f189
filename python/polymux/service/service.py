"""The service: runs every operation on its backends, for all APIs."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from polymux import errors
from polymux.client.methods.results import JOBS, RESULTS
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
    """Return the time limit of a free_chat request for all models together, in seconds."""
    wanted = work.values.get("timeout") if work.operation == "free_chat" else None
    return float(wanted) if isinstance(wanted, (int, float)) else None


def _end_of(work: OperationRequest) -> float | None:
    """Return the deadline of a request on the event loop's clock."""
    limit_s = answer_timeout_s(work)
    return None if limit_s is None else asyncio.get_running_loop().time() + limit_s


def too_late(work: OperationRequest) -> errors.InternalServerError:
    """Create the error for a missed deadline."""
    return status_error(
        errors.InternalServerError,
        f"the request timed out (limit {answer_timeout_s(work):g} s)",
        code="upstream_timeout",
        status=504,
        param="timeout",
    )


@asynccontextmanager
async def _in_time(work: OperationRequest, until: float | None) -> AsyncIterator[None]:
    """Cancel the body at the deadline and raise the timeout error."""
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
    """Enter a preparation and return its request, or the unchanged request without one."""
    return work if preparing is None else await stack.enter_async_context(preparing)


_log = logging.getLogger("polymux.service")
_SWEEP_EVERY_S = 30.0
#: Failures not caused by the request: another backend may succeed.
_NOT_THE_CALLERS = (errors.InternalServerError, errors.RateLimitError)


class Service:
    """Runs operations on backends. Belongs to one event loop after `start`.

    Args:
        routes: See `Routes`.
        store: Stores jobs and files.
        queue: Maximum number of requests that wait for one backend. API keys take turns.
        bounds: Limits for estimates. Default: no limits.
        on_spent: Called when work leaves its backend, successful or not, with the request, the
            seconds spent there and its token counts. Default: not called.
        remedy: See `Routes`.

    Raises:
        InvalidRequestError: A route names an unknown backend or one that does not support the
            operation, or two backends have the same name.
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
        """Start to remove expired jobs and files periodically."""
        self._sweeper = asyncio.create_task(self._sweep(), name="polymux sweeper")

    async def _sweep(self) -> None:
        while True:
            # Independent steps: sweeping may free the space that storing a job needs.
            for step in (self._sweep_once, self.jobs.write_again):
                try:
                    await step()
                except errors.PolymuxError as error:
                    _log.error("cannot clean up the store: %s", error)
                except Exception:
                    _log.exception("cleaning up the store failed unexpectedly")
            await asyncio.sleep(_SWEEP_EVERY_S)

    async def _sweep_once(self) -> None:
        while await self.store.run(self.store.sweep):
            pass  # In batches, so other tasks can use the database thread in between.

    def drain(self) -> None:
        """Reject new work from now on."""
        self._draining = True

    async def close(self) -> None:
        """Cancel running work and close all backends and the store."""
        self._draining = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        # Concurrently: closing a backend ends the process of work that ignores cancellation.
        backends = [backend.close() for backend in self.backends.values()]
        await asyncio.gather(self.jobs.close(), *backends)
        await asyncio.to_thread(self.store.close)

    def backends_of(self, work: OperationRequest) -> list[Backend]:
        """Return the backends that can run a request now; see `Routes.backends_of`.

        Raises:
            OverloadedError: The service is shutting down, or see `Routes.backends_of`.
        """
        if self._draining:
            raise draining()
        return self.routes.backends_of(work)

    async def call(
        self, work: OperationRequest, sink: ProgressSink | None = None
    ) -> OperationResult:
        """Run an operation without a job.

        Raises:
            NoBackendError: No backend supports it.
            OverloadedError: The queue is full.
            PolymuxError: It failed.
        """
        async with _in_time(work, _end_of(work)):
            return await self._do(work, sink or buffered_sink(self.store.media.draft), _nothing)

    async def do_behind(
        self, backend: Backend, work: OperationRequest, sink: ProgressSink
    ) -> OperationResult | None:
        """Run the request on the first later backend that accepts it; None without one."""
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
        """Wait for a place at a backend; the body adds token counts to the yielded dict."""
        async with self.places[backend.name].place(work.caller.id, reservation):
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
                if product.engine_model and RESULTS.get(work.operation) != "Prediction":
                    product.output.setdefault("engine_model", product.engine_model)
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
        """Run a job: preparation, then the work. Collects a streamed chat and reports each
        piece.
        """
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
            # The duration of a URL input is known only now.
            await self._check_estimate(ready, backend)
            return await self._run(backend, ready, sink, reservation)

    async def stream(
        self,
        work: OperationRequest,
        sink: ProgressSink | None = None,
        started: Callable[[], Awaitable[None]] | None = None,
        reservation: Reservation | None = None,
    ) -> AsyncGenerator[Chunk]:
        """Stream a chat. If a backend fails before its first chunk, tries the next one.

        Args:
            sink: Receives logs. Default: logs are dropped.
            started: Awaited when the work has its place. Default: nothing.
            reservation: A reserved place in a queue. Default: none.

        Raises:
            The errors of `call`, before the first chunk or between two.
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
                        # The deadline does not count the reader's time between chunks. Without a
                        # deadline there is no wrapper, because this runs for every token.
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
                        counts |= counts_of(plain_of(chunk))  # The last chunk has the counts.
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
        """Create and start a job; see `JobManager.submit`. If it raises, no job was created.

        Raises:
            NoBackendError: No backend supports it.
            OverloadedError: The queue is full.
            UnprocessableEntityError: The estimate exceeds a limit.
            ConflictError: Another request has used this key.
            NotFoundError: The job of this request and key no longer exists (code ``gone``).
        """

        async def admit() -> Reservation:
            # Only for new jobs: an earlier job of the same request needs no backend.
            first = self.backends_of(work)[0]
            reservation = self.places[first.name].reserve(work.caller.id)
            try:
                if work.prepare is None:
                    await self._check_estimate(work, first)
            except BaseException:
                reservation.release()
                raise
            return reservation

        return await self.jobs.submit(work, idempotency_key, admit)

    async def _check_estimate(self, work: OperationRequest, backend: Backend) -> None:
        """Reject a request whose estimate exceeds a limit; estimates only if a limit applies."""
        if self._bounds.hold_for(work):
            self._bounds.check(work, await backend.estimate(work))


def is_job(operation: str) -> bool:
    """Check whether an operation creates a job that clients can watch, await and cancel."""
    return operation in JOBS


async def _nothing() -> None:
    pass


def _fails_over(work: OperationRequest, error: errors.APIStatusError) -> bool:
    """Check whether to try the next backend. Errors of this server would repeat there."""
    if work.operation != "free_chat":
        return False
    # A missing model or a too small context window concerns only this backend.
    return (
        isinstance(error, _NOT_THE_CALLERS)
        or is_of_upstream(error)
        or error.code == "context_length_exceeded"
    )
