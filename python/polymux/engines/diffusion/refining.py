"""SDXL's refiner, applied to the last steps of generation or to the finished image.

Podell et al., "SDXL: Improving Latent Diffusion Models for High-Resolution Image Synthesis", 2023.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.diffusion import schedulers
from polymux.engines.diffusion.loras import check_finite
from polymux.models.roles import why_missing
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.diffusion.pipelines import PipelineManager
    from polymux.engines.diffusion.steps import Steps

_ROLE = "picture:refiner"
#: Dimensions of the latents of a single image without a batch dimension.
_OF_ONE = 3
#: Strength of a refiner on a finished image.
_STRENGTH = 0.3


class Refiner(NamedTuple):
    """The use of the refiner for an image.

    Attributes:
        share: Fraction of the steps that the base model runs; None if it runs all of them.
        pipeline_steps: Number of steps given to the refiner's pipeline.
        steps: How many of them it runs.
    """

    share: float | None
    pipeline_steps: int
    steps: int

    @property
    def base_arguments(self) -> dict[str, Any]:
        """Additional arguments for the base model's pipeline."""
        ends = {} if self.share is None else {"denoising_end": self.share}
        return {"output_type": "latent", **ends}


def refiner_of(
    manager: PipelineManager, values: Mapping[str, Any], *, is_xl: bool
) -> Refiner | None:
    """Return the refiner that a request needs; None if it needs none.

    Raises:
        NoBackendError: The refiner is not installed, or the model does not support it.
    """
    wanted = values.get("refine", "no_refiner")
    if wanted == "no_refiner":
        return None
    if not is_xl or not manager.has(_ROLE):
        why = why_missing(_ROLE) if is_xl else "this model does not support a refiner"
        raise status_error(errors.NoBackendError, f"refine={wanted}: {why}", param="refine")
    return refiner_steps(values)


def refiner_steps(values: Mapping[str, Any]) -> Refiner | None:
    """Return the refiner's steps for a request that needs one; None if it has no steps."""
    count = int(values["num_inference_steps"])
    if values["refine"] == "expert_ensemble_refiner":
        share = float(values.get("high_noise_frac", 0.8))
        share = min(max(share, 1.0 / count), 1.0)
        return None if share == 1.0 else Refiner(share, count, count - int(count * share))
    requested = values.get("refine_steps")
    wanted_steps = max(1, int(count * _STRENGTH)) if requested is None else int(requested)
    # Image to image only runs `_STRENGTH` of the steps that it gets. Networks were trained with
    # 1000 steps, and some solvers divide by the distance between two of them. So the contract
    # allows 299 steps, for which the pipeline gets 997.
    pipeline_steps = count if requested is None else round(wanted_steps / _STRENGTH)
    while int(pipeline_steps * _STRENGTH) < wanted_steps:
        pipeline_steps += 1
    return Refiner(None, pipeline_steps, wanted_steps)


def refined(
    manager: PipelineManager,
    refiner: Refiner,
    begun: Any,
    values: Mapping[str, Any],
    generator: Any,
    steps: Steps,
) -> Any:
    """Run the refiner on the base model's latents or on a finished image."""
    scheduler = schedulers.of_pictures(
        str(values["scheduler"]), manager.parts(_ROLE)["scheduler"].config
    )
    how: dict[str, Any] = {"strength": _STRENGTH}
    if refiner.share is not None:
        how = {"denoising_start": refiner.share}
    kind = "StableDiffusionXLImg2ImgPipeline"
    with manager.pipeline(kind, _ROLE, scheduler) as pipeline, steps.watching(pipeline):
        # The base model's latents lack the batch dimension.
        batch = begun[None] if getattr(begun, "ndim", 0) == _OF_ONE else begun
        made = pipeline(
            prompt=str(values["prompt"]),
            negative_prompt=str(values.get("negative_prompt") or "") or None,
            image=batch,
            num_inference_steps=refiner.pipeline_steps,
            guidance_scale=float(values["guidance_scale"]),
            generator=generator,
            callback_on_step_end=steps,
            output_type="np",
            **how,
        ).images
        check_finite(made, manager.slot(_ROLE).name, values)
        return pipeline.image_processor.numpy_to_pil(made)[0]
