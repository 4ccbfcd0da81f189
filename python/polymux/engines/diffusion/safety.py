"""The check of what a picture shows, by the model that Stable Diffusion was published with.

Rando et al., "Red-Teaming the Stable Diffusion Safety Filter", 2022, describes it: CLIP's view of
the picture is compared with that of words that nobody may name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

    from polymux.engines.base import EngineSink
    from polymux.engines.diffusion.pipelines import PipelineManager

_ROLE = "picture:safety"
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_DEVIATION = (0.26862954, 0.26130258, 0.27577711)


def check_of(
    manager: PipelineManager, sink: EngineSink, *, wanted: bool
) -> Callable[[Image], bool] | None:
    """Tells of a picture whether it may be shown; None where nothing is checked, and told."""
    if not wanted:
        return None
    if not manager.has(_ROLE):
        sink.log("nothing checks what the pictures show: no model for that is installed")
        return None
    checker = manager.safety_checker(_ROLE)
    side = int(checker.config.vision_config.image_size)

    def passes(picture: Image) -> bool:
        import numpy
        import torch

        seen = _seen(picture, side).to(checker.device, checker.dtype)
        with torch.inference_mode():
            _, flagged = checker(clip_input=seen, images=numpy.zeros((1, 1, 1, 3), numpy.float32))
        return not flagged[0]

    return passes


def _seen(picture: Image, side: int) -> Any:
    """The picture as CLIP sees it: its middle, in a square."""
    import numpy
    import torch
    from PIL import Image as Pictures

    scale = side / min(picture.size)
    size = max(side, round(picture.width * scale)), max(side, round(picture.height * scale))
    larger = picture.convert("RGB").resize(size, Pictures.Resampling.BICUBIC)
    left, top = (size[0] - side) // 2, (size[1] - side) // 2
    values = numpy.asarray(larger.crop((left, top, left + side, top + side)), numpy.float32) / 255
    mean, deviation = (numpy.asarray(one, numpy.float32) for one in (_MEAN, _DEVIATION))
    values = (values - mean) / deviation
    return torch.from_numpy(values.transpose(2, 0, 1)[None].copy())
