"""Text to image, image to image, and inpainting: `generate_image` in its three variants.

Requests work as in the Replicate models after which the variants are named. Without an image: text
to image. With an image: image to image at its size. With a mask too: its white area is repainted at
the requested size, and its black area is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.base import Output
from polymux.engines.diffusion import folders, loras, schedulers
from polymux.engines.diffusion.image_files import (
    GRID_PX,
    check_size,
    composite,
    grey,
    on_grid,
    parameters,
    picture_of,
    png,
    safety_check,
    stretched,
    watermark,
)
from polymux.engines.diffusion.native_size import Resizer, drawn_mask
from polymux.engines.diffusion.pipelines import seed_of
from polymux.engines.diffusion.prompts import tell_of_length
from polymux.engines.diffusion.refining import Refiner, refined, refiner_of
from polymux.engines.diffusion.steps import Steps
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Request, Token
    from polymux.engines.diffusion.pipelines import PipelineManager

_XL = "StableDiffusionXLPipeline"
#: Ends of the names of pipelines for text to image, image to image, and inpainting.
_ENDS = ("Pipeline", "Img2ImgPipeline", "InpaintPipeline")
#: The distilled variant, and the number of steps that it is made for.
_DISTILLED, _DISTILLED_STEPS = "A", 4


class Plan(NamedTuple):
    """The parameters of generating images.

    Attributes:
        role: Role of the model.
        kind: Class of the model's pipeline.
        mode: 0 for text to image, 1 for image to image, 2 for inpainting.
        size: Width and height of the output.
        drawn: Width and height at which the model generates.
        image: Initial image in the size of the output; None for text to image.
        mask: Area to repaint, in the size of the output; None for everything.
        strength: How much `image` is changed.
        steps: Steps per image, without the refiner's.
        refiner: Refiner to apply; None for no refiner.
    """

    role: str
    kind: str
    mode: int
    size: tuple[int, int]
    drawn: tuple[int, int]
    image: Image | None
    mask: Image | None
    strength: float
    steps: int
    refiner: Refiner | None


def make(manager: PipelineManager, request: Request, sink: EngineSink, token: Token) -> Output:
    """Generate the images of a request.

    Raises:
        BadRequestError: An input image is not usable.
        RequestTooLargeError: The output would be too large.
        NoBackendError: A model or a package is missing.
        UnprocessableEntityError: No image passed the safety check.
    """
    values = request.values
    plan = _plan(manager, request, sink)
    check = safety_check(manager, sink, wanted=values.get("disable_safety_checker") is not True)
    mark = watermark(wanted=values.get("apply_watermark") is True, size=plan.size, sink=sink)
    seed = seed_of(values, sink)
    tell_of_length(manager.parts(plan.role), values, ("prompt", "negative_prompt"), sink)
    token.check()
    count = int(values["num_outputs"])
    steps = Steps(sink, token, count * (plan.steps + (plan.refiner.steps if plan.refiner else 0)))
    resizer = Resizer(manager.options, sink, token)
    files = []
    for number in range(count):
        picture = _painted(manager, plan, values, seed + number, steps, resizer, sink)
        if check is not None and not check(picture):
            sink.warn(f"image {number + 1} did not pass the safety check and is omitted")
            continue
        words = parameters(values, manager.slot(plan.role).name, seed + number, picture.size)
        metadata = {"parameters": words, "Software": "polymux"}
        marked = mark(picture)
        token.check()
        files.append(png(marked, metadata, sink, f"picture-{number + 1}.png"))
    if not files:
        raise status_error(
            errors.UnprocessableEntityError,
            "no image passed the safety check. Change the prompt",
            code="content_filtered",
        )
    slot = manager.slot(plan.role)
    return Output(files, slot.version, steps.metrics, slot.name)


def _plan(manager: PipelineManager, request: Request, sink: EngineSink) -> Plan:
    values, role = request.values, f"picture:{request.variant}"
    slot = manager.slot(role)
    slot.tell_of_substitute(sink)
    kind = folders.kind_in_role(slot.path, slot.name, role)
    image, mask = picture_of(request, "image"), picture_of(request, "mask")
    asked = int(values["num_inference_steps"])
    if request.variant == _DISTILLED and asked != _DISTILLED_STEPS and not slot.instead_of:
        sink.log(
            f"num_inference_steps={asked}: this model works best with {_DISTILLED_STEPS} steps"
        )
    size = int(values["width"]), int(values["height"])
    mode = 0 if image is None else 1 if mask is None else 2
    if image is not None:
        grid_px = GRID_PX if slot.native_size is None else 1
        image, size = _fitted(image, size, grid_px, sink, keep_size=mask is None)
    drawn = manager.drawn_size(slot, size)
    strength = 1.0 if mode == 0 else float(values["prompt_strength"])
    refiner = refiner_of(manager, values, is_xl=kind == _XL)
    share = 1.0 if refiner is None or refiner.share is None else refiner.share
    if mode > 0 and share < 1 and refiner and int(asked * strength) <= refiner.steps:
        # The refiner would take over before the model's first step.
        sink.warn(
            f"prompt_strength={strength:g}: too low, so the refiner has no steps and is not used"
        )
        refiner = None
    passes = schedulers.passes_of_pictures(str(values["scheduler"]))
    steps = int(asked * strength * (share if mode == 0 else 1.0)) * passes
    mask = None if mask is None else grey(mask, size)
    return Plan(role, kind, mode, size, drawn, image, mask, strength, steps, refiner)


def _fitted(
    image: Image, size: tuple[int, int], grid_px: int, sink: EngineSink, *, keep_size: bool
) -> tuple[Image, tuple[int, int]]:
    """Resize the initial image, and return it with the output size."""
    check_size(image)
    if keep_size:
        size = on_grid(image.size, grid_px)
        if size != image.size:
            sink.warn(
                f"image: resized from {image.width} x {image.height} to {size[0]} x {size[1]}, "
                "because sides must be multiples of 8"
            )
    return stretched(image, size), size


def _painted(
    manager: PipelineManager,
    plan: Plan,
    values: Any,
    seed: int,
    steps: Steps,
    resizer: Resizer,
    sink: EngineSink,
) -> Image:
    if plan.image is not None and plan.steps == 0:
        sink.warn(f"prompt_strength={plan.strength:g}: too low, so the image is not changed")
        made: Any = plan.image
    else:
        made = _based(manager, plan, values, seed, steps, sink)
    if plan.refiner is not None:
        made = refined(manager, plan.refiner, made, values, manager.generator(seed), steps)
    made = resizer.resized(made, plan.size)
    if plan.mask is not None and plan.image is not None:
        made = composite(made, plan.image, plan.mask)
    painted: Image = made
    return painted


def _based(
    manager: PipelineManager, plan: Plan, values: Any, seed: int, steps: Steps, sink: EngineSink
) -> Any:
    """Run the model. The result is an image, or latents for the refiner."""
    parts = manager.parts(plan.role)
    spacing = {"timestep_spacing": "trailing"} if plan.role.endswith(_DISTILLED) else {}
    name, config = str(values["scheduler"]), parts["scheduler"].config
    scheduler = schedulers.of_pictures(name, config, **spacing)
    if schedulers.is_foreign(name, config):
        sink.log(f"scheduler={name}: this model works best with DPMSolver++ or K_EULER")
    others = {}
    if plan.kind == _XL and manager.options.get("tiny_vae") and manager.has("picture:decoder"):
        others["vae"] = manager.part("picture:decoder", "AutoencoderTiny")
    kind = plan.kind.removesuffix(_ENDS[0]) + _ENDS[plan.mode]
    with (
        manager.pipeline(kind, plan.role, scheduler, **others) as pipeline,
        loras.applied(pipeline, values, sink),
        steps.watching(pipeline, previews=manager.shows_previews),
    ):
        manager.prepare_decoder(pipeline.vae, plan.drawn)
        cell_px = manager.slot(plan.role).vae_factor
        given = _arguments(plan, values, manager.generator(seed), cell_px, steps)
        made = pipeline(**given).images
        if plan.refiner is not None:
            return made[0]  # Latents: the refiner's output is checked.
        loras.check_finite(made, manager.slot(plan.role).name, values)
        return pipeline.image_processor.numpy_to_pil(made)[0]


def _arguments(
    plan: Plan, values: Any, generator: Any, cell_px: int, steps: Steps
) -> dict[str, Any]:
    named: dict[str, Any] = {
        "prompt": str(values["prompt"]),
        "negative_prompt": str(values.get("negative_prompt") or "") or None,
        "num_inference_steps": int(values["num_inference_steps"]),
        "guidance_scale": float(values["guidance_scale"]),
        "generator": generator,
        "callback_on_step_end": steps,
        "output_type": "np",
    }
    if plan.mode != 1:
        named |= {"width": plan.drawn[0], "height": plan.drawn[1]}
    if plan.image is not None:
        named |= {"image": stretched(plan.image, plan.drawn), "strength": plan.strength}
    if plan.mask is not None:
        is_native = plan.drawn == plan.size
        mask = plan.mask if is_native else drawn_mask(plan.mask, plan.drawn, cell_px)
        named["mask_image"] = mask
    if plan.refiner is not None:
        named |= plan.refiner.base_arguments
    return named
