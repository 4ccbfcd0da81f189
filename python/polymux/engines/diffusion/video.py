"""Text to video and video to video: `generate_video`.

The model's directory names its pipeline: Wan, the text-to-video family of zeroscope, or
AnimateDiff. With `init_video`, generation starts from its frames. The fraction `init_weight` of the
steps is skipped: 1 keeps the video unchanged, and 0 ignores it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.engines.base import Output, Produced
from polymux.engines.diffusion import folders, schedulers
from polymux.engines.diffusion.image_files import FACTS, SAMPLES, stretched
from polymux.engines.diffusion.loras import check_finite
from polymux.engines.diffusion.native_size import Resizer
from polymux.engines.diffusion.pipelines import seed_of
from polymux.engines.diffusion.prompts import tell_of_length
from polymux.engines.diffusion.steps import Steps
from polymux.models.roles import VIDEO_PIPELINES, needed_roles
from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from polymux.engines.base import EngineSink, Request, Token
    from polymux.engines.diffusion.pipelines import PipelineManager
    from polymux.service.model import Upload

    Frames = NDArray[np.uint8]


class Family(NamedTuple):
    """Pipelines of diffusers with the same components.

    Attributes:
        text: Class for text to video.
        video: Class for video to video.
        is_old: Whether it calls ``callback`` instead of ``callback_on_step_end``.
        scheduler: Scheduler for its models; empty for the model's own.
    """

    text: str
    video: str
    is_old: bool = False
    scheduler: str = ""


_WAN = Family(*VIDEO_PIPELINES["wan"])
_TEXT_TO_VIDEO = Family(
    *VIDEO_PIPELINES["text_to_video"], is_old=True, scheduler="DPMSolverMultistepScheduler"
)
_ANIMATE = Family(*VIDEO_PIPELINES["animate"])
_FAMILIES = {
    kind: family
    for family in (_WAN, _TEXT_TO_VIDEO, _ANIMATE)
    for kind in (family.text, family.video)
}
#: Wan's transformer and decoder need sides that are multiples of at least this.
_WAN_GRID_PX = 16
#: Assumed compression of an MP4 of good quality relative to raw frames; rarely lower.
_COMPRESSED = 20


class Plan(NamedTuple):
    """The parameters of generating videos.

    Attributes:
        role: Role of the model.
        family: The pipelines.
        size: Requested width and height.
        drawn: Size of the frames before they are resized to `size`.
        frames: Number of frames of the output.
        worked_size: Size that the model generates: `drawn` rounded up to its grid.
        worked_frames: Number of frames that the model generates.
        begun_with: `frames` frames of `init_video` in requested size; None if it is not used.
        asked_steps: Steps of a complete denoising.
        steps: Steps that are run.
    """

    role: str
    family: Family
    size: tuple[int, int]
    drawn: tuple[int, int]
    frames: int
    worked_size: tuple[int, int]
    worked_frames: int
    begun_with: Frames | None
    asked_steps: int
    steps: int


def make(manager: PipelineManager, request: Request, sink: EngineSink, token: Token) -> Output:
    """Generate the videos of a request, one after another.

    Raises:
        BadRequestError: The model does not support so many frames.
        RequestTooLargeError: The frames would be too large.
        NoBackendError: A model or a package is missing.
        InternalServerError: The disk is full (code ``storage_full``).
    """
    values = request.values
    plan = _plan(manager, request, sink)
    seed = seed_of(values, sink)
    tell_of_length(manager.parts(plan.role), values, ("prompt", "negative_prompt"), sink)
    count = int(values["batch_size"])
    steps = Steps(sink, token, count * plan.steps)
    resizer = Resizer(manager.options, sink, token)
    files = []
    for number in range(count):
        frames = _painted(manager, plan, values, seed + number, steps, resizer)
        name = f"video-{number + 1}.mp4"
        fps = int(values["fps"])
        files.append(write_frames(frames, plan.size, plan.frames, fps, name, sink, token))
    metrics = steps.metrics | {"frames": float(plan.frames)}
    slot = manager.slot(plan.role)
    return Output(files, slot.version, metrics, slot.name)


def _plan(manager: PipelineManager, request: Request, sink: EngineSink) -> Plan:
    values = request.values
    role = needed_roles(request.operation, request.variant, values)[0]
    slot = manager.slot(role)
    slot.tell_of_substitute(sink)
    family = _FAMILIES[folders.kind_in_role(slot.path, slot.name, role)]
    size = int(values["width"]), int(values["height"])
    drawn = manager.drawn_size(slot, size)
    asked = int(values.get("num_inference_steps") or values["num_inferences_steps"])
    begun_with, left_out = _begun_with(values, asked, sink)
    frames = int(values["num_frames"]) if begun_with is None else len(begun_with)
    parts = manager.parts(role)
    grid_px, stride = _grid(family, parts)
    worked_size = (_up(drawn[0], grid_px), _up(drawn[1], grid_px))
    worked_frames = _up(frames - 1, stride) + 1
    _check_frames(worked_frames, parts)
    _tell_of_grid(drawn, worked_size, frames, worked_frames, sink)
    return Plan(
        role,
        family,
        size,
        drawn,
        frames,
        worked_size,
        worked_frames,
        begun_with,
        asked,
        asked - left_out,
    )


def _begun_with(
    values: Mapping[str, Any], asked: int, sink: EngineSink
) -> tuple[Frames | None, int]:
    """Return the initial frames, and how many steps are skipped because of them."""
    facts = values.get("init_video" + FACTS)
    if facts is None:
        return None, 0
    left_out = round(float(values["init_weight"]) * asked)
    if left_out == 0:
        sink.warn(f"init_weight={values['init_weight']:g}: too low, so init_video is not used")
        return None, 0
    import numpy

    file: Upload = values["init_video" + SAMPLES]
    shape = (facts["frames"], facts["height"], facts["width"], 3)
    frames = numpy.fromfile(file.path, numpy.uint8).reshape(shape)
    if len(frames) < int(values["num_frames"]):
        sink.warn(
            f"init_video: only {len(frames)} frames at {facts['fps']} frames/s instead of "
            f"{values['num_frames']}, so the output also has {len(frames)} frames"
        )
    return frames[: int(values["num_frames"])], left_out


def _grid(family: Family, parts: Mapping[str, Any]) -> tuple[int, int]:
    """Return the multiples for the sides, and for the number of frames after the first."""
    config = parts["vae"].config
    if family is not _WAN:
        return int(2 ** (len(config.block_out_channels) - 1)), 1
    cell_px = int(config.get("scale_factor_spatial") or 8)
    patch = int(parts["transformer"].config.patch_size[1])
    return max(_WAN_GRID_PX, cell_px * patch), int(config.get("scale_factor_temporal") or 4)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _check_frames(frames: int, parts: Mapping[str, Any]) -> None:
    """Reject more frames than the model's motion layers support."""
    config: Any = parts["unet"].config if "unet" in parts else {}
    most = config.get("motion_max_seq_length")
    if most is not None and frames > most:
        raise bad_request(f"num_frames={frames}: too large (allowed: {most})", "num_frames")


