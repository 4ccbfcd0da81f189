"""Backend of the diffusion engine: opens files with the media engine and downloads URL inputs.

The engine only gets samples: a sandboxed process opens untrusted images and videos. LoRA weights
are safetensors, which are safe to read.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._util.text import sentences
from polymux.engines.diffusion.engine import ESTIMATE
from polymux.engines.diffusion.estimates import ESTIMATED, HAS_MASK, HAS_VIDEO, IMAGE_SIZE
from polymux.engines.diffusion.image_files import FACTS, SAMPLES
from polymux.engines.diffusion.loras import FILE
from polymux.engines.media.backend import (
    MediaDelegatingBackend,
    refuse_unable,
    upload_of,
)
from polymux.engines.media.engine import LOAD_FRAMES, LOAD_PICTURES, MEASURE_PICTURE
from polymux.models import registry
from polymux.models.roles import assign_models, needed_roles, request_of, stem_of
from polymux.models.selection import advice
from polymux.service.errors import status_error
from polymux.service.model import Estimate, ModelChoice, buffered_sink, unseen_sink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from polymux.contract import Variant
    from polymux.downloads.url_inputs import UrlFetcher
    from polymux.engines.registry import BackendContext
    from polymux.models.roles import ModelAssignment
    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest, OperationResult, ProgressSink
    from polymux.service.temporary_files import TempFile

_PICTURES = ("image", "mask")
_VIDEO = "init_video"
#: Fields with URLs of weights.
_WEIGHTS = ("replicate_weights", "lora_links", "custom_sd_model")
#: Fields that choose the model of a role, for errors.
_CHOICES = {"upscale_image": "sd_model", "generate_video": "video_model"}
#: Unsupported fields: the value that disables each, and the error message.
_UNABLE = {
    "remove_watermark": (False, "removing watermarks is not supported"),
    "handfix": ("disabled", "repairing hands is not supported"),
}
#: Fraction of the progress for downloads, if the request has URLs.
_SHARE = 0.1
REMEDIES = {
    "generate_image": "use a smaller image or fewer steps",
    "upscale_image": "use a smaller scale_factor or fewer steps",
    "generate_video": "use fewer frames, fewer steps or a smaller size",
    "generate_music": "use fewer steps",
}


class DiffusionBackend(MediaDelegatingBackend):
    """A diffusion engine with the media engine in front of it.

    Args:
        media: Backend of the media engine, which opens files.
        cast: Models assigned to roles.
        url_fetcher: Downloads weights.
        non_commercial: Whether models with a non-commercial license may be used.
    """

    def __init__(
        self,
        engine: Backend,
        media: Backend,
        cast: ModelAssignment,
        url_fetcher: UrlFetcher,
        *,
        non_commercial: bool = False,
    ) -> None:
        super().__init__(engine, media)
        self._cast = cast
        self._url_fetcher = url_fetcher
        self._non_commercial = non_commercial

    def refuse(self, work: OperationRequest) -> None:
        roles = needed_roles(work.operation, work.variant, work.values)
        if not roles:
            raise status_error(
                errors.NoBackendError,
                f"model={work.model}: no engine is configured for this model",
                param="model",
            )
        param = _CHOICES.get(work.operation, "model")
        if work.values.get("refine", "no_refiner") != "no_refiner":
            roles, param = (*roles, "picture:refiner"), "refine"
        for role in roles:
            problem = self._problem(role)
            if problem:
                text = sentences(problem, advice(work.operation))
                raise status_error(errors.NoBackendError, text, param=param)
        refuse_unable(work, _UNABLE)
        self._inner.refuse(work)

    def is_fallback(self, work: OperationRequest) -> bool:
        """Whether a small model would run the request, because no other model is installed."""
        roles = needed_roles(work.operation, work.variant, work.values)
        return any(self._cast.models.get(role, {}).get("is_small") for role in roles)

    def model_of(self, work: OperationRequest) -> str:
        """Return the name of the model that runs a request."""
        roles = needed_roles(work.operation, work.variant, work.values)
        return str(self._cast.models[roles[0]]["name"])

    def own_defaults(self, work: OperationRequest) -> dict[str, Any]:
        """Return the model's values for fields that the request leaves out."""
        roles = needed_roles(work.operation, work.variant, work.values)
        own = self._cast.models.get(roles[0], {}).get("defaults", {}) if roles else {}
        return {
            name: value
            for name, value in own.items()
            if name not in work.given and work.values.get(name) != value
        }

    def named_models(self, operation: str) -> Mapping[str, ModelChoice]:
        """Return the models that are assigned to roles of the operation.

        The name of a model with several roles selects the variant with most fields.
        """
        found: dict[str, ModelChoice] = {}
        counts: dict[str, int] = {}
        for role, model in self._cast.models.items():
            request = request_of(role)
            if request is None or request[0] != operation:
                continue
            variants = contract.operation(operation).variants
            shape = next(one for one in variants if request[1] in (one.id, ""))
            values = {name: _choice(shape, name, stem) for name, stem in request[2].items()}
            called = model["name"]
            if len(shape.fields) > counts.get(called, 0):
                found[called] = ModelChoice(shape.model, called, values)
                counts[called] = len(shape.fields)
        return found

    def _problem(self, role: str) -> str:
        """Return why a role's model is not available, with a remedy; empty if it is."""
        if role not in self._cast.models:
            return self._cast.problems.get(role, f"no model is assigned to the role {role}")
        name = self._cast.models[role]["name"]
        known = registry.find(name)
        if known is None or "-NC" not in known.license or self._non_commercial:
            return ""
        return (
            f"model {name} has the license {known.license}, which only allows non-commercial use. "
            "If your use is non-commercial, set the engine's option non_commercial = true"
        )

    async def estimate(self, work: OperationRequest) -> Estimate:
        """Estimate from the model's architecture, the output size, and the device's speed."""
        values = {name: one for name, one in work.values.items() if name not in _FILES}
        values |= self.own_defaults(work)
        try:
            size = await self.measured(work)
        except errors.PolymuxError:
            return Estimate()  # The job will report the error.
        if size is not None and not ("mask" in work.values and work.operation == "generate_image"):
            values[IMAGE_SIZE] = size
        values |= {ESTIMATED: work.operation, HAS_MASK: "mask" in work.values}
        values[HAS_VIDEO] = _VIDEO in work.values
        output = (await self._inner.run(work.step(ESTIMATE, values), unseen_sink())).output
        return Estimate(
            output["seconds"],
            output["memory_bytes"],
            str(output["why"]),
            f"{REMEDIES[work.operation]}, choose another model, or configure an upstream",
            float(output["doubt"]),
        )

    async def measured(self, work: OperationRequest) -> list[int] | None:
        """Return the size of the request's image; None without an image."""
        file = work.values.get("image")
        if file is None:
            return None
        step = work.step(MEASURE_PICTURE, {"file": file})
        facts = (await self._media.run(step, unseen_sink())).output
        return [int(facts["width"]), int(facts["height"])]

    def prepared(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        named = [name for name in _WEIGHTS if work.values.get(name)]
        return self._brought(work, sink, named) if named else None

    @asynccontextmanager
    async def _brought(
        self, work: OperationRequest, sink: ProgressSink, named: list[str]
    ) -> AsyncIterator[OperationRequest]:
        drafts: list[TempFile] = []
        try:
            values = dict(work.values)
            for number, name in enumerate(named):
                part = sink.part(_SHARE * number / len(named), _SHARE * (number + 1) / len(named))
                values[name + FILE] = await self._fetched(str(values[name]), name, part, drafts)
            yield replace(work, values=values)
        finally:
            for draft in drafts:
                draft.discard(beside=True)

    async def _fetched(
        self, url: str, name: str, sink: ProgressSink, drafts: list[TempFile]
    ) -> Any:
        try:
            return await self._url_fetcher.fetch(url, sink, drafts)
        except errors.APIStatusError as error:
            error.param = name
            raise

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        drafts: list[TempFile] = []
        try:
            values = {name: one for name, one in work.values.items() if name not in _FILES}
            own = self.own_defaults(work)
            values |= own
            if own:
                given = ", ".join(f"{name}={value}" for name, value in own.items())
                sink.log(f"defaults of model {self.model_of(work)}: {given}")
            for name in (one for one in _PICTURES if one in work.values):
                asked = {"file": work.values[name], "pages": 1, "mode": "rgb"}
                product = await self._opened(work, LOAD_PICTURES, asked, name, sink)
                values |= _given(name, product.output["pictures"][0], "pixels", drafts)
            if _VIDEO in work.values:
                asked = {
                    "file": work.values[_VIDEO],
                    "width": work.values["width"],
                    "height": work.values["height"],
                    "frames": work.values["num_frames"],
                    "fps": work.values["fps"],
                }
                product = await self._opened(work, LOAD_FRAMES, asked, _VIDEO, sink)
                values |= _given(_VIDEO, product.output, "samples", drafts)
            return await self._inner.run(replace(work, values=values), sink)
        finally:
            for draft in drafts:
                draft.discard()

    async def _opened(
        self,
        work: OperationRequest,
        step: str,
        asked: Mapping[str, Any],
        name: str,
        sink: ProgressSink,
    ) -> OperationResult:
        quiet = buffered_sink(sink.draft)
        try:
            product = await self._media.run(work.step(step, asked), quiet)
        except errors.APIStatusError as error:
            error.param = error.param or name
            raise
        quiet.copy_lines(sink, f"{name}: ")
        return product


_FILES = (*_PICTURES, _VIDEO)


def _choice(shape: Variant, name: str, stem: str) -> str:
    """Return the value of a field that names a checkpoint."""
    choices = next(one.choices for one in shape.fields if one.name == name) or ()
    return next(str(one) for one in choices if stem_of(str(one)) == stem)


def _given(
    name: str, facts: Mapping[str, Any], samples: str, drafts: list[TempFile]
) -> dict[str, Any]:
    """Return the fields in which the engine gets an opened file: its samples and its facts."""
    others = {key: one for key, one in facts.items() if key != samples}
    return {name + SAMPLES: upload_of(facts[samples], drafts), name + FACTS: others}


def diffusion_backend(engine: Backend, context: BackendContext) -> DiffusionBackend:
    return DiffusionBackend(
        engine,
        context.media,
        assign_models(context.settings.get("models") or {}),
        context.url_fetcher,
        non_commercial=context.options.get("non_commercial") is True,
    )
