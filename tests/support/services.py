"""A service with a backend whose every step the test controls."""

from __future__ import annotations

import asyncio
import functools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux.service.backend import Backend
from polymux.service.model import Caller, Estimate, OperationRequest, OperationResult, OutputFile
from polymux.service.service import Service
from polymux.service.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from polymux.service.admission import Bounds
    from polymux.service.model import ProgressSink
    from polymux.service.routes import Route

ALICE = Caller("alice", "Alice")
BOB = Caller("bob", "Bob")


class Scripted(Backend):
    """Follows its script: waits for `gate`, writes `data`, sends `chunks`, or fails."""

    def __init__(
        self,
        name: str = "scripted",
        operations: Sequence[str] = ("convert_to_mp3", "read_text", "chat", "free_chat"),
        max_concurrency: int = 1,
    ) -> None:
        self.name = name
        self.operations = frozenset(operations)
        self.max_concurrency = max_concurrency
        self.gate = asyncio.Event()
        self.gate.set()
        self.data = b"ID3 and frames"
        self.chunks: list[dict[str, Any]] = []
        self.failure: Exception | None = None
        self.expected = Estimate()
        self.began: list[OperationRequest] = []
        self.ended: list[str] = []

    def refuse(self, work: OperationRequest) -> None:
        if work.values.get("file_name") == "refuse":
            raise AssertionError

    async def estimate(self, work: OperationRequest) -> Estimate:
        return self.expected

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        self.began.append(work)
        try:
            sink.log("begun")
            sink.report(0.5)
            await self.gate.wait()
            if self.failure is not None:
                raise self.failure
            if work.operation != "convert_to_mp3":
                return OperationResult({"text": "read"})
            made = self.file(sink, self.data, "audio/mpeg", "a.mp3")
            return OperationResult({"response": made}, "v1", {"frames": 3})
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise

    def file(
        self, sink: ProgressSink, data: bytes, kind: str = "image/png", name: str = "0.png"
    ) -> OutputFile:
        draft = sink.draft(len(data))
        draft.path.write_bytes(data)
        return OutputFile(draft, kind, name)

    async def stream(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AsyncIterator[dict[str, Any]]:
        self.began.append(work)
        try:
            for chunk in self.chunks:
                yield chunk
            if self.failure is not None:
                raise self.failure
            await self.gate.wait()
        finally:
            self.ended.append("closed")


def work_of(
    operation: str = "convert_to_mp3",
    caller: Caller = ALICE,
    fields: Sequence[tuple[str, Any]] = (("url", "http://files.example/a.wav"),),
) -> OperationRequest:
    return OperationRequest.of(contract.read_form(operation, fields), caller)


def chat_of(caller: Caller = ALICE, operation: str = "chat", **values: Any) -> OperationRequest:
    import json

    given = {"model": "default", "messages": [{"role": "user", "content": "Hi"}], **values}
    if operation == "free_chat":
        given.pop("model")
    return OperationRequest.of(contract.read_json(operation, json.dumps(given).encode()), caller)


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a coroutine as a test, with a limit of one minute."""

    @functools.wraps(test)
    def run(*args: Any, **options: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **options), 60))

    return run


@asynccontextmanager
async def running(
    folder: Path,
    *backends: Backend,
    routes: Mapping[str, Sequence[Route]] | None = None,
    queue: int = 32,
    clock: Callable[[], float] | None = None,
    max_bytes: int = 1 << 20,
    life_s: float = 3600.0,
    bounds: Bounds | None = None,
) -> AsyncIterator[Service]:
    store = Store(folder, max_bytes=max_bytes, life_s=life_s, clock=clock)
    service = Service(backends, store, routes=routes, queue=queue, bounds=bounds)
    await service.start()
    try:
        yield service
    finally:
        await service.close()
