"""Backend of stable-diffusion.cpp: like that of the diffusion engine, for its own models."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from polymux.engines.diffusion.backend import REMEDIES, DiffusionBackend
from polymux.engines.media.backend import refuse_unable
from polymux.models.roles import assign_models
from polymux.service.admission import ThroughputEstimator
from polymux.service.model import Estimate

if TYPE_CHECKING:
    from polymux.engines.registry import BackendContext
    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest, OperationResult, ProgressSink

#: Fields of the other engine: the value that disables each, and the error message.
_UNABLE = {
    "refine": ("no_refiner", "this model runs on stable-diffusion.cpp, which has no refiner"),
    "init_video": (None, "this model runs on stable-diffusion.cpp, which takes no initial video"),
}


class SdcppBackend(DiffusionBackend):
    """The engine of stable-diffusion.cpp with the media engine in front of it."""

    #: Seconds per megapixel and step of each model, after its first request.
    _paces: dict[str, ThroughputEstimator]

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._paces = {}

    def refuse(self, work: OperationRequest) -> None:
        refuse_unable(work, _UNABLE)
        super().refuse(work)

    async def estimate(self, work: OperationRequest) -> Estimate:
        """Estimate from earlier requests to the model; unknown before the first."""
        pace, units = self._paces.get(self.model_of(work)), self._units(work)
        if pace is None:
            return Estimate()
        return Estimate(
            pace.seconds(units), why=pace.words(units), remedies=REMEDIES[work.operation]
        )

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        began = time.monotonic()
        result = await super().run(work, sink)
        pace = self._paces.setdefault(
            self.model_of(work), ThroughputEstimator("megapixel steps", 1.0)
        )
        pace.learn(self._units(work), time.monotonic() - began)
        return result

    def _units(self, work: OperationRequest) -> float:
        values = {**work.values, **self.own_defaults(work)}
        steps = values.get("num_inference_steps") or values.get("num_inferences_steps") or 1
        frames = values.get("num_frames") or 1
        count = values.get("num_outputs") or values.get("batch_size") or 1
        # A decoder is about as much work as two steps.
        pixels = float(values["width"] * values["height"] * frames * count)
        return pixels / 1e6 * (steps + 2)


def sdcpp_backend(engine: Backend, context: BackendContext) -> SdcppBackend:
    return SdcppBackend(
        engine,
        context.media,
        assign_models(context.settings.get("models") or {}, family="sdcpp"),
        context.url_fetcher,
        non_commercial=context.options.get("non_commercial") is True,
    )
