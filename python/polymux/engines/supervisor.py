"""Engines as backends: their processes started when wanted, watched, ended, and started again."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.process import CrashError, EngineProcess
from polymux.service.backend import Backend, Health
from polymux.service.failures import described, engine_failed, refusal, restored
from polymux.service.work import Made, Product, Upload

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Mapping,
        Sequence,
    )

    from polymux.engines.frames import Frame
    from polymux.service.media_store import Draft
    from polymux.service.work import Sink, Work

_log = logging.getLogger("polymux.engines")
_MOST_CRASHES = 3
_CRASHES_WITHIN_S = 300.0
_FIRST_BACKOFF_S = 0.2


class Supervision(NamedTuple):
    """How an engine's process is looked after.

    Attributes:
        threads: How many threads its libraries may use. Default: one for each processor.
        idle_s: After how long without work it is ended, and its memory free. Default: 300.
        load_s: How long loading may take. Default: 300.
        silence_s: After how long without a sign of life it is ended. Default: 30.
        grace_s: How long cancelled work may take to stop by itself, before the process is ended.
            Default: 1.5.
        confinement: What the process may still do: ``readable`` and ``writable`` paths,
            ``network``, ``limits``; None for everything.
    """

    threads: int = max(1, os.cpu_count() or 1)
    idle_s: float = 300.0
    load_s: float = 300.0
    silence_s: float = 30.0
    grace_s: float = 1.5
    confinement: Mapping[str, Any] | None = None


class EngineBackend(Backend):
    """An engine in a process of its own.

    Args:
        name: As configuration and logs call it.
        family: As `polymux.engines.families` knows it.
        operations: What it can do.
        options: What its `load` gets.
        slots: How much of it can be done at once; the engine must have as many.
        supervision: How its process is looked after.
        before_load: Awaited before a process is started, such as to make room in memory.
        needed_bytes: Memory that it takes once it is loaded, about; None where nobody knows.
    """

    def __init__(
        self,
        name: str,
        family: str,
        operations: Sequence[str],
        options: Mapping[str, Any] | None = None,
        *,
        slots: int = 1,
        supervision: Supervision | None = None,
        before_load: Callable[[EngineBackend], Awaitable[None]] | None = None,
        needed_bytes: int | None = None,
    ) -> None:
        """No process is started."""
        self.name = name
        self.operations = frozenset(operations)
        self.slots = slots
        self._family = family
        self._options = dict(options or {})
        self._supervision = supervision or Supervision()
        self.needed_bytes = needed_bytes
        #: When it last had nothing to do any more, by the event loop's clock.
        self.rested_at = 0.0
        self._before_load = before_load
        self._process: EngineProcess | None = None
        self._starting = asyncio.Lock()
        self._state = "idle"
        self._closed = False
        self._crashes: deque[float] = deque(maxlen=_MOST_CRASHES)
        self._idle: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def process(self) -> EngineProcess | None:
        """Its process; None while there is none."""
        return self._process

    @property
    def is_loaded(self) -> bool:
        """Whether it has a process."""
        return self._process is not None

    def health(self) -> Health:
        """Whether it is loaded, loading, broken, or not wanted yet."""
        if self._blocked_s() > 0:
            return Health("failed", f"{_MOST_CRASHES} crashes in {_CRASHES_WITHIN_S:.0f} s")
        return Health(self._state)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _blocked_s(self) -> float:
        """For how long it is not started again, after so many crashes."""
        if len(self._crashes) < _MOST_CRASHES:
            return 0.0
        return self._crashes[0] + _CRASHES_WITHIN_S - self._now()

    async def _ready(self) -> EngineProcess:
        """The process, loaded.

        Raises:
            OverloadedError: It has crashed too often of late.
            PolymuxError: It cannot be loaded.
        """
        process = self._process
        if process is not None and process.crash is None and not self._closed:
            return process
        async with self._starting:
            if self._closed:
                raise refusal(errors.OverloadedError, f"{self.name} is closed", code="draining")
            process = self._process
            if process is not None and process.crash is None:
                return process
            blocked_s = self._blocked_s()
            if blocked_s > 0:
                raise refusal(
                    errors.OverloadedError,
                    f"the engine {self.name} has crashed {_MOST_CRASHES} times in "
                    f"{_CRASHES_WITHIN_S / 60:.0f} minutes and is left alone for a while",
                    code="engine_broken",
                    retry_after_s=blocked_s,
                )
            if self._crashes:
                await asyncio.sleep(_FIRST_BACKOFF_S * 2 ** (len(self._crashes) - 1))
            return await self._load()

    async def _load(self) -> EngineProcess:
        if self._before_load is not None:
            await self._before_load(self)
        how = self._supervision
        process = EngineProcess(
            self._family,
            self._options,
            threads=how.threads,
            confinement=how.confinement,
            silence_s=how.silence_s,
        )
        self._state = "loading"
        try:
            await asyncio.wait_for(process.start(), how.load_s)
        except TimeoutError:
            self._state = "failed"
            raise engine_failed(
                f"the engine {self.name} was not loaded within {how.load_s:.0f} s"
            ) from None
        except errors.PolymuxError:
            self._state = "failed"
            if not process.was_wanted:
                self._crashes.append(self._now())
            raise
        except BaseException:
            self._state = "idle"
            raise
        self._state = "ready"
        self._process = process
        self._keep(self._mourn(process))
        return process

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _mourn(self, process: EngineProcess) -> None:
        """Notes how a process went."""
        await process.gone.wait()
        if self._process is process:
            self._process = None
            self._state = "idle"
        if not process.was_wanted and process.crash is not None:
            self._crashes.append(self._now())
            _log.error("the engine %s %s", self.name, process.crash.words)

    async def run(self, work: Work, sink: Sink) -> Product:
        """Does it in the process."""
        async with aclosing(self._frames(work, sink)) as frames:
            async for one in frames:
                if isinstance(one, Product):
                    return one
        raise AssertionError("frames end with a product or an error")

    async def stream(self, work: Work, sink: Sink) -> AsyncIterator[dict[str, Any]]:
        """Does it in the process, and gives the pieces as they come."""
        async with aclosing(self._frames(work, sink)) as frames:
            async for one in frames:
                if not isinstance(one, Product):
                    yield one

    async def _frames(self, work: Work, sink: Sink) -> AsyncGenerator[dict[str, Any] | Product]:
        """Pieces, then the product. Where the process goes before the first, it is tried again."""
        begun = False
        for last in (False, True):
            process = await self._ready()
            drafts: list[Draft] = []
            number, frames = await process.begin(_header(work))
            ended = False
            try:
                while not ended:
                    frame = await frames.get()
                    if isinstance(frame, CrashError):
                        ended = True
                        if begun or last:
                            raise engine_failed(f"the engine {self.name} ended at this")
                        break
                    ended = frame.kind in ("done", "failed", "cancelled")
                    found = await self._handled(process, frame, sink, drafts)
                    if isinstance(found, Product):
                        drafts.clear()  # Before it is given: nobody may come back for more.
                    if found is not None:
                        begun = True
                        yield found
                    if isinstance(found, Product):
                        return
            finally:
                try:
                    if ended:
                        process.forget(number)
                        self._rest()
                    else:
                        await self._abandon(process, number, frames)
                finally:
                    # Not before: until it has stopped it may make them anew.
                    for draft in drafts:
                        draft.discard(beside=process.crash is not None)

    async def _handled(
        self, process: EngineProcess, frame: Frame, sink: Sink, drafts: list[Draft]
    ) -> dict[str, Any] | Product | None:
        """What a frame says; a process that talks nonsense is ended."""
        try:
            return await self._handle(process, frame, sink, drafts)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.error("the engine %s sent nonsense: %.200r", self.name, error)
            process.kill()
            raise engine_failed(f"the engine {self.name} failed at this") from error

    async def _handle(
        self, process: EngineProcess, frame: Frame, sink: Sink, drafts: list[Draft]
    ) -> dict[str, Any] | Product | None:
        header = frame.header
        if frame.kind == "progress":
            sink.report(float(header["progress"]))
        elif frame.kind == "log":
            sink.log(str(header["line"]))
        elif frame.kind == "preview":
            sink.preview(frame.payload, str(header["content_type"]))
        elif frame.kind == "draft":
            await process.send({"kind": "draft", "id": header["id"], **_room(sink, header, drafts)})
        elif frame.kind == "chunk":
            if header.get("mark"):  # It goes on when this one is on its way, and not before.
                await process.send({"kind": "taken", "id": header["id"]})
            data: dict[str, Any] = header["data"]
            return data
        elif frame.kind == "done":
            value = _made(header["value"], {os.fspath(one.path): one for one in drafts})
            return Product(value, str(header["version"]), dict(header["metrics"]))
        elif frame.kind == "failed":
            raise restored(header["error"])
        elif frame.kind == "cancelled":
            raise engine_failed(f"the engine {self.name} gave this up")
        return None

    async def _abandon(
        self, process: EngineProcess, number: int, frames: asyncio.Queue[Frame | CrashError]
    ) -> None:
        """Stops work that nobody waits for; by the end of the process, where it does not stop.

        Others that work in the process are left alone: it is ended when they are through.
        """
        await process.send({"kind": "cancel", "id": number})

        async def ended() -> None:
            while True:
                frame = await frames.get()
                if isinstance(frame, CrashError) or frame.kind in ("done", "failed", "cancelled"):
                    return

        waiting = asyncio.ensure_future(ended())
        try:
            # Cancelled a second time, it is waited for all the same: the place is given on after.
            await _wait_for_all(waiting, self._supervision.grace_s)
            while not waiting.done() and process.busy > 1:
                await _wait_for_all(waiting, 0.05)
            if not waiting.done():
                _log.warning("the engine %s does not stop: its process is ended", self.name)
                process.discard()
                await _wait_for_all(asyncio.ensure_future(process.gone.wait()), None)
        finally:
            waiting.cancel()
            process.forget(number)
            self._rest()

    def _rest(self) -> None:
        """Where nothing is left to do, the process is ended after a while."""
        process = self._process
        if process is None or process.busy:
            return
        loop = asyncio.get_running_loop()
        self.rested_at = loop.time()
        if self._idle is None:
            self._idle = loop.call_later(self._supervision.idle_s, self._unload_idle)

    def _unload_idle(self) -> None:
        """One timer for all requests: it looks how long ago the last was when it is over."""
        loop = asyncio.get_running_loop()
        left_s = self.rested_at + self._supervision.idle_s - loop.time()
        self._idle = loop.call_later(left_s, self._unload_idle) if left_s > 0 else None
        if left_s > 0:
            return
        if self._process is not None and not self._process.busy:
            self._keep(self.unload())

    async def unload(self) -> bool:
        """Ends the process, unless it works; gives whether its memory is free now."""
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
        """Ends the process."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        process = self._process
        if process is not None:
            await process.stop()
        for task in list(self._closing):
            with suppress(asyncio.CancelledError):
                await task


