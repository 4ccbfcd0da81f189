"""Backend of stable-diffusion.cpp: like that of the diffusion engine, for its own models."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.diffusion.backend import REMEDIES, DiffusionBackend
from polymux.engines.media.backend import refuse_unable
from polymux.engines.memory import sdcpp_request_bytes
from polymux.engines.sdcpp.engine import UNTILED_PIXELS, WORK, WORK_S, drawn_at
from polymux.models.roles import assign_models, needed_roles
from polymux.service.admission import ThroughputEstimator
from polymux.service.model import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.registry import BackendContext
    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest, OperationResult, ProgressSink

#: Small images take longer per pixel than large ones.
_DOUBT = 2.0
#: Fields of the other engine: the value that disables each, and the error message.
_UNABLE = {
    "refine": ("no_refiner", "this model runs on stable-diffusion.cpp, which has no refiner"),
    "init_video": (None, "this model runs on stable-diffusion.cpp, which takes no initial video"),
}


class SdcppBackend(DiffusionBackend):
    """The engine of stable-diffusion.cpp with the media engine in front of it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        #: Seconds per megapixel and step of each model, after its first request.
        self._paces: dict[str, ThroughputEstimator] = {}

    def refuse(self, work: OperationRequest) -> None:
        refuse_unable(work, _UNABLE)
        super().refuse(work)

    async def estimate(self, work: OperationRequest) -> Estimate:
        """Estimate the memory, and the time from earlier requests to the model."""
        try:
            size = await self.measured(work)
        except errors.PolymuxError:
            return Estimate()  # The job will report the error.
        values = {**work.values, **self.own_defaults(work)}
        (role,) = needed_roles(work.operation, work.variant, work.values)
        model = self._cast.models[role]
        asked = (values["width"], values["height"]) if size is None or "mask" in values else size
        native = model.get("native_size")
        width, height = drawn_at(tuple(native) if native else None, tuple(asked))
        frames = int(values.get("num_frames") or 1)
        memory_bytes = None
        with suppress(OSError):
            memory_bytes = sdcpp_request_bytes(model, width * height, frames, UNTILED_PIXELS)
        words, remedies = f"{width} x {height} pixels", REMEDIES[work.operation]
        pace = self._paces.get(model["name"])
        if pace is None:
            return Estimate(memory_bytes=memory_bytes, why=words, remedies=remedies)
        units = _units(values, size)
        return Estimate(
            pace.seconds(units), memory_bytes, pace.words(units), remedies, doubt=_DOUBT
        )

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        result = await super().run(work, sink)
        if result.metrics.get(WORK):
            pace = ThroughputEstimator("megapixel steps", 1.0)
            pace = self._paces.setdefault(self.model_of(work), pace)
            pace.learn(result.metrics[WORK], result.metrics[WORK_S])
        return result


def _units(values: Mapping[str, Any], size: list[int] | None) -> float:
    """Return megapixels times steps, as the engine counts them."""
    width, height = size or (values["width"], values["height"])
    steps = int(values.get("num_inference_steps") or values.get("num_inferences_steps") or 1)
    if size is not None:
        steps = int(steps * float(values.get("prompt_strength", 1.0)))
    frames = int(values.get("num_frames") or 1)
    count = int(values.get("num_outputs") or values.get("batch_size") or 1)
    return float(width * height * frames * count) / 1e6 * (steps + 2)


def sdcpp_backend(engine: Backend, context: BackendContext) -> SdcppBackend:
    return SdcppBackend(
        engine,
        context.media,
        assign_models(context.settings.get("models") or {}, family="sdcpp"),
        context.url_fetcher,
        non_commercial=context.options.get("non_commercial") is True,
    )
