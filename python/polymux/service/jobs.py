"""Jobs while they run: begun, watched, waited for, cancelled, written down."""

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

    #: Does the work of a job; tells when it has its place, which may have been promised to it.
    Doing = Callable[
        [OperationRequest, ProgressSink, Callable[[], Awaitable[None]], Reservation | None],
        Awaitable[OperationResult],
    ]
    #: Decides whether a job may begin.
    Admitting = Callable[[], Awaitable[Reservation]]

_log = logging.getLogger("polymux.service")
_TOLD_EVERY_S = 0.2
#: Failures that say nothing of the request.
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
        #: Whether it goes on without them.
        self.stays = False
        self.leaving = False

    def tell(self) -> None:
        if self.sink is not None:
            self.job.logs = list(self.sink.lines)
            self.job.progress = self.sink.progress
            self.job.preview = self.sink.preview_url
            self.job.version = self.sink.version or self.job.version
            if self.sink.text_pieces is not None:
                # The list itself, which grows: a copy for each piece would be costly.
                self.job.output = self.sink.text_pieces
        self.changed.set()
        self.changed = asyncio.Event()


class JobManager:
    """The jobs of a store."""

    def __init__(self, store: Store, do: Doing) -> None:
        self._store = store
        self._do = do
        self._running: dict[str, _Running] = {}
        #: Ended, and not written down yet: the disk was full.
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
        """Writes a job down and begins it.

        Args:
            work: What is to be done.
            idempotency_key: What the caller calls this request; the same request under the same
                key is the same job for 24 hours.
            admit: Awaited before a job is made that was not there; what it raises comes out.

        Returns:
            The job, and whether it was begun just now.

        Raises:
            ConflictError: Another request has come under that key.
            NotFoundError: The same has, and its job is gone (code ``gone``).
        """
        job = Job(
            id=new_id(),
            owner=work.caller.id,
            operation=work.operation,
            model=work.model or work.operation,
            version="hidden",
            input=work.described_input(),
            created_at=self._store.clock(),
            asked=None if work.asked is None else dict(work.asked),
        )
        if idempotency_key is not None:
            digest = await asyncio.to_thread(digest_of, work)
            job.idempotency = idempotency_key, digest
        kept, reservation = await self._added(job, admit)
        if kept.id != job.id:
            running = self._running.get(kept.id)
            if running is not None and running.leaving:
                # Its caller has gone and it is being stopped, which frees the key: this one is
                # another's.
                await running.over.wait()
                return await self.submit(work, idempotency_key, admit)
            return self.current(kept), False
        running = self._running[job.id] = _Running(job)
        doing = self._run(running, work, reservation)
        running.task = asyncio.create_task(doing, name=f"job {job.id}")
        return job, True

    async def _added(self, job: Job, admit: Admitting | None) -> tuple[Job, Reservation | None]:
        """The job, written down, with its place; or what the same request has made before."""
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
            # Its caller has gone: nobody knows of it, and nothing would ever end it.
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
            sink.log(warning)

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
        """Writes the end down; nobody is told of it before, whoever cancels it meanwhile."""
        ended.completed_at = self._store.clock()
        ended.metrics = dict(ended.metrics)
        if ended.started_at is not None:
            ended.metrics.setdefault(
                "predict_time", round(ended.completed_at - ended.started_at, 6)
            )
        ended.metrics["total_time"] = round(ended.completed_at - ended.created_at, 6)
        ended.logs, ended.progress, ended.preview = list(sink.lines), sink.progress, None
        if ended.error is not None and ended.error["status"] in _FOR_NOW:
            ended.idempotency = None  # The same request, asked again, shall have another chance.
        if running.leaving and ended.status == job_table.CANCELED:
            ended.idempotency = None  # All its callers have left: nobody was told of it.
        try:
            await self._store.run_to_end(self._write_end, ended)
        except Exception as error:
            # What cannot be written down has not happened: nobody may be told of a success.
            _log.error("job %s cannot be written down: %s", ended.id, error)
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
        """On the catalogue's thread. What has no result has no files: some may be there already."""
        files = [] if job.status == job_table.SUCCEEDED else self._store.media.of_job(job.id)
        self._store.media.remove(*files, also=lambda: self._store.jobs.update(job))

    async def write_again(self) -> None:
        """Writes down the ends that could not be.

        Raises:
            PolymuxError: One of them cannot be yet; all have been tried.
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
        """A job as it is now.

        Args:
            name: Its id.
            owner: The key that may know of it; None for all.
        """
        running = self._running.get(name)
        job = running.job if running else self._unwritten.get(name)
        if job is None:
            job = await self._store.run(self._store.jobs.find, name)
        if job is None or (owner is not None and job.owner != owner):
            raise status_error(
                errors.NotFoundError, "there is no such prediction, or it has expired", param="id"
            )
        return job

    def current(self, job: Job) -> Job:
        """The job as it is now, where it runs; else as it was given."""
        running = self._running.get(job.id)
        return self._unwritten.get(job.id, job) if running is None else running.job

    def when_over(self, job: Job, callback: Callable[[], object]) -> None:
        """Calls this when the job has ended; at once where it has."""
        running = self._running.get(job.id)
        if running is None:
            callback()
        else:
            running.callbacks.append(callback)

    async def wait(self, job: Job, max_s: float | None = None) -> Job:
        """Waits for a job's end, at most so long; gives it as it is then."""
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

    async def events(self, job: Job, every_s: float = _TOLD_EVERY_S) -> AsyncIterator[Job]:
        """A job now, whenever it changes, and at its end.

        Args:
            job: The job.
            every_s: How long nothing is told after something was, in seconds. Default: 0.2, not
                more often than people can read; 0 tells of every change.
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
        """Asks for a job's end and waits for it; one that has ended stays as it is."""
        running = self._running.get(job.id)
        if running is None or running.task is None:
            return await self.find(job.id, None)
        while not running.began:
            # A task that is cancelled before its first step never takes it, and tells nobody.
            await asyncio.sleep(0)
        running.task.cancel()
        await running.over.wait()
        return running.job

    def keep(self, job: Job) -> None:
        """Has a job go on without whoever waits: somebody was promised that it does."""
        running = self._running.get(job.id)
        if running is not None:
            running.stays = True

    def unattended(self, owner: str) -> list[Job]:
        """The jobs of a key that go on while no request of it waits for them."""
        return [
            one.job
            for one in self._running.values()
            if one.job.owner == owner and one.stays and not one.waiters
        ]

    async def release(self, job: Job) -> None:
        """Cancels a job that nobody waits for any more, unless somebody was promised its end.

        Called by each of its callers that leaves: the last of them ends it, whoever began it. The
        same request may come again under its key.
        """
        running = self._running.get(job.id)
        if running is None or running.waiters or running.stays or running.leaving:
            return
        running.leaving = True
        await self.cancel(job)

    async def remove(self, job: Job) -> None:
        """Forgets a job and its files; one that runs is cancelled first."""
        await self.cancel(job)
        if job.id in self._unwritten:  # Its end, once written down, would have freed its key.
            await self._store.run(self._store.withdraw, job)
        else:
            await self._store.run(self._store.forget, job.id)
        self._unwritten.pop(job.id, None)

    def interrupt(self) -> None:
        """Has all that is cancelled from now on be what was interrupted, whoever cancels it."""
        self._closing = True

    async def close(self) -> None:
        """Cancels all that run: they were interrupted."""
        self.interrupt()
        # All at once: one after another, each would give its place to the next.
        await asyncio.gather(*(self.cancel(one.job) for one in list(self._running.values())))
        with suppress(PolymuxError):
            await self.write_again()