def _tell_of_grid(
    size: tuple[int, int],
    worked_size: tuple[int, int],
    frames: int,
    worked_frames: int,
    sink: EngineSink,
) -> None:
    if worked_size != size:
        sink.log(
            f"the model generates {worked_size[0]} x {worked_size[1]} pixels, which are cropped to "
            f"{size[0]} x {size[1]}"
        )
    if worked_frames != frames:
        sink.log(
            f"the model generates {worked_frames} frames, of which the first {frames} are kept"
        )


def _painted(
    manager: PipelineManager,
    plan: Plan,
    values: Any,
    seed: int,
    steps: Steps,
    resizer: Resizer,
) -> Iterator[Frames]:
    if plan.begun_with is not None and plan.steps == 0:
        return iter(plan.begun_with)
    own = manager.parts(plan.role)["scheduler"]
    if plan.family.scheduler:
        scheduler = schedulers.made(schedulers.Scheduler(plan.family.scheduler), own.config)
    else:
        scheduler = type(own).from_config(own.config)
    which = plan.family.text if plan.begun_with is None else plan.family.video
    with (
        manager.pipeline(which, plan.role, scheduler) as pipeline,
        steps.watching(pipeline, previews=manager.shows_previews),
    ):
        manager.prepare_decoder(pipeline.vae, plan.worked_size)
        arguments = _arguments(plan, values, manager.generator(seed), steps)
        made = pipeline(**arguments).frames[0]
    for one in made:  # One at a time to save memory.
        check_finite(one, manager.slot(plan.role).name, values)
    return _cut(made, plan, resizer)


