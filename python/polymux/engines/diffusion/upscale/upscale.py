"""Upscaling with added detail: variant A of `upscale_image`.

Each pass upscales by at most 2 and adds detail with Stable Diffusion 1.5 and the tile ControlNet,
in overlapping tiles that are averaged at each step. The implementation follows the papers named in
`tiles` and `tiled_diffusion`, and the API: its fields have the meaning of the Replicate model after
which the variant is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import Output
from polymux.engines.diffusion.image_files import picture_of
from polymux.engines.diffusion.prompts import encoded, parsed
from polymux.engines.diffusion.steps import Steps
from polymux.engines.diffusion.upscale import images, models
from polymux.engines.diffusion.upscale.plan import MAX_PIXELS, calls, check, planned, units
from polymux.engines.diffusion.upscale.tiled_diffusion import Painter
from polymux.service.errors import bad_request, status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from polymux.engines.base import EngineSink, Request, Token
    from polymux.engines.diffusion.pipelines import ModelSlot, PipelineManager
    from polymux.engines.diffusion.prompts import Prompt
    from polymux.engines.diffusion.upscale.plan import Pass, Plan

    Pixels = NDArray[np.uint8]

__all__ = ["make", "units"]


def make(manager: PipelineManager, request: Request, sink: EngineSink, token: Token) -> Output:
    """Upscale the image of a request and add detail.

    Args:
        manager: Models and device; the caller holds its lock. Options used here:
            ``max_detail_pixels``, the maximum pixels of the output (64,000,000), ``loras``, name to
            path of the weights for ``<lora:name:weight>``, and those of `images.Enlarger`.
        request: The request.
        sink: Receives progress at each tile of each step, and messages about ignored or replaced
            parts.
        token: Checked at each tile.

    Returns:
        A list of one file.

    Raises:
        BadRequestError: The scheduler is unknown, or weights from the request are invalid.
        RequestTooLargeError: The output would be too large.
        NoBackendError: A model is missing, or the request needs an unsupported feature.
        Cancelled: `token` was canceled.
    """
    import numpy

    values = request.values
    picture = picture_of(request, "image")
    if picture is None:
        raise bad_request("image: missing. Send the image in this field", param="image")
    if values.get("handfix", "disabled") != "disabled":
        raise status_error(
            errors.NoBackendError,
            f"handfix={values['handfix']!r}: repairing hands is not supported. Omit this field",
            param="handfix",
        )
    plan = planned(values, *picture.size)
    most = int(manager.options.get("max_detail_pixels", MAX_PIXELS))
    check(plan, str(values.get("output_format", "png")), most)
    slot = models.chosen(manager, values, sink)
    work = _Work(manager, request, plan, slot, sink, token)
    made = work.done(numpy.asarray(picture))
    file = images.produced(made, values, plan, slot.name, sink)
    metrics = {"width": float(plan.size[0]), "height": float(plan.size[1])} | work.steps.metrics
    return Output([file], slot.version, metrics, slot.name)


class _Work:
    """The passes of one request."""

    def __init__(
        self,
        manager: PipelineManager,
        request: Request,
        plan: Plan,
        slot: ModelSlot,
        sink: EngineSink,
        token: Token,
    ) -> None:
        self._manager = manager
        self._member = slot
        self._values = request.values
        self._plan = plan
        self._sink = sink
        self._around = self._values.get("pattern") is True
        self._mask = picture_of(request, "mask")
        self._enlarger = images.Enlarger(manager.options, sink, token)
        self.steps = Steps(sink, token, calls(self._values, plan))

    def done(self, pixels: Pixels) -> Pixels:
        pixels = images.resized(pixels, self._plan.start, around=self._around)
        if not any(one.steps for one in self._plan.passes):
            self._sink.log("creativity=0: the image is upscaled without adding detail")
            for one in self._plan.passes:
                pixels = self._passed(pixels, one, None)
        else:
            pixels = self._painted(pixels)
        sharpen = float(self._values.get("sharpen", 0))
        return images.sharpened(pixels, sharpen, around=self._around)

    def _painted(self, pixels: Pixels) -> Pixels:
        values = self._values
        prompts = _prompts(values, self._sink)
        # LoRA weights in the negative prompt count too: one model is used for both prompts.
        wanted = [one for prompt in prompts for one in prompt.loras]
        manager, sink = self._manager, self._sink
        with (
            models.pipeline(manager, self._member, values, wanted, sink) as pipeline,
            self.steps.watching(pipeline, previews=manager.shows_previews),
        ):
            guided = float(values.get("dynamic", 6)) > 1
            words = encoded(
                prompts if guided else prompts[1:],
                pipeline.tokenizer,
                pipeline.text_encoder,
                manager.device,
                sink.warn,
            )
            painter = Painter(manager, pipeline, self._member.name, values, words, self.steps)
            for one in self._plan.passes:
                pixels = self._passed(pixels, one, painter)
        return pixels

    def _passed(self, pixels: Pixels, one: Pass, painter: Painter | None) -> Pixels:
        import numpy

        if painter is None or one.steps == 0:
            return self._enlarger.enlarged(pixels, one.size, around=self._around)
        if self._around:
            # Padding would break the pattern at the edges, so the image is stretched a little
            # instead.
            canvas = self._enlarger.enlarged(pixels, one.canvas, around=True)
            before = images.resized(canvas, one.size, around=True)
            made = images.resized(painter.painted(canvas, one), one.size, around=True)
        else:
            before = self._enlarger.enlarged(pixels, one.size)
            added = one.canvas[1] - one.size[1], one.canvas[0] - one.size[0]
            canvas = numpy.pad(before, ((0, added[0]), (0, added[1]), (0, 0)), "edge")
            made = painter.painted(canvas, one)[: one.size[1], : one.size[0]]
        if self._mask is None:
            return made
        return images.kept(made, before, self._mask)


def _prompts(values: Mapping[str, Any], sink: EngineSink) -> list[Prompt]:
    prompts = [parsed(str(values.get(name) or "")) for name in ("negative_prompt", "prompt")]
    for prompt in prompts:
        for line in prompt.left_out:
            sink.warn(line)
    return prompts
