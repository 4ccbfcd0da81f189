"""Engines in this process: for `polymux.Local`, which opens only the user's own files."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from polymux.engines.base import Cancelled, EngineSink, Produced, Request, Token
from polymux.engines.process.task import wait_for_all
from polymux.engines.registry import engine_of
from polymux.errors import InputError, PolymuxError
from polymux.service.backend import Backend
from polymux.service.errors import of_user
from polymux.service.model import OperationResult, OutputFile, Upload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from polymux.engines.base import Engine
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.service.temporary_files import TempFile


class InProcessBackend(Backend):
    """An engine that runs on threads of this process, one request per thread.

    Args:
        name: Name of the backend.
        family: Name of the engine in `polymux.engines.registry`.
        operations: Operations that the engine supports.
        options: Options for its `load`.
        max_concurrency: Maximum concurrent requests.
        threads: Number of library threads. Default: those of the process.
    """

    def __init__(
        self,
        name: str,
        family: str,
        operations: Sequence[str],
        options: Mapping[str, Any] | None = None,
        *,
        max_concurrency: int = 1,
        threads: int = 0,
    ) -> None:
        self._threads = threads
        self.name = name
        self.operations = frozenset(operations)
        self.max_concurrency = max_concurrency
        self._family = family
        self._options = dict(options or {})
        self._engine: Engine | None = None
        self._loading = asyncio.Lock()

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Run a request on a thread. On cancellation, wait until the thread has stopped."""
        async with self._loading:
            if self._engine is None:
                engine = engine_of(self._family)
                engine.threads = self._threads
                await asyncio.to_thread(engine.load, self._options)
                self._engine = engine
        own = _Sink(asyncio.get_running_loop(), sink)
        token = Token()
        request = Request(work.operation, work.variant, work.model, work.values, work.given)
        doing = asyncio.ensure_future(
            asyncio.to_thread(self._work, self._engine, request, own, token)
        )
        try:
            output = await asyncio.shield(doing)
        except asyncio.CancelledError:
            token.cancel()
            await wait_for_all(doing, None)
            raise
        finally:
            if doing.cancelled() or doing.exception() is not None or token.cancelled:
                own.discard()
        made, metrics = own.made(output.value), dict(output.metrics)
        return OperationResult(made, output.version, metrics, output.model)

    @staticmethod
    def _work(engine: Engine, request: Request, sink: EngineSink, token: Token) -> Any:
        try:
            return engine.run(request, sink, token)
        except Cancelled:
            raise RuntimeError("canceled") from None
        except PolymuxError as error:
            _call_by_name(error, request)
            if isinstance(error, InputError):
                raise of_user(error) from None
            raise


def _call_by_name(error: PolymuxError, request: Request) -> None:
    """Show the name of an input instead of the path of its temporary copy."""
    for one in request.values.values():
        if isinstance(one, Upload) and one.file_name != one.path.name:
            place = os.fspath(one.path)
            error.message = error.message.replace(place, one.file_name)
            error.input_name = error.input_name.replace(place, one.file_name)


class _Sink(EngineSink):
    """Forwards progress to the service's event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sink: ProgressSink) -> None:
        self._loop = loop
        self._sink = sink
        self._drafts: dict[Path, TempFile] = {}

    def log(self, line: str) -> None:
        self._loop.call_soon_threadsafe(self._sink.log, line)

    def warn(self, line: str) -> None:
        self._loop.call_soon_threadsafe(self._sink.warn, line)

    def report(self, progress: float) -> None:
        self._loop.call_soon_threadsafe(self._sink.report, progress)

    def chunk(self, data: Mapping[str, Any]) -> None:
        raise NotImplementedError("streaming engines need a child process")

    def draft(self, expected_bytes: int = 0) -> Path:
        made = self._sink.draft(expected_bytes)
        self._drafts[made.path] = made
        return made.path

    def discard(self) -> None:
        for draft in self._drafts.values():
            draft.discard()

    def made(self, value: Any) -> Any:
        if isinstance(value, Produced):
            return OutputFile(self._drafts[value.path], value.content_type, value.file_name)
        if isinstance(value, (list, tuple)):
            return [self.made(one) for one in value]
        if isinstance(value, dict):
            return {name: self.made(one) for name, one in value.items()}
        return value
