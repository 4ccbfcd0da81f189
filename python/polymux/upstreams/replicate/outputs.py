"""Convert outputs of Replicate predictions to answers of operations."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.redaction import redact_json
from polymux.client import responses
from polymux.service.model import discard_outputs
from polymux.upstreams.error_mapping import cleaned, failed
from polymux.upstreams.files import KINDS, decoded, fetched, judged, kept
from polymux.upstreams.openai.transcriptions import time_of

if TYPE_CHECKING:
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.model import OperationRequest, OutputFile, ProgressSink
    from polymux.upstreams.client import UpstreamServer

#: Operations whose output files have one kind, and the field with their number.
_KINDS = {
    "generate_image": ("image", "num_outputs"),
    "upscale_image": ("image", ""),
    "generate_video": ("video", "batch_size"),
}
_DATA = "data:"


class Outputs:
    """Converts outputs of predictions.

    Args:
        server: The upstream; its own host is allowed even in a private network.
    """

    def __init__(self, server: UpstreamServer, policy: FetchPolicy) -> None:
        self._server = server
        self._policy = policy

    async def shaped(self, work: OperationRequest, output: Any, sink: ProgressSink) -> Any:
        """Convert an output to the operation's answer, with files in this server's store.

        Raises:
            APIStatusError: The output is invalid, or a download failed.
        """
        if work.operation == "transcribe":
            return self._transcript(output, sink)
        made: list[OutputFile] = []
        try:
            if work.operation == "generate_music":
                return await self._music(output, sink, made)
            return await self._files(work, output, sink, made)
        except BaseException:
            discard_outputs(made)
            raise

    async def _files(
        self, work: OperationRequest, output: Any, sink: ProgressSink, made: list[OutputFile]
    ) -> list[OutputFile] | OutputFile:
        kind, field = _KINDS[work.operation]
        wanted = int(work.values.get(field, 1))
        found = [output] if isinstance(output, str) else output
        what = KINDS[kind]
        if not isinstance(found, list) or not 0 < len(found) <= wanted:
            count = len(found) if isinstance(found, list) else 0
            raise failed(
                self._server.name, f"it returned {count} {what} files (requested: {wanted})"
            )
        if len(found) < wanted:
            sink.warn(f"{field}: the upstream generated {len(found)} of {wanted}")
        for number, one in enumerate(found):
            made.append(await self._file(one, kind, f"{kind}-{number}", sink))
        # Real-ESRGAN returns one URL instead of a list.
        single = work.operation == "upscale_image" and work.variant == "B"
        return made[0] if single else list(made)

    async def _music(
        self, output: Any, sink: ProgressSink, made: list[OutputFile]
    ) -> dict[str, Any]:
        members = output if isinstance(output, dict) else {"audio": output}
        error, spectrogram = members.get("error"), members.get("spectrogram")
        if isinstance(error, str) and error.strip() and members.get("audio") is None:
            raise failed(self._server.name, f"it generated no music: {cleaned(error)}")
        made.append(await self._file(members.get("audio"), "audio", "audio", sink))
        answer: dict[str, Any] = {"audio": made[0]}
        if spectrogram is not None:
            made.append(await self._file(spectrogram, "image", "spectrogram", sink))
            answer["spectrogram"] = made[1]
        return answer

    def _transcript(self, output: Any, sink: ProgressSink) -> dict[str, Any]:
        """Return the text and its chunks without other members."""
        try:
            prediction = responses.Prediction({"status": "succeeded", "output": output})
            text, parts = prediction.text, prediction.chunks
        except errors.DecodeError:
            raise failed(self._server.name, "its response is not a transcript") from None
        has_text = isinstance(output, dict) and isinstance(output.get("text"), str)
        if not isinstance(output, list) and not has_text:
            raise failed(self._server.name, "its response is not a transcript")
        name = self._server.name
        chunks = [
            {"text": one.text, "timestamp": [time_of(name, at) for at in one.timestamp]}
            for one in parts
        ]
        answer: dict[str, Any] = {"text": text.strip(), "chunks": chunks}
        if not chunks and text.strip():
            sink.warn("timestamp: the upstream returned no timestamps")
            answer["chunks"] = [{"text": text, "timestamp": [0.0, None]}]
            answer["timestamp"] = "none"
        clean: dict[str, Any] = redact_json(answer)
        return clean

    async def _file(self, value: Any, kind: str, stem: str, sink: ProgressSink) -> OutputFile:
        """Store the file of a URL; checks its kind by its first bytes."""
        what = KINDS[kind]
        if not isinstance(value, str) or not value:
            raise failed(self._server.name, f"its response contains no {what} URL")
        if value[: len(_DATA)].lower() == _DATA:
            data = await asyncio.to_thread(decoded, value)
            if data is None:
                raise failed(self._server.name, "its response contains a file with invalid base64")
            made = await kept(sink, data, "", stem)
        else:
            made = await fetched(self._server, value, sink, self._policy, stem)
        return await judged(self._server, made, kind, stem)
