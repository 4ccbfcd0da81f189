"""The media engine's backend: conversions, and files for the other engines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from polymux.engines import estimates
from polymux.engines.media.decoding_backend import refuse_addresses
from polymux.engines.process.supervisor import EngineBackend
from polymux.service.backend import Backend

if TYPE_CHECKING:
    from polymux.service.model import Estimate, OperationRequest, OperationResult, ProgressSink


class MediaBackendBase(Backend):
    """What the media engine's backends have in common, before that which does the work."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._measure = estimates.sound(_CONVERSION_S)

    def refuse(self, work: OperationRequest) -> None:
        """Addresses are no files."""
        refuse_addresses(work, "file")
        super().refuse(work)

    async def estimate(self, work: OperationRequest) -> Estimate:
        """By the recording's length."""
        return await self._measure.estimate(work, "file", super().run)  # type: ignore[safe-super]

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Does it in the process."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        product = await super().run(work, sink)  # type: ignore[safe-super]
        if work.operation == "convert_to_mp3":
            self._measure.pace.learn(product.metrics["duration"], loop.time() - began)
        return product


class MediaBackend(MediaBackendBase, EngineBackend):
    """The media engine: of an address it would have to fetch the file first."""


#: Of a second of sound, until conversions were measured.
_CONVERSION_S = 0.01
