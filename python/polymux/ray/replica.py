"""A replica of an engine. Ray Serve starts it, and it starts the engine's process."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
import tempfile
import weakref
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.errors import PolymuxError
from polymux.ray.messages import (
    PIECE_BYTES,
    Done,
    MadeFile,
    Piece,
    Refused,
    Sent,
    SinkCall,
)
from polymux.runtime.memory_budget import MemoryBudget, needed_bytes
from polymux.service.errors import described
from polymux.service.model import OutputFile, ProgressSink, Upload
from polymux.service.temporary_files import TempFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from polymux.ray.messages import Event, Plan
    from polymux.service.model import OperationRequest

_log = logging.getLogger("polymux.ray")


class EngineReplica:
    """An engine in a child process (see `EngineBackend`) that another machine calls.

    Args:
        plan: The engine.
    """

    def __init__(self, plan: Plan) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="polymux-replica-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        supervision = dict(plan.supervision)
        confinement = supervision.get("confinement")
        if confinement is not None and confinement["writable"]:
            # The temporary directory of the server's machine does not exist here.
            supervision["confinement"] = {**confinement, "writable": [str(self._folder)]}
        memory = MemoryBudget()
        self._backend = EngineBackend(
            plan.name,
            plan.family,
            plan.operations,
            plan.options,
            max_concurrency=plan.max_concurrency,
            supervision=Supervision(**supervision),
            before_load=memory.make_room,
            needed_bytes=needed_bytes(plan.family, plan.options),
        )
        memory.add(self._backend)

    async def work(self, asked: OperationRequest) -> AsyncIterator[Event]:
        """Run a request and yield its events. The last event is `Done` or `Refused`.

        Input files are `Sent`. If the client disconnects, Ray cancels this task, which cancels the
        operation in the engine's process.
        """
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        events: asyncio.Queue[Event | None] = asyncio.Queue(maxsize=0)
        doing = asyncio.ensure_future(self._done(asked, folder, events))
        doing.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            done, made = await doing
            for number, path in enumerate(made):
                async for piece in _pieces(number, path):
                    yield piece
            yield done
        except Exception as error:
            if not isinstance(error, PolymuxError):
                _log.exception(
                    "engine %s failed on request %s", self._backend.name, asked.request_id
                )
            yield Refused(described(error))
        finally:
            doing.cancel()
            while not doing.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({doing})
            with suppress(asyncio.CancelledError, Exception):
                doing.result()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _done(
        self, asked: OperationRequest, folder: Path, events: asyncio.Queue[Event | None]
    ) -> tuple[Done, list[Path]]:
        """Run the request; return its result and the output files."""
        values = {
            name: await _received(one, folder) if isinstance(one, Sent) else one
            for name, one in asked.values.items()
        }
        work = replace(asked, values=values)
        sink = _Sink(folder, events)
        if work.streamed:
            async for chunk in self._backend.stream(work, sink):
                events.put_nowait(chunk)
            return Done(None, "", {}, ""), []
        product = await self._backend.run(work, sink)
        made: list[Path] = []
        output = _listed(product.output, made)
        return Done(output, product.version, product.metrics, product.engine_model), made


class _Sink(ProgressSink):
    """Sends the progress of a request to the server's machine."""

    def __init__(self, folder: Path, events: asyncio.Queue[Event | None]) -> None:
        super().__init__(lambda: None, partial(_draft, folder))
        self._events = events

    def log(self, line: str) -> None:
        self._events.put_nowait(SinkCall("log", (line,)))

    def warn(self, line: str) -> None:
        self._events.put_nowait(SinkCall("warn", (line,)))

    def report(self, progress: float) -> None:
        self._events.put_nowait(SinkCall("report", (progress,)))

    def preview(self, data: bytes, content_type: str) -> None:
        self._events.put_nowait(SinkCall("preview", (data, content_type)))


class _Room:
    """Replaces the `Usage` of a store: the server's machine checks the available space."""

    def reserve(self, more_bytes: int) -> None:
        """Do nothing."""


def _draft(folder: Path, _expected_bytes: int) -> TempFile:
    return TempFile(_Room(), folder / secrets.token_hex(20))  # type: ignore[arg-type]


async def _received(sent: Sent, folder: Path) -> Upload:
    """Write an input file to this machine's disk."""
    path = folder / secrets.token_hex(20)
    with path.open("xb") as file:
        for piece in sent.pieces:
            data = piece if isinstance(piece, bytes) else await piece
            await asyncio.to_thread(file.write, data)
    return Upload(path, sent.file_name, sent.content_type, sent.size_bytes)


def _listed(value: Any, made: list[Path]) -> Any:
    """Replace files in an output with numbers, and append the files to `made`."""
    if isinstance(value, OutputFile):
        made.append(value.draft.path)
        return MadeFile(len(made) - 1, value.content_type, value.file_name)
    if isinstance(value, list):
        return [_listed(one, made) for one in value]
    if isinstance(value, dict):
        return {name: _listed(one, made) for name, one in value.items()}
    return value


async def _pieces(number: int, path: Path) -> AsyncIterator[Piece]:
    with path.open("rb") as file:
        first = True
        while (data := await asyncio.to_thread(file.read, PIECE_BYTES)) or first:
            first = False
            yield Piece(number, data)
