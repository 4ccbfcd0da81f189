"""Backends of the media engine, and of engines whose files it opens.

Engines with models only get samples and pixels: the media engine opens untrusted files for them.
"""

from __future__ import annotations

import asyncio
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._util.text import sentences
from polymux.engines import estimates
from polymux.engines.base import model_name
from polymux.engines.media.engine import DECODE_AUDIO, LOAD_PICTURES
from polymux.engines.process.supervisor import EngineBackend
from polymux.engines.upscale import MAX_PIXELS
from polymux.models.selection import remedy
from polymux.service.backend import Backend, DelegatingBackend
from polymux.service.errors import engine_failed, status_error
from polymux.service.model import ModelChoice, Upload, buffered_sink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.estimates import Measure
    from polymux.engines.registry import BackendContext
    from polymux.service.model import (
        Estimate,
        OperationRequest,
        OperationResult,
        OutputFile,
        ProgressSink,
    )
    from polymux.service.temporary_files import TempFile

_MAX_PAGES = 200
#: Unsupported fields: the value that disables each, and the error message.
_UNABLE = {"face_enhance": (False, "not supported by this engine")}
#: Initial guesses in seconds per unit, for small models on two CPU cores.
_CONVERSION_S = 0.01
_SPEECH_S = 0.5
_PAGE_S = 3.0
_MEGAPIXEL_S = 3.0


class MediaBackendBase(Backend):
    """Base class of the media engine's backends, to be combined with the class that runs it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._measure = estimates.sound(_CONVERSION_S)

    def refuse(self, work: OperationRequest) -> None:
        refuse_addresses(work, "file")
        super().refuse(work)

    async def estimate(self, work: OperationRequest) -> Estimate:
        return await self._measure.estimate(work, "file", super().run)  # type: ignore[safe-super]

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        loop = asyncio.get_running_loop()
        began = loop.time()
        product = await super().run(work, sink)  # type: ignore[safe-super]
        if work.operation == "convert_to_mp3":
            self._measure.pace.learn(product.metrics["duration"], loop.time() - began)
        return product


class MediaBackend(MediaBackendBase, EngineBackend):
    """The media engine in a child process. It does not download URLs."""


class MediaDelegatingBackend(DelegatingBackend):
    """A backend that opens files with the media engine for another engine."""

    def __init__(self, engine: Backend, media: Backend) -> None:
        super().__init__(engine)
        self._media = media

    async def close(self) -> None:
        """Stop both processes."""
        await self._inner.close()
        await self._media.close()


class PreprocessingBackend(MediaDelegatingBackend):
    """An engine with the media engine in front of it.

    Args:
        engine: Backend of the engine.
        media: Backend of the media engine, which opens the file.
        field: Request field of the file, such as ``"audio"``.
        step: Operation of the media engine: ``"decode_audio"`` or ``"load_pictures"``.
        measure: Measures requests for estimates.
        variant: The only supported variant. Default: all variants.
        model: Name of the engine's model, by which requests can select it. Default: none.
        options: Further options of `step`.
    """

    def __init__(
        self,
        engine: Backend,
        media: Backend,
        *,
        field: str,
        step: str,
        measure: Measure,
        variant: str = "",
        model: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(engine, media)
        self._field = field
        self._step = step
        self._measure = measure
        self._variant = variant
        self._model = model
        self._options = dict(options or {})

    def refuse(self, work: OperationRequest) -> None:
        """Reject URLs and unsupported variants."""
        if self._variant and work.variant != self._variant:
            steps = remedy(work.operation, work.variant, work.values)
            raise status_error(
                errors.NoBackendError,
                sentences(f"model={work.model}: no engine is configured for this model", steps),
                param="model",
            )
        refuse_addresses(work, self._field)
        refuse_unable(work, _UNABLE)
        self._inner.refuse(work)

    def named_models(self, operation: str) -> Mapping[str, ModelChoice]:
        """Return the engine's model."""
        variants = contract.operation(operation).variants
        selector = next(one.model for one in variants if one.id == self._variant)
        return {self._model: ModelChoice(selector, self._model)} if self._model else {}

    async def estimate(self, work: OperationRequest) -> Estimate:
        return await self._measure.estimate(work, self._field, self._media.run)

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        drafts: list[TempFile] = []
        try:
            values, units = await self._prepared(work, sink, drafts)
            kept = {name: one for name, one in work.values.items() if name != self._field}
            loop = asyncio.get_running_loop()
            began = loop.time()
            product = await self._inner.run(replace(work, values=kept | values), sink)
            self._measure.pace.learn(units, loop.time() - began)
            return product
        finally:
            for draft in drafts:
                draft.discard()

    async def _prepared(
        self, work: OperationRequest, sink: ProgressSink, drafts: list[TempFile]
    ) -> tuple[dict[str, Any], float]:
        """Return the fields that replace the file for the engine, and the amount of work."""
        step = work.step(self._step, {"file": work.values[self._field], **self._options})
        quiet = buffered_sink(sink.draft)
        product = await self._media.run(step, quiet)
        quiet.copy_lines(sink)
        if self._step == DECODE_AUDIO:
            samples = upload_of(product.output["samples"], drafts)
            return {"samples": samples}, self._measure.units(work, product.output)
        pictures = product.output["pictures"]
        values: dict[str, Any] = {
            f"pixels_{number}": upload_of(one.pop("pixels"), drafts)
            for number, one in enumerate(pictures)
        }
        facts = {"pages": len(pictures), **pictures[0]}
        return values | {"pictures": pictures}, self._measure.units(work, facts)