async def _wait_for_all(waiting: asyncio.Future[Any], longest_s: float | None) -> None:
    """Waits whatever happens to whoever waits: the task is being cancelled already."""
    loop = asyncio.get_running_loop()
    until = None if longest_s is None else loop.time() + longest_s
    while not waiting.done():
        left = None if until is None else until - loop.time()
        if left is not None and left <= 0:
            return
        with suppress(asyncio.CancelledError):
            await asyncio.wait({waiting}, timeout=left)


def _header(work: Work) -> dict[str, Any]:
    values: dict[str, Any] = {}
    files: dict[str, Any] = {}
    for name, value in work.values.items():
        if isinstance(value, Upload):
            rest = [value.file_name, value.content_type, value.size_bytes]
            files[name] = [os.fspath(value.path), *rest]
        else:
            values[name] = value
    return {
        "operation": work.operation,
        "variant": work.variant,
        "model": work.model,
        "values": values,
        # Apart: what a caller gives as an object must never pass for a file.
        "files": files,
        "given": sorted(work.given),
    }


def _room(sink: Sink, header: Mapping[str, Any], drafts: list[Draft]) -> dict[str, Any]:
    try:
        draft = sink.draft(max(0, int(header["bytes"])))
    except errors.PolymuxError as error:
        return {"error": described(error)}
    drafts.append(draft)
    return {"path": os.fspath(draft.path)}


def _made(value: Any, drafts: Mapping[str, Draft]) -> Any:
    """The output with drafts in the place of the paths that the process names."""
    if isinstance(value, list):
        return [_made(one, drafts) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("polymux") == "made":
        # Only what it was given: another path could be anybody's file.
        draft = drafts.get(os.fspath(Path(value["path"])))
        if draft is None:
            raise engine_failed("an engine names a file that is not its own")
        return Made(draft, *value["rest"])
    return {name: _made(one, drafts) for name, one in value.items()}
