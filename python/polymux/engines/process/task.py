"""One piece of work in an engine's process, from when it is sent until nothing of it goes on."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.process.process import CrashError
from polymux.service.errors import described, engine_failed, restored
from polymux.service.model import OperationResult, OutputFile, Upload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polymux.engines.process.framing import Frame
    from polymux.engines.process.process import EngineProcess
    from polymux.engines.process.supervisor import Supervision
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.service.temporary_files import TempFile


def encode_request(work: OperationRequest) -> dict[str, Any]:
    """Work as a frame's header; files by their paths."""
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


def decode_result(value: Any, drafts: Mapping[str, TempFile]) -> Any:
    """The output with drafts in the place of the paths that the process names.

    Raises:
        InternalServerError: It names a file that it was not given.
    """
    if isinstance(value, list):
        return [decode_result(one, drafts) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("polymux") == "made":
        # Only what it was given: another path could be anybody's file.
        draft = drafts.get(os.fspath(Path(value["path"])))
        if draft is None:
            raise engine_failed("an engine names a file that is not its own")
        return OutputFile(draft, *value["rest"])
    return {name: decode_result(one, drafts) for name, one in value.items()}


#: Slower than anything is read and decoded that can be.
_READ_BYTES_PER_S = 1e6


def _written_bytes(drafts: Sequence[TempFile]) -> int:
    """What is in drafts so far, and beside them in what becomes them."""
    found = 0
    for draft in drafts:
        paths = [draft.path]
        with suppress(OSError):  # Its folder cannot be looked into, for now or for ever.
            paths += draft.path.parent.glob(f".{draft.path.name[:32]}*")
        for path in paths:
            with suppress(OSError):
                found += path.stat().st_size
    return found


_log = logging.getLogger("polymux.engines")
#: The frames after which no more comes of a piece of work.
LAST_KINDS = ("done", "failed", "cancelled")


class EngineTask:
    """One piece of work in one process. Belongs to the event loop of that.

    Args:
        process: Which has loaded.
    """

    def __init__(
        self, engine: str, supervision: Supervision, process: EngineProcess, sink: ProgressSink
    ) -> None:
        self._engine = engine
        self._supervision = supervision
        self._process = process
        self._sink = sink
        self._drafts: list[TempFile] = []
        #: Of the work, in its process; 0 before it is sent.
        self.number = 0

    async def begin(self, work: OperationRequest) -> None:
        self._work = work
        self.number, self._frames = await self._process.begin(encode_request(work))

    async def next(self) -> Frame | CrashError:
        """The next frame; work that never comes to its end is ended with its process.

        That is work which neither tells nor writes anything for too long, once it is its turn. Each
        megabyte that it was given is a second more: what reads a file to its end tells nothing
        before. It is not tried once more, and was no crash: whoever sends such a file shall not
        have the engine left alone for others.
        """
        stalled_s = self._supervision.stalled_s
        if stalled_s is None or not self._frames.empty():
            return await self._frames.get()
        sizes = [one.size_bytes for one in self._work.values.values() if isinstance(one, Upload)]
        max_s = stalled_s + sum(sizes) / _READ_BYTES_PER_S
        before = None
        while True:
            begun = self._process.has_begun(self.number)
            written = _written_bytes(self._drafts) if begun else None
            if written is not None and written == before:
                break
            before = written
            with suppress(TimeoutError):
                async with asyncio.timeout(max_s):
                    return await self._frames.get()
        name = self._engine
        _log.error("the engine %s: nothing for %.0f s; its process is ended", name, max_s)
        self._process.discard()
        raise engine_failed(f"the engine {name} came to no end with this")

    async def handled(self, frame: Frame) -> dict[str, Any] | OperationResult | None:
        """What a frame says; a process that talks nonsense is ended.

        The files of a product belong to whoever gets it, and nobody may come back for more.
        """
        try:
            found = await self._handle(frame)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.error("the engine %s sent nonsense: %.200r", self._engine, error)
            self._process.kill()
            raise engine_failed(f"the engine {self._engine} failed at this") from error
        if isinstance(found, OperationResult):
            self._drafts.clear()
        return found

    async def _handle(self, frame: Frame) -> dict[str, Any] | OperationResult | None:
        header, sink, drafts = frame.header, self._sink, self._drafts
        if frame.kind == "progress":
            sink.report(float(header["progress"]))
        elif frame.kind == "log":
            sink.log(str(header["line"]))
        elif frame.kind == "preview":
            sink.preview(frame.payload, str(header["content_type"]))
        elif frame.kind == "draft":
            answer: dict[str, Any] = {"kind": "draft", "id": header["id"]}
            try:
                drafts.append(sink.draft(max(0, int(header["bytes"]))))
                answer["path"] = os.fspath(drafts[-1].path)
            except errors.PolymuxError as error:
                answer["error"] = described(error)
            await self._process.send(answer)
        elif frame.kind == "chunk":
            if header.get("mark"):  # It goes on when this one is on its way, and not before.
                await self._process.send({"kind": "taken", "id": header["id"]})
            data: dict[str, Any] = header["data"]
            return data
        elif frame.kind == "done":
            value = decode_result(header["value"], {os.fspath(one.path): one for one in drafts})
            return OperationResult(value, str(header["version"]), dict(header["metrics"]))
        elif frame.kind == "failed":
            raise restored(header["error"])
        elif frame.kind == "cancelled":
            raise engine_failed(f"the engine {self._engine} gave this up")
        return None

    async def close(self, *, ended: bool) -> None:
        """Nobody waits for it any more: what has not ended is stopped, what it made is removed."""
        try:
            if self.number == 0:
                return  # Nothing of it was sent, or the process was told to leave it.
            if ended:
                self._process.forget(self.number)
            else:
                await self._abandon()
        finally:
            # Not before: until it has stopped it may make them anew.
            for draft in self._drafts:
                draft.discard(beside=self._process.crash is not None)

    async def _abandon(self) -> None:
        """Stops work that nobody waits for; by the end of the process, where it does not stop.

        Others that work in the process are left alone: it is ended when they are through, or when
        it has told nothing to anybody for too long.
        """
        process = self._process
        process.leave(self.number)
        await process.send({"kind": "cancel", "id": self.number})
        waiting = asyncio.ensure_future(self._ended())
        since = asyncio.get_running_loop().time()
        try:
            # Cancelled a second time, it is waited for all the same: the place is given on after.
            await wait_for_all(waiting, self._supervision.cancel_timeout_s)
            while not waiting.done() and self._is_of_use(since):
                await wait_for_all(waiting, 0.05)
            if not waiting.done():
                _log.warning("the engine %s does not stop: its process is ended", self._engine)
                process.discard()
                await wait_for_all(asyncio.ensure_future(process.gone.wait()), None)
        finally:
            waiting.cancel()
            process.forget(self.number)

    async def _ended(self) -> None:
        while True:
            frame = await self._frames.get()
            if isinstance(frame, CrashError) or frame.kind in LAST_KINDS:
                return

    def _is_of_use(self, since: float) -> bool:
        """Whether others are served by a process in which something does not stop."""
        now = asyncio.get_running_loop().time()
        mute_s = now - max(since, self._process.told_at)
        return self._process.wanted > 0 and mute_s < self._supervision.silence_s


async def wait_for_all(waiting: asyncio.Future[Any], max_s: float | None) -> None:
    """Waits whatever happens to whoever waits: the task is being cancelled already."""
    loop = asyncio.get_running_loop()
    until = None if max_s is None else loop.time() + max_s
    while not waiting.done():
        left = None if until is None else until - loop.time()
        if left is not None and left <= 0:
            return
        with suppress(asyncio.CancelledError):
            await asyncio.wait({waiting}, timeout=left)
