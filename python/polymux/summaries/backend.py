"""Video summaries: download captions or transcribe speech, then summarize with a chat model."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux.service.backend import Backend
from polymux.service.errors import status_error
from polymux.service.model import OperationRequest, OperationResult
from polymux.summaries.captions import MAX_BYTES, SpokenText, has_words, read_captions
from polymux.summaries.prompts import Chapter, Writer, spoken

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from polymux.downloads.downloader import Downloaded, PageDownloader
    from polymux.service.backend import ServiceAccess
    from polymux.service.model import ProgressSink
    from polymux.summaries.prompts import Part
    from polymux.summaries.settings import SummaryOptions

_FETCHING, _LISTENING, _READING = 0.3, 0.6, 0.95
_KEPT = 128
#: `finish_reason` values of an answer that the model did not finish itself.
_CUT = ("length", "content_filter")


class SummaryBackend(Backend):
    """Runs ``summarize_video`` (`contracts.md` 12).

    Its chat and transcription calls go through the service and wait in the queues like all
    requests.
    """

    def __init__(self, pages: PageDownloader, options: SummaryOptions) -> None:
        self.name = "summaries"
        self.operations = frozenset(("summarize_video",))
        self.max_concurrency = pages.settings.max_concurrency
        self._pages = pages
        self._options = options
        #: Summaries and their models by hash of transcript and options, least recently added first.
        self._known: OrderedDict[bytes, tuple[str, str]] = OrderedDict()

    def bind(self, service: ServiceAccess) -> None:
        self._service = service

    def refuse(self, work: OperationRequest) -> None:
        """Reject the request if no chat model is available.

        Raises:
            NoBackendError: No chat model is configured, or not the one that the settings name.
        """
        if not self._service.routes.chat_models():
            raise status_error(
                errors.NoBackendError,
                "summarize_video: no chat model is available. Download one with `polymux models "
                "pull NAME` (`polymux models list --family chat` shows the names)",
            )
        try:
            self._service.backends_of(self._question(work))
        except (errors.BadRequestError, errors.NoBackendError) as reason:
            # The client did not choose this model, so this is not a bad request.
            raise status_error(
                errors.NoBackendError,
                "summarize_video: the chat model of the setting summaries.model is not available: "
                f"{reason}",
            ) from None

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Summarize the video.

        Raises:
            InternalServerError: The summary timed out (504).
            RequestTooLargeError: The transcript is longer than `max_parts` allows.
            UnprocessableEntityError: The video contains no speech.
        """
        total_s = self._options.total_s
        try:
            async with asyncio.timeout(total_s) as limit:
                return await self._made(work, sink)
        except TimeoutError:
            if not limit.expired():
                raise
            raise status_error(
                errors.InternalServerError,
                f"the summary timed out (limit {total_s:g} s). The server's administrator can "
                "increase the setting summaries.total_s",
                code="upstream_timeout",
                status=504,
                param="url",
            ) from None

    async def _made(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        kind = "captions" if self._options.captions else "audio"
        url = str(work.values["url"])
        async with self._pages.downloaded(url, kind, sink.part(0, _FETCHING)) as found:
            speech = await self._speech(found, work, sink)
        if not any(has_words(one.text) for one in speech):
            raise status_error(
                errors.UnprocessableEntityError,
                "the video contains no speech",
                code="no_speech",
                param="url",
            )
        sink.report(_LISTENING)
        chapters = [Chapter(start_s, title) for start_s, title in found.chapters]
        text = await self._summary(work, sink, found.title, speech, chapters)
        return OperationResult({"response": text}, engine_model=sink.engine_model)

    async def _speech(
        self, found: Downloaded, work: OperationRequest, sink: ProgressSink
    ) -> list[SpokenText]:
        """Read the captions, or transcribe the speech of a video without captions."""
        path = found.files[-1]
        if found.captions:
            sink.log(f"reading the video's captions ({found.captions})")
            return await asyncio.to_thread(_captions_of, path)
        sink.log("the video has no captions: transcribing its speech")
        upload = await asyncio.to_thread(found.upload, path)
        listening = sink.part(_FETCHING, _LISTENING)
        product = await self._asked("transcribe", {"audio": upload}, work, listening)
        chunks = product.output.get("chunks") or [{"text": product.output.get("text", "")}]
        return [SpokenText(_start_s(one), str(one.get("text", "")).strip()) for one in chunks]

    async def _summary(
        self,
        work: OperationRequest,
        sink: ProgressSink,
        title: str,
        speech: Sequence[SpokenText],
        chapters: Sequence[Chapter],
    ) -> str:
        writer = Writer(self._options, title, self._chat_model(work).window_tokens())
        parts, key = await asyncio.to_thread(self._cut, writer, title, speech, chapters)
        known = self._known.get(key)
        if known is not None:
            sink.log("using the cached summary of this video")
            text, sink.engine_model = known
            return text
        cut: list[str] = []
        text = await self._written(work, sink, writer, parts, cut)
        if cut:
            sink.warn("the chat model ran out of tokens, so the summary is incomplete")
            return text
        self._known[key] = text, sink.engine_model
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return text

    def _cut(
        self, writer: Writer, title: str, speech: Sequence[SpokenText], chapters: Sequence[Chapter]
    ) -> tuple[list[Part], bytes]:
        """Return the parts and their cache key. Takes seconds for long transcripts."""
        parts = writer.parts(speech, chapters)
        words = "\n".join(f"{part.title}\n{part.text}" for part in parts)
        key_data = f"{self._options}\n{title}\n{words}".encode("utf-8", "replace")
        return parts, hashlib.sha256(key_data).digest()

    def _chat_model(self, work: OperationRequest) -> Backend:
        return self._service.backends_of(self._question(work))[0]

    def _question(self, work: OperationRequest) -> OperationRequest:
        """Build an empty chat request, to find backends before a transcript exists."""
        values = {"model": self._options.model, "messages": []}
        return OperationRequest("chat", "", "", values, frozenset(values), work.caller)

    async def _written(
        self,
        work: OperationRequest,
        sink: ProgressSink,
        writer: Writer,
        parts: Sequence[Part],
        cut: list[str],
    ) -> str:
        """Write the summary; append each text that the model did not finish to `cut`."""
        if len(parts) == 1:
            return await self._chat(writer.whole(parts[0]), work, sink, cut)
        notes = []
        for number, part in enumerate(parts, 1):
            notes.append(await self._chat(writer.part(part, number, len(parts)), work, sink, cut))
            share = (_READING - _LISTENING) * number / len(parts)
            sink.log(f"read part {number} of {len(parts)}")
            sink.report(_LISTENING + share)
        while len(groups := writer.groups(notes)) > 1:
            notes = [
                one[0]
                if len(one) == 1
                else await self._chat(writer.notes(one, last=False), work, sink, cut)
                for one in groups
            ]
        return await self._chat(writer.notes(notes), work, sink, cut)

    async def _chat(
        self, values: dict[str, Any], work: OperationRequest, sink: ProgressSink, cut: list[str]
    ) -> str:
        product = await self._asked("chat", values, work, sink.part(0, 0))
        # Answers of upstreams name the model themselves.
        named = product.engine_model or product.output.get("engine_model")
        sink.engine_model = str(named or product.output.get("model") or "")
        choice = product.output["choices"][0]
        text = spoken(str(choice["message"].get("content") or ""))
        if not text:
            theirs = self._chat_model(work).is_upstream
            raise status_error(
                errors.InternalServerError,
                "summarize_video: the chat model returned no text. Set summaries.model to "
                "another model",
                code="upstream_failed" if theirs else "engine_failed",
                status=502 if theirs else 500,
            )
        if choice.get("finish_reason") in _CUT:
            cut.append(text)
        return text

    async def _asked(
        self, operation: str, values: dict[str, Any], work: OperationRequest, sink: ProgressSink
    ) -> OperationResult:
        shape = contract.operation(operation).variants[0]
        checked = contract.CheckedRequest(operation, shape.id, shape.model or "", values, ())
        asked = OperationRequest.of(checked, work.caller, work.request_id)
        return await self._service.call(asked, sink)


def _captions_of(path: Path) -> list[SpokenText]:
    with path.open("rb") as file:
        return read_captions(file.read(MAX_BYTES))


def _start_s(chunk: dict[str, Any]) -> float:
    timestamp = chunk.get("timestamp") or [0.0]
    return float(timestamp[0] or 0.0)