def refuse_addresses(work: OperationRequest, field: str) -> None:
    """Reject a request with a URL instead of a file.

    Raises:
        NoBackendError: This backend does not download URLs.
    """
    if field not in work.values:
        raise status_error(
            errors.NoBackendError,
            f"url: URLs are not downloaded here. Pass the file itself in the field {field!r}",
            param="url",
        )


def refuse_unable(work: OperationRequest, unable: Mapping[str, tuple[Any, str]]) -> None:
    """Reject a request that uses an unsupported field.

    Args:
        work: The request.
        unable: Field to the value that disables it, and the error message.

    Raises:
        NoBackendError: An unsupported field is used.
    """
    for name, (none, words) in unable.items():
        if work.values.get(name, none) != none:
            raise status_error(
                errors.NoBackendError,
                f"{name}: {words}. Omit it, or configure an upstream that supports it "
                "(see docs/integrations/upstreams.md)",
                param=name,
            )


def speech_backend(engine: Backend, context: BackendContext) -> PreprocessingBackend:
    return PreprocessingBackend(
        engine,
        context.media,
        field="audio",
        step=DECODE_AUDIO,
        measure=estimates.sound(_SPEECH_S),
        model=model_name(context.options, _file_of(context).name),
    )


def _file_of(context: BackendContext) -> Path:
    return Path(str(context.options.get("model", "")))


def ocr_backend(engine: Backend, context: BackendContext) -> PreprocessingBackend:
    """Create a backend that reads the text of all pages of uploaded images."""
    return PreprocessingBackend(
        engine,
        context.media,
        field="file",
        step=LOAD_PICTURES,
        measure=estimates.read(_PAGE_S),
        options={"pages": _MAX_PAGES, "mode": "rgb"},
    )


def upscale_backend(engine: Backend, context: BackendContext) -> PreprocessingBackend:
    """Create a backend that upscales uploaded images and keeps transparency and bit depth."""
    # The network's files do not state its factor. 4 is the usual maximum.
    factor = int(context.options.get("factor", 4))
    max_pixels = int(context.options.get("max_pixels", MAX_PIXELS))
    return PreprocessingBackend(
        engine,
        context.media,
        field="image",
        step=LOAD_PICTURES,
        measure=estimates.enlarged(_MEGAPIXEL_S, factor, max_pixels),
        variant="B",
        model=model_name(context.options, _file_of(context).stem),
        options={"pages": 1, "mode": "any"},
    )


def upload_of(made: OutputFile, drafts: list[TempFile]) -> Upload:
    """Convert an output file of one engine to an input of another, and add it to `drafts`."""
    drafts.append(made.draft)
    status = made.draft.path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise engine_failed("the output of an engine is not a regular file")
    size = status.st_size
    return Upload(made.draft.path, made.file_name, made.content_type, size)
