"""Upstreams with an OpenAI-compatible API: OpenAI, Groq, vLLM, llama.cpp, Ollama and others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.client.options import SLOW
from polymux.service.errors import bad_request
from polymux.service.model import OperationResult
from polymux.upstreams.backend import UpstreamBackend
from polymux.upstreams.files import refuse_files
from polymux.upstreams.model_names import CHATS, OPENAI_OPERATIONS, ModelNames
from polymux.upstreams.openai.chat import chat_body, completion, passed_on, text_of
from polymux.upstreams.openai.images import image_request, images, refuse_image
from polymux.upstreams.openai.models import ModelListing
from polymux.upstreams.openai.transcriptions import (
    TIMED,
    refuse_transcription,
    seconds_of,
    transcript,
    transcription_request,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from polymux.client.chat_stream import AsyncChatStream
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.chunks import Chunk
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.upstreams.client import UpstreamServer

_COMPLETIONS = "/chat/completions"
#: Maximum number of chats whose images are downloaded at the same time.
_FETCHING_AT_ONCE = 4


class OpenAIUpstream(UpstreamBackend):
    """Runs chats, transcriptions and image generation on an OpenAI-compatible server.

    Forwards chat requests unchanged, including unknown fields, and returns stream chunks unchanged.

    Args:
        server: The server.
        operations: Operations to run there: ``"chat"``, ``"free_chat"``, ``"transcribe"`` and
            ``"generate_image"``. Default: chat and free_chat.
        models: Our model name to the upstream's; see `polymux.upstreams.model_names.ModelNames`.
        max_concurrency: Maximum number of concurrent requests. Default: 16.
        max_tokens: Send ``max_tokens`` instead of ``max_completion_tokens``. Default: False.
        response_format: Send ``response_format`` for images. Default: True.
        transcript_format: ``"verbose_json"``, or ``"json"``, which has no times. Default:
            ``"verbose_json"``.
        image_fields: Image generation fields that the server accepts besides OpenAI's, such as
            ``("seed", "negative_prompt")``. Default: none.
        policy: Allowed hosts for downloads, beyond the public Internet and the server's own host.
            Default: none.

    Raises:
        InvalidRequestError: An operation is not supported or has no model.

    Example:
        >>> from polymux.upstreams.openai.backend import OpenAIUpstream
        >>> from polymux.upstreams.client import UpstreamServer
        >>> groq = UpstreamServer("groq", "https://api.groq.example/openai/v1", "gsk-secret")
        >>> OpenAIUpstream(groq, models={"fast": "llama-3.1-8b-instant"}).models
        ('fast',)
    """

    kind = "openai"

    def __init__(
        self,
        server: UpstreamServer,
        operations: Sequence[str] = CHATS,
        models: Mapping[str, str] | None = None,
        *,
        max_concurrency: int = 16,
        max_tokens: bool = False,
        response_format: bool = True,
        transcript_format: str = TIMED,
        image_fields: Sequence[str] = (),
        policy: FetchPolicy | None = None,
    ) -> None:
        super().__init__(server, operations, max_concurrency, policy)
        self._names = ModelNames(models or {})
        self.models = self._names.of_chats
        self._listing = ModelListing(server)
        self._max_tokens = max_tokens
        self._response_format = response_format
        self._transcript_format = transcript_format
        self._image_fields = tuple(image_fields)
        self._fetching = asyncio.Semaphore(_FETCHING_AT_ONCE)
        unable = sorted(self.operations - set(OPENAI_OPERATIONS))
        lacking = self._names.lacking(self.operations)
        if unable or lacking:
            what = (
                f"does not support {unable[0]} (supported: {', '.join(OPENAI_OPERATIONS)})"
                if unable
                else f"has no model for {lacking[0]}. Add one to its `models`"
            )
            raise errors.InvalidRequestError(f"the upstream {self.name} {what}")

    def refuse(self, work: OperationRequest) -> None:
        """Reject requests without a configured model or with fields that OpenAI does not have.

        Raises:
            BadRequestError: The request selects no model, and the upstream has no default.
            NoBackendError: No model is configured, or a field is not supported.
        """
        if self._names.of(work) is None:
            if work.operation == "chat":
                message = f"model: missing, because the upstream {self.name} has no default model"
                raise bad_request(message, "model")
            raise self._without_model(work.model or work.values.get("model"))
        if work.operation == "transcribe":
            refuse_transcription(self.name, work, form=self._transcript_format)
        elif work.operation == "generate_image":
            refuse_image(self.name, work)

    async def listed_models(self) -> tuple[str, ...]:
        """List the upstream's models, unless the settings name models."""
        if self.models is not None or "chat" not in self.operations:
            return ()
        return await self._listing.names()

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Run the whole request."""
        if work.operation == "transcribe":
            return await self._transcribe(work, sink)
        if work.operation == "generate_image":
            return await self._generate_image(work, sink)
        return await self._chat(work)

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[Chunk]:  # noqa: ARG002
        """Forward the chunks of a chat."""

        async def opened() -> AsyncChatStream:
            body = await self._chat_body(work)
            return await self._server.stream_chat(work.operation, _COMPLETIONS, body)

        free = work.operation == "free_chat"
        return passed_on(self._server, work, opened, as_texts=free)

    async def _chat(self, work: OperationRequest) -> OperationResult:
        body = await self._chat_body(work)
        began = asyncio.get_running_loop().time()
        value = await self._server.ask_json(work.operation, "POST", _COMPLETIONS, body)
        took_s = asyncio.get_running_loop().time() - began
        whole = completion(self.name, value, took_s, work.operation)
        if work.operation == "chat":
            return OperationResult(whole)  # It names the upstream's model itself.
        model = str(whole.get("model") or self._model_of(work))
        return OperationResult({"response": text_of(self.name, whole)}, engine_model=model)

    async def _chat_body(self, work: OperationRequest) -> dict[str, Any]:
        model = self._model_of(work)
        return await chat_body(
            work, model, self._policy, max_tokens=self._max_tokens, fetching=self._fetching
        )

    async def _transcribe(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        await refuse_files(work)
        path, form = transcription_request(
            work, self._model_of(work), sink, form=self._transcript_format
        )
        answer = await self._server.ask(
            work.operation, "POST", path, form, content_type=form.content_type, usual=SLOW
        )
        value = self._server.parsed(answer)
        output = transcript(self.name, value, work, sink)
        model = self._model_of(work)
        return OperationResult(output, metrics=seconds_of(value), engine_model=model)

    async def _generate_image(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        body = image_request(
            work,
            self._model_of(work),
            sink,
            fields=self._image_fields,
            response_format=self._response_format,
        )
        value = await self._server.ask_json(
            work.operation, "POST", "/images/generations", body, usual=SLOW
        )
        made = await images(self._server, value, work, sink, self._policy)
        return OperationResult(made, engine_model=self._model_of(work))

    def _model_of(self, work: OperationRequest) -> str:
        """Return the upstream's model name; `refuse` has rejected requests without one."""
        return self._names.of(work) or ""
