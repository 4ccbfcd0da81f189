"""Servers with /v1 for tests of the openai package: with real models and with scripted backends."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux.runtime.settings import EngineSettings
from polymux.service.model import OperationResult
from servers import media

from support.chat_model import model_path
from support.lazy_imports import openai
from support.polymux_server import PolymuxServer
from support.services import Scripted
from support.weights import whisper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.service.model import OperationRequest, ProgressSink

    from support.polymux_server import Asked

#: Data that is not text. Nothing decodes it.
PICTURE = media.png(8, 8)


@contextmanager
def real_chat(folder: Path, *, context: int = 1024) -> Iterator[PolymuxServer]:
    """A server with SmolLM2, named ``smollm2``."""
    options = {"model": str(model_path()), "context": context, "aliases": ["smollm2"]}
    engines = {"chat": EngineSettings("chat", options, max_concurrency=2, threads=1)}
    with PolymuxServer(folder / "s", engines=engines) as running:
        yield running


@contextmanager
def real_speech(folder: Path) -> Iterator[PolymuxServer]:
    """A server with Whisper base."""
    options = {"model": str(whisper(folder)), "compute": "int8", "beam": 2}
    engines = {
        "media": EngineSettings("media", threads=1),
        "speech": EngineSettings("speech", options, threads=1),
    }
    with PolymuxServer(folder / "s", engines=engines) as running:
        yield running


def of(server: Asked, **options: Any) -> openai.OpenAI:
    """The openai client of a server, without retries."""
    given = {"api_key": server.key, "max_retries": 0, "timeout": 60} | options
    return openai.OpenAI(base_url=f"{server.url}/v1", **given)


def of_asyncio(server: Asked, **options: Any) -> openai.AsyncOpenAI:
    given = {"api_key": server.key, "max_retries": 0, "timeout": 60} | options
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", **given)


class ScriptedModels(Scripted):
    """Returns the scripted `message` for chats, `output` for speech, and images."""

    def __init__(self, name: str = "scripted", *operations: str, **more: Any) -> None:
        super().__init__(name, operations or ("chat", "transcribe", "generate_image"), **more)
        self.output: Any = {"text": "Hello there.", "chunks": []}
        self.metrics: dict[str, float] = {}
        self.message: dict[str, Any] = {"role": "assistant", "content": "read"}

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        await super().run(work, sink)
        if work.operation == "transcribe":
            return OperationResult(self.output, "v1", dict(self.metrics))
        if work.operation != "generate_image":
            return OperationResult(self._completion(work))
        made = [
            self.file(sink, PICTURE + str(number).encode(), name=f"{number}.png")
            for number in range(work.values["num_outputs"])
        ]
        return OperationResult(made, "v1")

    def _completion(self, work: OperationRequest) -> dict[str, Any]:
        reason = "tool_calls" if "tool_calls" in self.message else "stop"
        choice = {"index": 0, "message": self.message, "finish_reason": reason, "logprobs": None}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": work.values["model"],
            "choices": [choice],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
