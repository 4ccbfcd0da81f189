"""Running jobs: start, watch, wait, cancel, store."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from polymux import errors
from polymux.errors import PolymuxError
from polymux.service import job_table
from polymux.service.errors import StoreError, described, status_error
from polymux.service.job_table import Job, digest_of, new_id
from polymux.service.model import ProgressSink, discard_outputs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from polymux.service.admission import Reservation
    from polymux.service.model import OperationRequest, OperationResult
    from polymux.service.store import Store

    #: Runs the work of a job; calls the third argument when the work has its place. The last
    #: argument is a reserved place.
    Doing = Callable[
        [OperationRequest, ProgressSink, Callable[[], Awaitable[None]], Reservation | None],
        Awaitable[OperationResult],
    ]
    #: Checks limits and reserves a place before a job is created.
    Admitting = Callable[[], Awaitable[Reservation]]

_log = logging.getLogger("polymux.service")
_EVENT_INTERVAL_S = 0.2
#: Statuses of temporary failures, which say nothing about the request.
_FOR_NOW = (429, 503, 507)


class _Running:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.sink: ProgressSink | None = None
        self.task: asyncio.Task[None] | None = None
        self.changed = asyncio.Event()
        self.over = asyncio.Event()
        self.callbacks: list[Callable[[], object]] = []
        self.began = False
        self.waiters = 0
        #: Whether the job continues without waiting clients.
        self.stays = False
        self.leaving = False

    def tell(self) -> None:
        if self.sink is not None:
            self.job.logs, self.job.warnings = list(self.sink.lines), list(self.sink.warnings)
            self.job.progress = self.sink.progress
            self.job.preview = self.sink.preview_url
            self.job.version = self.sink.version or self.job.version
            self.job.engine_model = self.sink.engine_model
            if self.sink.text_pieces is not None:
                # The growing list itself: a copy for each piece would be costly.
                self.job.output = self.sink.text_pieces
        self.changed.set()
        self.changed = asyncio.Event()


class JobManager:
    """Starts and tracks the jobs of a store."""

    def __init__(self, store: Store, do: Doing) -> None:
        self._store = store
        self._do = do
        self._running: dict[str, _Running] = {}
        #: Ended jobs that could not be stored, for example because the disk was full.
        self._unwritten: dict[str, Job] = {}
        self._closing = False

    @property
    def count(self) -> int:
        return len(self._running)

    async def submit(
        self,
        work: OperationRequest,
        idempotency_key: str | None = None,
        admit: Admitting | None = None,
    ) -> tuple[Job, bool]:
        """Create and start a job.

        Args:
            idempotency_key: The same request with the same key is the same job for 24 hours.
            admit: Awaited before a new job is created; its errors propagate.

        Returns:
            The job, and whether it is new.

        Raises:
            ConflictError: Another request has used this key.
            NotFoundError: The job of this request and key no longer exists (code ``gone``).
        """
        asked = None if work.asked is None else dict(work.asked)
        job = Job(
            id=new_id(),
            owner=work.caller.id,
            operation=work.operation,
            model=work.model or work.operation,
            version="hidden",
            input=work.described_input() if asked is None else asked.pop("input"),
            created_at=self._store.clock(),
            asked=asked,
            warnings=list(work.warnings),
        )
        if idempotency_key is not None:
            digest = await asyncio.to_thread(digest_of, work)
            job.idempotency = idempotency_key, digest
        kept, reservation = await self._added(job, admit)
        if kept.id != job.id:
            running = self._running.get(kept.id)
            if running is not None and running.leaving:
                # All clients of that job have disconnected, and it is being canceled. Wait until
                # that frees the key, then start a new job.
                await running.over.wait()
                return await self.submit(work, idempotency_key, admit)
            return self.current(kept), False
        running = self._running[job.id] = _Running(job)
        doing = self._run(running, work, reservation)
        running.task = asyncio.create_task(doing, name=f"job {job.id}")
        return job, True

    async def _added(self, job: Job, admit: Admitting | None) -> tuple[Job, Reservation | None]:
        """Insert the job and reserve a place, or return the earlier job of the same request."""
        jobs = self._store.jobs
        if job.idempotency is not None:
            known = await self._store.run(jobs.of_key, job.owner, *job.idempotency)
            if known is not None:
                return known, None
        reservation = None if admit is None else await admit()
        kept = None
        try:
            kept = await self._store.run(jobs.add, job)
        except asyncio.CancelledError:
            # The client disconnected: without its id, nothing would ever end the job.
            await self._store.run(jobs.withdraw, job)
            raise
        finally:
            if reservation is not None and (kept is None or kept.id != job.id):
                reservation.release()
        return kept, reservation

    async def _run(
        self, running: _Running, work: OperationRequest, reservation: Reservation | None
    ) -> None:
        running.began = True
        job = running.job
        sink = running.sink = ProgressSink(running.tell, self._store.media.draft)
        for warning in work.warnings:
            sink.warn(warning)

        async def started() -> None:
            job.status, job.started_at = job_table.PROCESSING, self._store.clock()
            running.tell()
            await self._store.run(self._store.jobs.update, job)

        ended = job
        product = None
        try:
            product = await self._do(work, sink, started, reservation)
            output = await self._store.kept(job, product.output)
            metrics = dict(product.metrics)
            ended = replace(job, output=output, version=product.version, metrics=metrics)
            ended.engine_model = product.engine_model or sink.engine_model
            ended.status = job_table.SUCCEEDED
            sink.report(1.0)
        except asyncio.CancelledError:
            ended = replace(job, status=job_table.CANCELED)
            if self._closing:
                ended.status, ended.error = job_table.FAILED, dict(job_table.INTERRUPTED)
                ended.idempotency = None
        except Exception as error:
            if described(error)["code"] == "internal":
                _log.exception("job %s (%s) failed unexpectedly", job.id, job.operation)
            elif isinstance(error, StoreError):
                _log.error("job %s (%s): %s", job.id, job.operation, error)
            ended = replace(job)
            job_table.failed(ended, error, self._store.clock())
        finally:
            if reservation is not None:
                reservation.release()
        try:
            if product is not None and ended.status != job_table.SUCCEEDED:
                await self._store.run(discard_outputs, product.output)
        finally:
            await self._end(running, ended, sink)

    async def _end(self, running: _Running, ended: Job, sink: ProgressSink) -> None:
        """Store the end of a job before anything reports it; cannot be canceled."""
        ended.completed_at = self._store.clock()
        ended.metrics = dict(ended.metrics)
        if ended.started_at is not None:
            ended.metrics.setdefault(
                "predict_time", round(ended.completed_at - ended.started_at, 6)
            )
        ended.metrics["total_time"] = round(ended.completed_at - ended.created_at, 6)
        ended.logs, ended.warnings = list(sink.lines), list(sink.warnings)
        ended.progress, ended.preview = sink.progress, None
        if ended.error is not None and ended.error["status"] in _FOR_NOW:
            ended.idempotency = None  # A retry of the same request must run again.
        if running.leaving and ended.status == job_table.CANCELED:
            ended.idempotency = None  # All clients disconnected before they received a result.
        try:
            await self._store.run_to_end(self._write_end, ended)
        except Exception as error:
            # Report failure: a success that was not stored would be lost.
            _log.error("cannot store job %s: %s", ended.id, error)
            job_table.failed(ended, error, self._store.clock())
            ended.output = ended.idempotency = None
            self._unwritten[ended.id] = ended
        finally:
            running.job, running.sink = ended, None
            self._running.pop(ended.id, None)
            try:
                for callback in running.callbacks:
                    callback()
            finally:
                running.tell()
                running.over.set()

    def _write_end(self, job: Job) -> None:
        """Store the end on the database thread. Removes files of a job without a result."""
        files = [] if job.status == job_table.SUCCEEDED else self._store.media.of_job(job.id)
        self._store.media.remove(*files, also=lambda: self._store.jobs.update(job))

    async def write_again(self) -> None:
        """Retry to store the ends that could not be stored.

        Raises:
            PolymuxError: At least one still failed, after all were tried.
        """
        failure = None
        for job in list(self._unwritten.values()):
            try:
                await self._store.run(self._write_end, job)
            except PolymuxError as error:
                failure = error
            else:
                self._unwritten.pop(job.id, None)
        if failure is not None:
            raise failure

    async def find(self, name: str, owner: str | None) -> Job:
        """Return the current state of a job.

        Args:
            name: Id of the job.
            owner: Id of the API key that must own it; None for any.
        """
        running = self._running.get(name)
        job = running.job if running else self._unwritten.get(name)
        if job is None:
            job = await self._store.run(self._store.jobs.find, name)
        if job is None or (owner is not None and job.owner != owner):
            raise status_error(errors.NotFoundError, "id: unknown or expired job", param="id")
        return job

    def current(self, job: Job) -> Job:
        """Return the current state if the job is running, else the given one."""
        running = self._running.get(job.id)
        return self._unwritten.get(job.id, job) if running is None else running.job

    def when_over(self, job: Job, callback: Callable[[], object]) -> None:
        """Call this when the job has ended, or now if it already has."""
        running = self._running.get(job.id)
        if running is None:
            callback()
        else:
            running.callbacks.append(callback)

    async def wait(self, job: Job, max_s: float | None = None) -> Job:
        """Wait for the end of a job, at most `max_s`; returns its current state."""
        running = self._running.get(job.id)
        if running is None:
            return await self.find(job.id, None)
        running.waiters += 1
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(running.over.wait(), max_s)
        finally:
            running.waiters -= 1
        return running.job

    async def events(self, job: Job, every_s: float = _EVENT_INTERVAL_S) -> AsyncIterator[Job]:
        """Yield the job now, after changes, and at its end.

        Args:
            every_s: Minimum time between two updates in seconds. Default: 0.2, about as fast as
                people can read; 0 reports every change.
        """
        running = self._running.get(job.id)
        while running is not None and not running.over.is_set():
            changed = running.changed
            yield running.job
            await changed.wait()
            if every_s > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(running.over.wait(), every_s)
        yield await self.find(job.id, None) if running is None else running.job

    async def cancel(self, job: Job) -> Job:
        """Cancel a job and wait for its end; an ended job stays unchanged."""
        running = self._running.get(job.id)
        if running is None or running.task is None:
            return await self.find(job.id, None)
        while not running.began:
            # A task canceled before its first step never runs, so it would not store its end.
            await asyncio.sleep(0)
        running.task.cancel()
        await running.over.wait()
        return running.job

    def keep(self, job: Job) -> None:
        """Keep a job running without waiting clients, because a client received its id."""
        running = self._running.get(job.id)
        if running is not None:
            running.stays = True

    def unattended(self, owner: str) -> list[Job]:
        """Return the jobs of an API key that run without a waiting request."""
        return [
            one.job
            for one in self._running.values()
            if one.job.owner == owner and one.stays and not one.waiters
        ]

    async def release(self, job: Job) -> None:
        """Cancel a job that no client waits for, unless a client received its id.

        Call it for each client that disconnects: the last one ends the job. The same request may
        start again with its idempotency key.
        """
        running = self._running.get(job.id)
        if running is None or running.waiters or running.stays or running.leaving:
            return
        running.leaving = True
        await self.cancel(job)

    async def remove(self, job: Job) -> None:
        """Delete a job and its files; cancels it first if it is running."""
        await self.cancel(job)
        if job.id in self._unwritten:  # Storing its end would have freed its key.
            await self._store.run(self._store.withdraw, job)
        else:
            await self._store.run(self._store.forget, job.id)
        self._unwritten.pop(job.id, None)

    def interrupt(self) -> None:
        """Treat all later cancellations as interruptions by the shutdown."""
        self._closing = True

    async def close(self) -> None:
        """Cancel all running jobs as interrupted."""
        self.interrupt()
        # Concurrently: one by one, each would give its place to the next waiting job.
        await asyncio.gather(*(self.cancel(one.job) for one in list(self._running.values())))
        with suppress(PolymuxError):
            await self.write_again()
