"""Estimates of time and memory: operations counted on the model, divided by measured speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.engines.diffusion import calibration, folders, native_size, schedulers
from polymux.engines.diffusion.refining import refiner_steps
from polymux.engines.diffusion.upscale import plan
from polymux.engines.diffusion.windows import music_cells, music_columns, window_starts
from polymux.models.roles import needed_roles

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from polymux.engines.base import Request
    from polymux.engines.diffusion.pipelines import PipelineManager

#: Width and height of the request's image, if it has one.
IMAGE_SIZE = "image_size"
#: Whether the request has a mask; the output then has another size than the image.
HAS_MASK = "has_mask"
#: Whether the request has an initial video.
HAS_VIDEO = "has_video"
#: The operation to estimate.
ESTIMATED = "estimated_operation"
#: Memory in addition to weights, per pixel that a decoder processes at once, with 4-byte numbers.
_BYTES_PER_PIXEL = 4000
#: Numbers in memory per pixel and frame of a video, because all frames are denoised together. Based
#: on the memory that zeroscope's authors state for 30 frames
#: (https://huggingface.co/cerspense/zeroscope_v2_XL).
_NUMBERS_PER_FRAME_PIXEL = 350
#: Networks reach only part of the speed that was measured for single layers.
_EFFICIENCY = 0.7
_MUSIC_PX = 512
#: A ControlNet adds about half of the network's operations.
_CONTROL = 1.4
_REFINER, _SAFETY, _DECODER = "picture:refiner", "picture:safety", "picture:decoder"


class _Counted(NamedTuple):
    """The counted work of a request.

    Attributes:
        flops: Operations.
        pixels: Pixels of one decoded image.
        words: Description for users.
        frames: Frames that are denoised together.
    """

    flops: float
    pixels: float
    words: str
    frames: int = 1


def of(manager: PipelineManager, request: Request, flops_per_s: float) -> dict[str, Any]:
    """Return the seconds, the memory in bytes, and a description.

    Raises:
        NoBackendError: The model is invalid.
        Exception: The libraries reject the model's components or the size.
    """
    roles = roles_of(manager, request)
    counted = _work(manager, request, roles)
    weights = sum(manager.weight_bytes(role) for role in roles if not manager.is_loaded(role))
    memory_bytes = weights + min(counted.pixels, manager.untiled_pixels) * _BYTES_PER_PIXEL
    if counted.frames > 1:
        numbers = counted.frames * counted.pixels * _NUMBERS_PER_FRAME_PIXEL
        memory_bytes += numbers * manager.dtype.itemsize
    where = f"on {manager.device} at a measured speed of {flops_per_s / 1e12:.2g} TFLOP/s"
    return {
        "seconds": counted.flops / (flops_per_s * _EFFICIENCY),
        "memory_bytes": round(memory_bytes),
        "why": f"{counted.words}, {where}",
    }


def roles_of(manager: PipelineManager, request: Request) -> tuple[str, ...]:
    """Return the roles whose models a request uses, the main model first."""
    values = request.values
    roles = needed_roles(request.operation, request.variant, values)
    if request.operation != "generate_image":
        return roles
    wanted = {
        _REFINER: values.get("refine", "no_refiner") != "no_refiner",
        _SAFETY: values.get("disable_safety_checker") is not True,
        _DECODER: bool(manager.options.get("tiny_vae"))
        and folders.kind_of(manager.slot(roles[0]).path) == "StableDiffusionXLPipeline",
    }
    return (
        *roles,
        *(role for role, is_wanted in wanted.items() if is_wanted and manager.has(role)),
    )


def _work(manager: PipelineManager, request: Request, roles: tuple[str, ...]) -> _Counted:
    values, path = request.values, manager.slot(roles[0]).path
    kind = folders.kind_of(path)
    if request.operation == "generate_image":
        return _pictures(manager, values, roles)
    if request.operation == "generate_video":
        return _video(manager, values, roles[0], kind)
    if request.operation == "generate_music":
        return _music(values, path)
    width, height = values[IMAGE_SIZE]
    units = plan.units(values, width, height)
    a_megapixel = calibration.flops_of_pass(path, _MUSIC_PX, _MUSIC_PX) / (_MUSIC_PX**2 / 1e6)
    made = plan.planned(values, width, height).size
    pixels = made[0] * made[1]
    flops = units * a_megapixel * _CONTROL
    flops += 2 * calibration.flops_of_decoding(path, _MUSIC_PX, _MUSIC_PX) * pixels / _MUSIC_PX**2
    return _Counted(flops, pixels, f"{units:.1f} passes over a megapixel")


def _music(values: Mapping[str, Any], path: Path) -> _Counted:
    steps = int(int(values["num_inference_steps"]) * float(values["denoising"])) + 1
    size = _MUSIC_PX, _MUSIC_PX
    window = _MUSIC_PX // folders.vae_factor(path)
    columns = music_columns(values.get("duration_s"), _MUSIC_PX)
    clips = len(window_starts(music_cells(columns, _MUSIC_PX, window), window))
    flops = 2 * steps * clips * calibration.flops_of_pass(path, *size)
    decoding = calibration.flops_of_decoding(path, *size)
    flops += decoding * (1 + clips)  # The seed image is encoded once.
    each = f" for {clips} parts" if clips > 1 else ""
    return _Counted(flops, _MUSIC_PX**2, f"{steps} steps{each}")


def _pictures(
    manager: PipelineManager, values: Mapping[str, Any], roles: tuple[str, ...]
) -> _Counted:
    slot = manager.slot(roles[0])
    path = slot.path
    requested = values.get(IMAGE_SIZE) or (int(values["width"]), int(values["height"]))
    width, height = size = slot.drawn_size(tuple(requested))
    count = int(values["num_outputs"])
    steps = int(values["num_inference_steps"])
    begins_with_one = bool(values.get(IMAGE_SIZE) or values.get(HAS_MASK))
    if begins_with_one:
        steps = int(steps * float(values["prompt_strength"]))
    once = calibration.flops_of_pass(path, width, height)
    flops = steps * once
    words = f"{count} x {steps} steps at {width} x {height} pixels"
    refiner = refiner_steps(values) if _REFINER in roles else None
    if refiner is not None:
        left_out = 0 if refiner.share is None or begins_with_one else refiner.steps
        # The refiner counts at least as much as the main model, so it never reduces the estimate.
        each = max(once, calibration.flops_of_pass(manager.slot(_REFINER).path, width, height))
        flops += refiner.steps * each - left_out * once
        words += f" and {refiner.steps} steps of the refiner"
    guided = 2 if float(values["guidance_scale"]) > 1 else 1
    flops *= schedulers.passes_of_pictures(str(values["scheduler"])) * guided
    own = calibration.flops_of_decoding(path, width, height)
    small = _DECODER in roles and refiner is None
    decoder = manager.slot(_DECODER).path if small else path
    flops += calibration.flops_of_decoding(decoder, width, height) if small else own
    if begins_with_one:
        flops += own  # Encoding the image costs about as much.
    if _SAFETY in roles:
        flops += calibration.flops_of_check(manager.slot(_SAFETY).path)
    flops += _enlarging(manager, size, requested)
    return _Counted(count * flops, size[0] * size[1], words)


def _enlarging(manager: PipelineManager, drawn: tuple[int, int], requested: Any) -> float:
    if drawn == tuple(requested):
        return 0.0
    return native_size.enlarging_flops(manager.options, drawn, tuple(requested))


def _video(manager: PipelineManager, values: Mapping[str, Any], role: str, kind: str) -> _Counted:
    slot = manager.slot(role)
    path, requested = slot.path, (int(values["width"]), int(values["height"]))
    width, height = slot.drawn_size(requested)
    frames, count = int(values["num_frames"]), int(values["batch_size"])
    steps = int(values["num_inferences_steps"])
    if values.get(HAS_VIDEO):
        steps -= round(float(values["init_weight"]) * steps)
    once = calibration.flops_of_video_pass(path, kind, width, height, frames)
    flops = count * 2 * steps * once
    flops += count * frames * calibration.flops_of_decoding(path, width, height)
    flops += count * frames * _enlarging(manager, (width, height), requested)
    words = f"{count} x {steps} steps for {frames} frames of {width} x {height} pixels"
    return _Counted(flops, width * height, words, frames)