def _arguments(plan: Plan, values: Any, generator: Any, steps: Steps) -> dict[str, Any]:
    named: dict[str, Any] = {
        "prompt": str(values["prompt"]),
        "negative_prompt": str(values.get("negative_prompt") or ""),
        "num_inference_steps": plan.asked_steps,
        "guidance_scale": float(values["guidance_scale"]),
        "generator": generator,
        "output_type": "np",
    }
    if plan.family.is_old:
        named |= {"callback": steps.legacy, "callback_steps": 1}
    else:
        named["callback_on_step_end"] = steps
    if plan.begun_with is not None:
        # Slightly more than the fraction, because pipelines round down to whole steps.
        strength = min(1.0, (plan.steps + 0.25) / plan.asked_steps)
        named |= {"video": _pictures(plan.begun_with, plan), "strength": strength}
    else:
        named["num_frames"] = plan.worked_frames
    if plan.begun_with is None or not plan.family.is_old:
        named |= {"width": plan.worked_size[0], "height": plan.worked_size[1]}
    return named


def _pictures(frames: Frames, plan: Plan) -> list[Any]:
    """Resize frames, and extend them to the model's grid by repeating borders and the last one."""
    import numpy
    from PIL import Image

    if plan.drawn != plan.size:
        small = (stretched(Image.fromarray(one), plan.drawn) for one in frames)
        frames = numpy.stack([numpy.asarray(one) for one in small])
    right = plan.worked_size[0] - frames.shape[2]
    below = plan.worked_size[1] - frames.shape[1]
    after = plan.worked_frames - len(frames)
    grown = numpy.pad(frames, ((0, after), (0, below), (0, right), (0, 0)), mode="edge")
    return [Image.fromarray(one) for one in grown]


def _cut(made: Any, plan: Plan, resizer: Resizer) -> Iterator[Frames]:
    """Yield frames of 8 bits per color in the requested size and number."""
    import numpy
    from PIL import Image

    width, height = plan.drawn
    for one in made[: plan.frames]:
        shown = one[:height, :width].astype(numpy.float32)
        frame = (shown.clip(0.0, 1.0) * 255.0).round().astype(numpy.uint8)
        if plan.drawn == plan.size:
            yield frame
        else:
            yield numpy.asarray(resizer.resized(Image.fromarray(frame), plan.size))


def write_frames(
    frames: Iterator[Frames],
    size: tuple[int, int],
    count: int,
    fps: int,
    name: str,
    sink: EngineSink,
    token: Token,
) -> Produced:
    """Write frames to an MP4 file. Cancellation is checked before each frame.

    Args:
        frames: RGB frames of 8 bits per color.
        size: Their width and height.
        count: About how many they are.
        fps: Frames per second.
        name: Suggested name of the file.
        sink: Provides the file.
        token: Cancellation.
    """
    import numpy

    from polymux.engines.media.engine import native_failures
    from polymux.media.video import write_video

    width, height = size
    path = sink.draft(width * height * 3 * count // _COMPRESSED)
    with native_failures():
        made = write_video(
            path,
            (numpy.ascontiguousarray(one).data for one in frames),
            width=width,
            height=height,
            fps=fps,
            cancel=token,
            overwrite=False,
        )
    if name.endswith("-1.mp4"):
        sink.log(f"encoded as {made.codec} by {made.encoder}")
    return Produced(path, "video/mp4", name)
