"""What a request will take: counted on the model's shape, divided by what was measured here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.diffusion import calibration, detail_plan, folders, schedulers
from polymux.models.roles import needed_roles
from polymux.service.failures import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import Request
    from polymux.engines.diffusion.studio import Studio

#: Of the request's picture, where it has one: width and height.
IMAGE_SIZE = "image_size"
#: Whether it has a mask, and so has another size than its picture.
HAS_MASK = "has_mask"
#: Whether it has a video to begin with.
HAS_VIDEO = "has_video"
#: The operation that is asked about.
ESTIMATED = "estimated_operation"
#: Beside the weights, for each pixel that a decoder works on at once, at four bytes a number.
_BYTES_PER_PIXEL = 4000
#: Networks rarely do all that their layers could: of what was measured by themselves.
_EFFICIENCY = 0.7
_MUSIC_PX = 512
#: A ControlNet is the half of the network that it is laid beside.
_CONTROL = 1.4


def of(studio: Studio, request: Request, flops_per_s: float) -> dict[str, Any]:
    """Seconds, memory in bytes, and what they come from.

    Args:
        studio: Whose models are meant.
        request: What is asked about.
        flops_per_s: How fast the device is.

    Raises:
        NoBackendError: The model is none.
    """
    values = request.values
    roles = needed_roles(request.operation, request.variant, values)
    path = studio.member(roles[0]).path
    kind = str(folders.index_of(path)["_class_name"])
    flops, pixels, words = _work(request, path, kind)
    seconds = flops / (flops_per_s * _EFFICIENCY)
    weights = sum(studio.weight_bytes(role) for role in roles if not studio.is_loaded(role))
    memory_bytes = weights + min(pixels, studio.untiled_pixels) * _BYTES_PER_PIXEL
    return {
        "seconds": seconds,
        "memory_bytes": round(memory_bytes),
        "why": f"{words}, on {studio.device} at {flops_per_s / 1e12:.2g} TFLOP/s as measured",
    }


def _work(request: Request, path: Any, kind: str) -> tuple[float, float, str]:
    """Operations, the pixels of a picture, and both in words."""
    values = request.values
    if request.operation == "generate_image":
        return _pictures(values, path)
    if request.operation == "generate_video":
        return _video(values, path, kind)
    if request.operation == "generate_music":
        steps = int(int(values["num_inference_steps"]) * float(values["denoising"])) + 1
        size = _MUSIC_PX, _MUSIC_PX
        flops = 2 * steps * calibration.flops_of_pass(path, *size)
        flops += 2 * calibration.flops_of_decoding(path, *size)
        return flops, _MUSIC_PX**2, f"{steps} steps"
    width, height = values[IMAGE_SIZE]
    units = detail_plan.units(values, width, height)
    a_megapixel = calibration.flops_of_pass(path, _MUSIC_PX, _MUSIC_PX) / (_MUSIC_PX**2 / 1e6)
    made = detail_plan.planned(values, width, height).size
    pixels = made[0] * made[1]
    flops = units * a_megapixel * _CONTROL
    flops += 2 * calibration.flops_of_decoding(path, _MUSIC_PX, _MUSIC_PX) * pixels / _MUSIC_PX**2
    return flops, pixels, f"{units:.1f} passes of a megapixel"


def _pictures(values: Mapping[str, Any], path: Any) -> tuple[float, float, str]:
    width, height = values.get(IMAGE_SIZE) or (int(values["width"]), int(values["height"]))
    count = int(values["num_outputs"])
    steps = int(values["num_inference_steps"])
    if values.get(IMAGE_SIZE) or values.get(HAS_MASK):
        steps = int(steps * float(values["prompt_strength"]))
    guided = 2 if float(values["guidance_scale"]) > 1 else 1
    passes = steps * schedulers.passes_of_pictures(str(values["scheduler"])) * guided
    flops = count * passes * calibration.flops_of_pass(path, width, height)
    flops += count * calibration.flops_of_decoding(path, width, height)
    words = f"{count} x {steps} steps of {width} x {height}"
    return flops, width * height, words


def _video(values: Mapping[str, Any], path: Any, kind: str) -> tuple[float, float, str]:
    width, height = int(values["width"]), int(values["height"])
    frames, count = int(values["num_frames"]), int(values["batch_size"])
    steps = int(values["num_inferences_steps"])
    if values.get(HAS_VIDEO):
        steps -= round(float(values["init_weight"]) * steps)
    try:
        once = calibration.flops_of_video_pass(path, kind, width, height, frames)
    except (OSError, KeyError, TypeError, RuntimeError, ValueError) as error:
        raise refusal(
            errors.NoBackendError, f"the model {path.name} ({kind}) makes no video"
        ) from error
    flops = count * 2 * steps * once
    flops += count * frames * calibration.flops_of_decoding(path, width, height)
    words = f"{count} x {steps} steps of {frames} frames of {width} x {height}"
    return flops, width * height, words
