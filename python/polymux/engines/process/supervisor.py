"""Backends of engines in child processes: started on demand, supervised, stopped, restarted."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import aclosing, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux._util.memory import resident_bytes
from polymux.engines.process.crashes import Crashes
from polymux.engines.process.process import CrashError, EngineProcess
from polymux.engines.process.task import LAST_KINDS, EngineTask
from polymux.service.backend import Backend, Health
from polymux.service.errors import engine_failed, status_error
from polymux.service.job_table import hash_of_fields
from polymux.service.model import OperationResult

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Mapping,
        Sequence,
    )

    from polymux.service.model import OperationRequest, ProgressSink

_log = logging.getLogger("polymux.engines")
#: Maximum attempts for a request whose process ends before the first output.
_MAX_TRIES = 2
#: Message for /readyz, which is public: paths are only in the log.
_NOT_LOADED = "loading failed (see the log)"


def _digest_of(work: OperationRequest) -> str:
    """Return the hash of everything that the engine gets. Blocks."""
    return hash_of_fields({"operation": work.operation, "model": work.model, **work.values})


class Supervision(NamedTuple):
    """Supervision of an engine's process.

    Attributes:
        threads: Number of library threads. Default: the number of CPUs.
        idle_s: Idle time after which the process is stopped to free its memory. Default: 300.
        load_s: Time limit for loading. Default: 300.
        silence_s: Time without any message after which the process is killed. Default: 30.
        cancel_timeout_s: Time that a canceled request has to stop before its process is killed.
            Default: 1.5.
        stalled_s: Time without progress or output of a request after which its process is killed.
            Each megabyte of input files adds a second. Default: unlimited, because models may
            compute for long.
        opening_s: Like `stalled_s`, until a request reports its first progress. Default: as
            `stalled_s`.
        confinement: Restrictions of the process: ``readable`` and ``writable`` paths, ``network``,
            ``limits``; None for no restrictions.
    """

    threads: int = max(1, os.cpu_count() or 1)
    idle_s: float = 300.0
    load_s: float = 300.0
    silence_s: float = 30.0
    cancel_timeout_s: float = 1.5
    stalled_s: float | None = None
    opening_s: float | None = None
    confinement: Mapping[str, Any] | None = None


class EngineBackend(Backend):
    """An engine in a child process.

    Args:
        name: Name of the backend.
        family: Name of the engine in `polymux.engines.registry`.
        operations: Operations that the engine supports.
        options: Options for its `load`.
        max_concurrency: Maximum concurrent requests, which the engine must support.
        supervision: Supervision of the process.
        before_load: Awaited before a process starts, for example to free memory.
        needed_bytes: Approximate memory after loading; None if unknown.
    """

    def __init__(
        self,
        name: str,
        family: str,
        operations: Sequence[str],
        options: Mapping[str, Any] | None = None,
        *,
        max_concurrency: int = 1,
        supervision: Supervision | None = None,
        before_load: Callable[[EngineBackend], Awaitable[None]] | None = None,
        needed_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.operations = frozenset(operations)
        self.max_concurrency = max_concurrency
        self._family = family
        self._options = dict(options or {})
        self._supervision = supervision or Supervision()
        self.needed_bytes = needed_bytes
        #: Time when it last became idle, by the event loop's clock.
        self.rested_at = 0.0
        self._before_load = before_load
        self._process: EngineProcess | None = None
        self._loading: EngineProcess | None = None
        self._starting = asyncio.Lock()
        self._state = "idle"
        self._closed = False
        self._crashes = Crashes(name)
        #: Held by a request that crashed beside others, while it runs again.
        self._suspect = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def process(self) -> EngineProcess | None:
        return self._process

    @property
    def is_loaded(self) -> bool:
        return self._process is not None

    @property
    def resident_bytes(self) -> int:
        """Memory of the engine's process; 0 without one."""
        return 0 if self._process is None else resident_bytes(self._process.pid)

    @property
    def loading(self) -> EngineProcess | None:
        """The process that is being loaded, also while it waits for memory; else None."""
        return self._loading

    def refuse(self, work: OperationRequest) -> None:
        """Reject requests while the engine is disabled for their API key, or for everybody.

        Raises:
            OverloadedError: The engine has crashed too often (code ``engine_broken``).
        """
        self._crashes.check(work.caller.id)

    def health(self) -> Health:
        if self._crashes.blocked_s > 0:
            return Health("failed", self._crashes.reason)
        return Health(self._state, _NOT_LOADED if self._state == "failed" else "")

    def _living(self) -> EngineProcess | None:
        """Return the process if it is usable. A crash is recorded before another process starts."""
        process = self._process
        if process is None or process.was_wanted:
            return None
        if process.crash is not None:
            self._note_end(process)
            return None
        return process

    def _check_open(self) -> None:
        if self._closed:
            raise status_error(
                errors.OverloadedError, f"engine {self.name} is closed", code="draining"
            )

    async def _ready(self, owner: str) -> EngineProcess:
        """Return the loaded process, and start it if needed.

        Raises:
            OverloadedError: The engine has crashed too often.
            PolymuxError: The engine cannot be loaded.
        """
        process = self._living()
        if process is not None and not self._closed:
            return process
        async with self._starting:
            self._check_open()
            process = self._living()
            if process is not None:
                return process
            if self._process is not None:  # Two processes would need twice the memory.
                await self._process.gone.wait()
            self._crashes.check(owner)
            await asyncio.sleep(self._crashes.pause_s)
            return await self._load()

    async def _load(self) -> EngineProcess:
        how = self._supervision
        process = self._loading = EngineProcess(
            self._family,
            self._options,
            threads=how.threads,
            confinement=how.confinement,
            silence_s=how.silence_s,
        )
        try:
            if self._before_load is not None:
                await self._before_load(self)
            self._check_open()
            self._state = "loading"
            await self._loaded(process)
            self._check_open()
        except BaseException:
            if self._closed:
                await process.stop()
                self._state = "idle"
                self._check_open()
            raise
        finally:
            self._loading = None
        self._state = "ready"
        self._process = process
        self._keep(self._mourn(process))
        return process

    async def _loaded(self, process: EngineProcess) -> None:
        """Wait until the engine is loaded.

        Raises:
            PolymuxError: Loading failed or timed out.
        """
        load_s = self._supervision.load_s
        try:
            await asyncio.wait_for(process.start(), load_s)
        except TimeoutError:
            late = engine_failed(f"engine {self.name}: loading timed out after {load_s:.0f} s")
            self._note_not_loaded(late)
            raise late from None
        except errors.PolymuxError as error:
            self._note_not_loaded(error)
            if not process.was_wanted:
                self._crashes.record_end(by_request=False)
            raise
        except BaseException:
            self._state = "idle"
            raise

    def _note_not_loaded(self, error: errors.PolymuxError) -> None:
        self._state = "failed"
        _log.error("cannot load engine %s: %s", self.name, error)

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _mourn(self, process: EngineProcess) -> None:
        """Record the end of a process even if no request follows."""
        await process.gone.wait()
        self._note_end(process)

    def _note_end(self, process: EngineProcess) -> None:
        """Record the end of a process once."""
        if self._process is not process:
            return
        self._process = None
        self._state = "idle"
        if not process.was_wanted and process.crash is not None:
            self._crashes.record_end(by_request=bool(process.running_at_end))
            _log.error("engine %s %s", self.name, process.crash.words)

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        results: list[OperationResult] = []
        async with aclosing(self._chunks(work, sink, results)) as chunks:
            async for _ in chunks:
                pass
        return results[0]

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[dict[str, Any]]:
        return self._chunks(work, sink, [])

    async def _chunks(
        self, work: OperationRequest, sink: ProgressSink, results: list[OperationResult]
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield chunks, and append the result to `results`. Retry a crash before any output."""
        tries = 0
        begun = is_suspect = False
        await self._check_input(work)
        while True:
            async with self._suspect if is_suspect else nullcontext():
                process = await self._ready(work.caller.id)
                sink.version = process.facts.get("version")
                sink.engine_model = str(process.facts.get("model", ""))
                engine_task = EngineTask(self.name, self._supervision, process, sink)
                ended = False
                try:
                    await engine_task.begin(work)
                    if is_suspect:
                        process.suspects.add(engine_task.number)
                    while not ended:
                        frame = await engine_task.next()
                        if isinstance(frame, CrashError):
                            ended = True
                            tries += await self._counts(process, engine_task.number, work)
                            if begun or tries >= _MAX_TRIES:
                                raise engine_failed(
                                    f"engine {self.name} crashed during this request. Try again"
                                )
                            is_suspect = process.has_begun(engine_task.number)
                            break
                        ended = frame.kind in LAST_KINDS
                        found = await engine_task.handled(frame)
                        if isinstance(found, OperationResult):
                            results.append(found)
                            return
                        if found is not None:
                            begun = True
                            yield found
                finally:
                    try:
                        await engine_task.close(ended=ended)
                    finally:
                        self._rest()

    async def _check_input(self, work: OperationRequest) -> None:
        """Reject a request that has crashed the engine twice."""
        if self._crashes.has_causes(work.caller.id):
            digest = await asyncio.to_thread(_digest_of, work)
            self._crashes.check_request(work.caller.id, digest)

    async def _counts(self, process: EngineProcess, number: int, work: OperationRequest) -> int:
        """Return how many attempts of a request the end of its process has used up.

        The result is 0 if another request was the cause. If several requests were running, they are
        repeated one after the other, and the one that crashes the process again is the cause.
        The result is the maximum if the engine is now disabled: this request fails with the crash,
        later ones are rejected.
        """
        if process.was_wanted:
            return int(process.has_begun(number))
        self._note_end(process)
        if number not in process.causes:
            return 0
        digest = await asyncio.to_thread(_digest_of, work)
        self._crashes.record_cause(work.caller.id, digest)
        return _MAX_TRIES if self._crashes.blocked_for_s(work.caller.id) > 0 else 1

    def _rest(self) -> None:
        """Schedule stopping of an idle process."""
        process = self._process
        if process is None or process.busy:
            return
        loop = asyncio.get_running_loop()
        self.rested_at = loop.time()
        if self._idle is None:
            self._idle = loop.call_later(self._supervision.idle_s, self._unload_idle)

    def _unload_idle(self) -> None:
        """Stop the process if it was idle long enough; one timer serves all requests."""
        loop = asyncio.get_running_loop()
        left_s = self.rested_at + self._supervision.idle_s - loop.time()
        self._idle = loop.call_later(left_s, self._unload_idle) if left_s > 0 else None
        if left_s > 0:
            return
        if self._process is not None and not self._process.busy:
            self._keep(self.unload())

    async def unload(self) -> bool:
        """Stop the process unless it is busy. Return whether its memory is free."""
        async with self._starting:
            process = self._process
            if process is None:
                return True
            if process.busy:
                return False
            self._process = None
            self._state = "idle"
            await process.stop()
            return True

    async def close(self) -> None:
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        for process in (self._loading, self._process):
            if process is not None:
                await process.stop()
        async with self._starting:
            pass  # Wait until loading has stopped.
        for task in list(self._closing):
            with suppress(asyncio.CancelledError):
                await task
