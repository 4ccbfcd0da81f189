"""The threads of a batch: a finder, workers, a writer, and the caller's thread, which watches."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import starmap
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from polymux.batches.manifest import check_unchanged, listed, status_of, undone
from polymux.batches.output_store import is_without_room
from polymux.batches.records import Failed, StagedResult, Task, failed_with
from polymux.batches.results import BatchProgress
from polymux.errors import (
    APIStatusError,
    AuthenticationError,
    ConnectError,
    MissingDependencyError,
    NoBackendError,
    OutputError,
    OutputExistsError,
    OutputFailedError,
    OverloadedError,
    PermissionDeniedError,
    RateLimitError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from polymux.batches.executors import Executor
    from polymux.batches.inputs import Inputs
    from polymux.batches.manifest import Manifest
    from polymux.batches.output_store import OutputStore
    from polymux.batches.records import Found, Staged
    from polymux.batches.spec import BatchSpec

#: After these errors nothing was processed, and a retry may succeed.
REFUSALS = (RateLimitError, OverloadedError, ConnectError)
#: If the server rejects all requests for this time, in seconds, the batch ends.
PATIENCE_S = 900.0
_FIRST_PAUSE_S, _MAX_PAUSE_S = 1.0, 60.0


class RetryAfterGate:
    """Delays requests of all threads after the server rejects one for now.

    Args:
        patience_s: Maximum time without a success, and maximum requested pause, in seconds.
        clock: Monotonic clock in seconds.

    Example:
        >>> import polymux
        >>> from polymux.batches.runner import RetryAfterGate
        >>> pauses = RetryAfterGate(clock=lambda: 100.0)
        >>> busy = polymux.RateLimitError("too many requests")
        >>> busy.headers = {"retry-after": "7"}
        >>> pauses.refused(busy), pauses.left_s
        (True, 7.0)
    """

    def __init__(
        self, patience_s: float = PATIENCE_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._changed = threading.Condition()
        self._until = 0.0
        self._since: float | None = None
        self._refusals = 0
        self._is_over = False
        #: Number of successful requests.
        self.successes = 0

    @property
    def left_s(self) -> float:
        """Seconds left of a pause, else 0. Takes no lock, because `Runner.progress` must not."""
        return max(0.0, self._until - self._clock())

    def refused(self, error: Exception) -> bool:
        """Record a rejection and pause all threads. Return False if the patience is exhausted."""
        asked_s = retry_after_s(error.headers) if isinstance(error, APIStatusError) else None
        with self._changed:
            now = self._clock()
            if self._since is None:
                self._since = now
            if max(now - self._since, asked_s or 0.0) > self._patience_s:
                return False
            if now >= self._until:  # Rejections during a pause count as one.
                self._refusals += 1
            if asked_s is None:
                asked_s = min(_MAX_PAUSE_S, _FIRST_PAUSE_S * 2 ** (self._refusals - 1))
            self._until = max(self._until, now + asked_s)
            self._changed.notify_all()
            return True

    def succeeded(self) -> None:
        """Record a success."""
        with self._changed:
            self._since = None
            self._refusals = 0
            self.successes += 1

    def wait(self) -> bool:
        """Wait for the end of a pause. Return False if the batch ends."""
        with self._changed:
            while not self._is_over and (left_s := self._until - self._clock()) > 0:
                self._changed.wait(left_s)
            return not self._is_over

    def end(self) -> None:
        """End all waits."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait in Retry-After: seconds, or until a date (RFC 9110, 10.2.3).

    Example:
        >>> from polymux.batches.runner import retry_after_s
        >>> retry_after_s({"retry-after-ms": "250"}), retry_after_s({"retry-after": "soon"})
        (0.25, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if text.replace(".", "", 1).isdigit() and text.isascii():
            return float(text) * unit
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


_ADDED_TOGETHER = 500
_LOOK_S = 0.2
_GLANCE_S = 0.01
#: Errors that affect all items: always, or if nothing has succeeded before.
_ENDS_ALL = (AuthenticationError,)
_ENDS_ALL_AT_FIRST = (NoBackendError, MissingDependencyError, PermissionDeniedError)
#: How often an item may be rejected while other items succeed.
_CHANCES = 5


#: The outcome of an item; a task means that it was taken but not processed.
_Outcome = StagedResult | Failed | Task
_Given = int | _Outcome | None


class _Stopped(Exception):  # noqa: N818 - not an error: the batch ends before this item
    """The item was not processed."""


class Runner:
    """One run of a batch.

    Args:
        manifest: The items.
        storage: Stores the outputs.
        spec: The operation and its common fields.
        executor: Runs the items.
        workers: Number of parallel items; the same number is taken in advance.
        fail_fast: Start no more items after a failure.
        overwrite: Replace files that are not from this batch, after all inputs are listed.
    """

    def __init__(
        self,
        manifest: Manifest,
        storage: OutputStore,
        spec: BatchSpec,
        executor: Executor,
        *,
        workers: int,
        fail_fast: bool,
        overwrite: bool,
    ) -> None:
        self._manifest, self._storage = manifest, storage
        self._spec, self._executor = spec, executor
        self._workers, self._fail_fast, self._overwrite = workers, fail_fast, overwrite
        self._pauses = RetryAfterGate()
        self._changed = threading.Condition()
        self._taken: deque[Task] = deque()
        #: Numbers of all items in progress, and identities of those being processed.
        self._hand: set[int] = set()
        self._busy: dict[int, bytes] = {}
        self._left = workers
        #: Queue to the writer: numbers of items that start, outcomes (the task itself if it was
        #: not processed), and None at the end.
        self._given: SimpleQueue[_Given] = SimpleQueue()
        #: Implemented in C: an interruption cannot corrupt it.
        self._ended: SimpleQueue[int | None] = SimpleQueue()
        self._unreported: deque[int | None] = deque()
        self._is_finding = True
        self._is_stopping = self._is_interrupted = False
        self._is_over = False
        #: Whether running threads were abandoned. They must not write to the manifest any more.
        self.is_abandoned = False
        self._started = time.monotonic()
        counts = manifest.counts()
        self._done, self._failed, self._total = counts.done, counts.failed, counts.total
        self._done_bytes, self._total_bytes = counts.ended_bytes, counts.total_bytes
        self._ended_here = self._ended_here_bytes = 0
        #: The error that ended the batch early, if any.
        self.error: BaseException | None = None
        self.kept, self.copied, self.repeated, self.remade = counts.done, 0, 0, 0

    def run(
        self,
        finds: Inputs,
        inputs: Iterable[Any],
        *,
        checks_done: bool,
        on_ended: Callable[[int], object],
        on_progress: Callable[[BatchProgress], object],
    ) -> None:
        """Run until the end. The first interruption finishes running items, the second does not.

        Args:
            finds: Finds the items, on a separate thread.
            inputs: The inputs to search.
            checks_done: Check whether the outputs of earlier runs still exist unchanged.
            on_ended: Called with the number of each item that has ended, in this thread.
            on_progress: Called a few times per second, in this thread.
        """
        names = [f"polymux-batch-{number}" for number in range(self._workers)]
        threads = [threading.Thread(target=self._work, name=one, daemon=True) for one in names]
        finder = threading.Thread(
            target=self._find,
            args=(finds, inputs, checks_done),
            name="polymux-batch-finder",
            daemon=True,
        )
        writer = threading.Thread(target=self._write, name="polymux-batch-writer", daemon=True)
        for one in (writer, finder, *threads):
            one.start()
        try:
            try:
                self._watch(on_ended, on_progress)
            except BaseException:
                self._is_interrupted = True
                self.stop()
                self._watch(on_ended, on_progress)
                raise
        except BaseException:
            self.stop()
            raise
        finally:
            # After a second interruption, threads may still run without a listener.
            self.is_abandoned = not self._is_over

    def _watch(
        self,
        on_ended: Callable[[int], object],
        on_progress: Callable[[BatchProgress], object],
    ) -> None:
        """Report ended items and progress until the end."""
        while not self._is_over:
            with suppress(Empty):
                # A single step in C: an interruption between two steps could lose an item.
                self._unreported.extend(starmap(self._ended.get, ((True, _LOOK_S),)))
            while self._unreported:
                one = self._unreported[0]
                try:
                    if one is not None:
                        on_ended(one)
                except Exception:
                    self._unreported.popleft()  # It was reported; the caller's code raised.
                    raise
                self._is_over = one is None
                self._unreported.popleft()
            on_progress(self.progress())

    def stop(self, error: BaseException | None = None) -> None:
        """Start no more items."""
        with self._changed:
            self.error = self.error or error
            self._is_stopping = True
            self._changed.notify_all()
        self._pauses.end()

    def progress(self) -> BatchProgress:
        """Return the progress.

        Takes no locks: a signal handler's exception could leave a lock taken forever.
        """
        return BatchProgress(
            done=self._done,
            failed=self._failed,
            total=self._total,
            is_counting=self._is_finding,
            done_bytes=self._done_bytes,
            total_bytes=self._total_bytes,
            ended_here=self._ended_here,
            ended_here_bytes=self._ended_here_bytes,
            elapsed_s=time.monotonic() - self._started,
            paused_s=0.0 if self._is_stopping else self._pauses.left_s,
            is_stopping=self._is_interrupted,
        )

    def _find(self, finds: Inputs, inputs: Iterable[Any], checks_done: bool) -> None:  # noqa: FBT001
        """Run the finder thread, which fills the manifest while workers already run."""
        found = finds.find(inputs)
        try:
            every = listed(found, self._manifest)
            if checks_done:
                for task in undone(self._manifest, self._storage, self._spec):
                    self._again(task)
                    if self._is_stopping:
                        return
            some: list[Found] = []
            added = 0.0
            for one in every:
                some.append(one)
                # Add items after some time even if they are found slowly.
                if len(some) >= _ADDED_TOGETHER or time.monotonic() - added > _LOOK_S:
                    self._add(some)
                    some, added = [], time.monotonic()
                if self._is_stopping:
                    return
            self._add(some)
            self._manifest.note_listing(is_whole=not finds.unread)
        except BaseException as error:
            self.stop(error)
        finally:
            found.close()  # Its resources belong to this thread.
            with self._changed:
                self._is_finding = False
                self._changed.notify_all()

    def _add(self, some: list[Found]) -> None:
        new, new_bytes, known = self._manifest.add(some)
        with self._changed:
            self._total += new
            self._total_bytes += new_bytes
            self.repeated += known
            self._changed.notify_all()

    def _again(self, task: Task) -> None:
        with self._changed:
            self.remade += 1
            self.kept -= 1
            self._done -= 1
            self._done_bytes -= task.size_bytes or 0
            self._changed.notify_all()

    def _next(self) -> Task | None:
        """Return the next item, or None at the end."""
        with self._changed:
            # With overwrite, wait for all inputs: an output must not replace a later input.
            while self._overwrite and self._is_finding and not self._is_stopping:
                self._changed.wait(_LOOK_S)
            while not self._is_stopping:
                free = 2 * self._workers - len(self._hand)
                if not self._taken and free > 0:
                    # Read this before the manifest: no item added in between is then missed.
                    is_all = not self._is_finding
                    found = self._manifest.next_ones(min(free, self._workers), self._hand)
                    self._hand.update(task.id for task in found)
                    self._taken.extend(found)
                    if not found and is_all:
                        return None
                if self._taken:
                    return self._taken.popleft()
                self._changed.wait(_LOOK_S)
            return None

    def _work(self) -> None:
        """Run a worker thread."""
        try:
            while (task := self._next()) is not None:
                self._do(task)
        except BaseException as error:
            self.stop(error)
        finally:
            with self._changed:
                self._left -= 1
                if not self._left:
                    self._given.put(None)

    def _do(self, task: Task) -> None:
        """Process an item and pass the outcome to the writer."""
        started = time.monotonic()
        self._given.put(task.id)
        try:
            fields = {**self._spec.fields, **json.loads(task.fields)}
            first = fields.get(self._spec.first) if self._spec.is_file else None
            before = status_of(first)
            identity = self._spec.identity(fields)
            self._wait_for_alike(identity, task)
            copied_from, staged = self._copied(task, identity) or (None, self._asked(task, fields))
            check_unchanged(first, before)
        except _Stopped:
            self._given.put(task)
        except Exception as error:
            self._storage.clear(task.id)
            if self._ends_all(error):
                self.stop(error)
                self._given.put(task)
                return
            self._given.put(failed_with(task, error, time.monotonic() - started))
        else:
            size_bytes, mtime_ns = before or (None, None)
            elapsed_s = time.monotonic() - started
            made = StagedResult(
                task, staged, identity, size_bytes, mtime_ns, copied_from, elapsed_s
            )
            self._given.put(made)

    def _ends_all(self, error: Exception) -> bool:
        """Return whether an error affects all items, not only this one."""
        if isinstance(error, _ENDS_ALL):
            return True
        if isinstance(error, _ENDS_ALL_AT_FIRST):
            with self._changed:
                return self._done == self.kept
        return is_without_room(error)

    def _wait_for_alike(self, identity: bytes, task: Task) -> None:
        """Wait until no identical item is in progress; its result can then be copied."""
        with self._changed:
            while identity in self._busy.values():
                self._changed.wait()
            self._busy[task.id] = identity

    def _copied(self, task: Task, identity: bytes) -> tuple[int, tuple[Staged, ...]] | None:
        """Stage a copy of the result of an identical item that is done and unchanged."""
        like = self._manifest.done_like(identity, task.id)
        if like is None:
            return None
        item, outputs = like
        staged = []
        for one in outputs:
            try:
                self._storage.copy(task.id, one.number, self._storage.path_of(one))
                made = self._storage.sealed(task.id, one.number, one.ending)
            except OutputFailedError:
                return None
            if made.sha256 != one.sha256:
                return None
            staged.append(made)
        return item, tuple(staged)

    def _asked(self, task: Task, fields: dict[str, Any]) -> tuple[Staged, ...]:
        """Run the executor, with retries after temporary rejections. Return the staged files."""
        chances = _CHANCES
        while True:
            if not self._pauses.wait():
                raise _Stopped
            before = self._pauses.successes
            try:
                endings = self._executor.run(fields, task.id, self._storage)
            except REFUSALS as error:
                # If other items succeed meanwhile, the rejection concerns this item.
                chances -= self._pauses.successes > before
                if not chances:
                    raise
                if not self._pauses.refused(error):
                    self.stop(error)
                    raise _Stopped from error
                continue
            self._pauses.succeeded()
            return tuple(
                self._storage.sealed(task.id, number, ending)
                for number, ending in enumerate(endings)
            )

    def _write(self) -> None:
        """Run the writer thread, which records all pending events in one transaction.

        A transaction waits for the disk several times, independent of its size. During this wait,
        other threads work, and their outcomes go into the next transaction.
        """
        named: list[StagedResult] = []
        try:
            is_open = True
            # This thread also queues failures itself, if files cannot be renamed.
            while is_open or named or not self._given.empty():
                given = self._all_given(waits=is_open and not named)
                is_open = is_open and None not in given
                named = self._written(given, named)
        except BaseException as error:
            self.stop(error)
        finally:
            self._tell(None)

    def _all_given(self, *, waits: bool) -> list[_Given]:
        """Return all queued events; if `waits`, at least one."""
        given = [self._given.get()] if waits else []
        while True:
            try:
                given.append(self._given.get_nowait())
            except Empty:
                return given

    def _written(self, given: list[_Given], named: list[StagedResult]) -> list[StagedResult]:
        """Record events and rename files. Return the items whose files were renamed."""
        failed = [one for one in given if isinstance(one, Failed)]
        returned = [one for one in given if isinstance(one, Task)]
        made = [one for one in given if isinstance(one, StagedResult)]
        answers = self._manifest.write_down(
            taken=[one for one in given if isinstance(one, int)],
            finished=named,
            failed=failed,
            returned=returned,
            made=made,
            overwrite=self._overwrite,
        )
        outcomes: list[_Outcome] = [*named, *failed, *returned]
        for outcome in outcomes:
            self._over(outcome)
        now_named = []
        for one, answer in zip(made, answers, strict=True):
            try:
                if isinstance(answer, OutputExistsError):
                    raise answer
                self._storage.publish(one.task.id, answer)
            except OutputError as error:
                if is_without_room(error):
                    raise
                self._storage.clear(one.task.id)
                self._given.put(failed_with(one.task, error, one.elapsed_s))
            else:
                now_named.append(one)
        self._storage.sync()
        return now_named

    def _over(self, ended: _Outcome) -> None:
        """Update the counters after an outcome was recorded on the disk (writer thread)."""
        task = ended if isinstance(ended, Task) else ended.task
        is_done = isinstance(ended, StagedResult)
        with self._changed:
            self._hand.discard(task.id)
            self._busy.pop(task.id, None)
            self._changed.notify_all()
            if isinstance(ended, Task):
                return
            self._done += is_done
            self._failed += not is_done
            self._done_bytes += task.size_bytes or 0
            if isinstance(ended, StagedResult) and ended.copied_from is None:
                self._ended_here += 1
                self._ended_here_bytes += task.size_bytes or 0
            else:
                self.copied += is_done
        if self._fail_fast and not is_done:
            self.stop()
        self._tell(task.id)

    def _tell(self, ended: int | None) -> None:
        """Pass an ended item to the watching thread, and wait if that is too slow."""
        while self._ended.qsize() > 2 * self._workers and not self.is_abandoned:
            time.sleep(_GLANCE_S)
        self._ended.put(ended)
