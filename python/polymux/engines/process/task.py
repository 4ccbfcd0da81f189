"""One request in an engine's process, from sending it until everything has stopped."""

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
    """Encode a request as a frame header, with files as paths."""
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
        # Files are separate: an object from a client must never be read as a file.
        "files": files,
        "given": sorted(work.given),
    }


#: Deeper than any output of an engine.
_MAX_DEPTH = 100


def decode_result(value: Any, drafts: Mapping[str, TempFile], depth: int = 0) -> Any:
    """Replace the paths in a process's output with their output files.

    Raises:
        InternalServerError: It names a file that was not created for it.
        ValueError: It is nested too deeply.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("output nested too deeply")
    if isinstance(value, list):
        return [decode_result(one, drafts, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("polymux") == "made":
        # Only files created for this request: another path could name any file.
        draft = drafts.get(os.fspath(Path(value["path"])))
        if draft is None:
            raise engine_failed("the engine returned an unknown file")
        return OutputFile(draft, *value["rest"])
    return {name: decode_result(one, drafts, depth + 1) for name, one in value.items()}


#: A speed below that of reading and decoding any file.
_READ_BYTES_PER_S = 1e6


def _written_bytes(drafts: Sequence[TempFile]) -> int:
    """Return the bytes in output files, and in temporary files from which they are created."""
    found = 0
    for draft in drafts:
        paths = [draft.path]
        with suppress(OSError):  # The directory may be unreadable.
            paths += draft.path.parent.glob(f".{draft.path.name[:32]}*")
        for path in paths:
            with suppress(OSError):
                found += path.stat().st_size
    return found


_log = logging.getLogger("polymux.engines")
#: The kinds of the last frame of a request.
LAST_KINDS = ("done", "failed", "cancelled")


class EngineTask:
    """One request in one process. It belongs to the process's event loop.

    Args:
        engine: Name of the engine.
        supervision: Time limits.
        process: A loaded process.
        sink: Receives progress.
    """

    def __init__(
        self, engine: str, supervision: Supervision, process: EngineProcess, sink: ProgressSink
    ) -> None:
        self._engine = engine
        self._supervision = supervision
        self._process = process
        self._sink = sink
        self._drafts: list[TempFile] = []
        self._has_opened = False
        #: Number of the request in its process; 0 before it is sent.
        self.number = 0

    async def begin(self, work: OperationRequest) -> None:
        self._work = work
        self.number, self._frames = await self._process.begin(encode_request(work))

    async def next(self) -> Frame | CrashError:
        """Return the next frame. If the request has stalled, kill its process.

        A running request has stalled if it sends and writes nothing for too long. Each megabyte of
        input adds a second, because reading a file to its end reports no progress. A stalled
        request is not retried and does not count as a crash: one client's file must not disable the
        engine.
        """
        stalled_s = self._supervision.stalled_s
        if not self._has_opened and self._supervision.opening_s is not None:
            stalled_s = self._supervision.opening_s
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
        _log.error("engine %s: no progress for %.0f s, so its process is killed", name, max_s)
        self._process.discard()
        raise engine_failed(f"engine {name} timed out: no progress for {max_s:.0f} s")

    async def handled(self, frame: Frame) -> dict[str, Any] | OperationResult | None:
        """Handle a frame; a process that sends invalid data is killed.

        The caller owns the files of a returned result.
        """
        try:
            found = await self._handle(frame)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.error("engine %s sent an invalid message: %.200r", self._engine, error)
            self._process.kill()
            raise engine_failed(f"engine {self._engine} sent an invalid message") from error
        if isinstance(found, OperationResult):
            self._drafts.clear()
        return found

    async def _handle(self, frame: Frame) -> dict[str, Any] | OperationResult | None:
        header, sink, drafts = frame.header, self._sink, self._drafts
        if frame.kind == "progress":
            self._has_opened = True
            sink.report(float(header["progress"]))
        elif frame.kind == "log":
            add = sink.warn if header.get("warning") else sink.log
            add(str(header["line"]))
        elif frame.kind == "preview":
            sink.preview(frame.payload, str(header["content_type"]))
        elif frame.kind == "draft":
            answer: dict[str, Any] = {"kind": "draft", "id": header["id"]}
            try:
                size_bytes = int(header["bytes"])
                if size_bytes < 0:
                    raise ValueError(f"bytes={size_bytes}")
                drafts.append(sink.draft(size_bytes))
                answer["path"] = os.fspath(drafts[-1].path)
            except errors.PolymuxError as error:
                answer["error"] = described(error)
            await self._process.send(answer)
        elif frame.kind == "chunk":
            if header.get("mark"):  # Flow control: lets the process continue.
                await self._process.send({"kind": "taken", "id": header["id"]})
            data: dict[str, Any] = header["data"]
            return data
        elif frame.kind == "done":
            value = decode_result(header["value"], {os.fspath(one.path): one for one in drafts})
            version, metrics = str(header["version"]), dict(header["metrics"])
            model = header.get("model") or self._process.facts.get("model", "")
            return OperationResult(value, version, metrics, str(model))
        elif frame.kind == "failed":
            if not 400 <= header["error"]["status"] < 600:
                raise ValueError(f"status {header['error']['status']}")
            raise restored(header["error"])
        elif frame.kind == "cancelled":
            raise engine_failed(f"engine {self._engine} canceled this request")
        return None

    async def close(self, *, ended: bool) -> None:
        """Stop the request if it has not ended, and delete its output files."""
        try:
            if self.number == 0:
                return  # It was not sent, or was already canceled.
            if ended:
                self._process.forget(self.number)
            else:
                await self._abandon()
        finally:
            # Not before: a running request could create them again.
            for draft in self._drafts:
                draft.discard(beside=self._process.crash is not None)

    async def _abandon(self) -> None:
        """Cancel the request, and kill the process if it does not stop.

        If the process runs other requests, it is killed only after they have ended, or if it has
        sent no messages about any of them for too long.
        """
        process = self._process
        process.leave(self.number)
        await process.send({"kind": "cancel", "id": self.number})
        waiting = asyncio.ensure_future(self._ended())
        since = asyncio.get_running_loop().time()
        try:
            # Wait even after another cancellation, because the slot is reused afterwards.
            await wait_for_all(waiting, self._supervision.cancel_timeout_s)
            while not waiting.done() and self._is_of_use(since):
                await wait_for_all(waiting, 0.05)
            if not waiting.done():
                _log.warning(
                    "killing the process of engine %s: a canceled request did not stop",
                    self._engine,
                )
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
        """Whether the process still works on other requests."""
        now = asyncio.get_running_loop().time()
        mute_s = now - max(since, self._process.last_reply_at)
        return self._process.wanted > 0 and mute_s < self._supervision.silence_s


async def wait_for_all(waiting: asyncio.Future[Any], max_s: float | None) -> None:
    """Wait without being interrupted by cancellation of the calling task."""
    loop = asyncio.get_running_loop()
    until = None if max_s is None else loop.time() + max_s
    while not waiting.done():
        left = None if until is None else until - loop.time()
        if left is not None and left <= 0:
            return
        with suppress(asyncio.CancelledError):
            await asyncio.wait({waiting}, timeout=left)
