"""Images at the input and output of diffusion: safety check, watermark and files.

The safety check is the model that was published with Stable Diffusion. It compares CLIP's embedding
of the image with embeddings of secret concepts; see Rando et al., "Red-Teaming the Stable Diffusion
Safety Filter", 2022. The invisible watermark is that of Stable Diffusion XL's programs: 48 bits,
method "dwtDct" of the package invisible-watermark.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from polymux.engines.base import Produced, missing_package, samples_of
from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Request
    from polymux.engines.diffusion.pipelines import PipelineManager

#: Suffixes of a file's field name: its samples, and facts about them. The media engine has opened
#: the file; see `polymux.engines.diffusion.backend`.
SAMPLES, FACTS = "_samples", "_facts"
#: Models need sides that are multiples of this.
GRID_PX = 8
_SMALLEST_PX = 64
_SAFETY_ROLE = "picture:safety"
#: Mean and standard deviation of CLIP's training images.
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_DEVIATION = (0.26862954, 0.26130258, 0.27577711)
#: The bits that Stable Diffusion XL's programs embed.
_WATERMARK = 0b101100111110110010010000011110111011000110011110
#: The watermark does not fit in smaller images.
_MIN_MARKED_PX = 256


def picture_of(request: Request, name: str) -> Image | None:
    """Return an image of the request as opaque RGB; None if it is missing."""
    facts = request.values.get(name + FACTS)
    if facts is None:
        return None
    from PIL import Image

    samples = samples_of(request.values[name + SAMPLES], facts)
    return Image.fromarray(samples[:, :, :3].copy())


def grey(mask: Image, size: tuple[int, int]) -> Image:
    """Convert a mask to grayscale and stretch it to a size."""
    from PIL import Image as Pictures

    plain = mask.convert("L")
    return plain if plain.size == size else plain.resize(size, Pictures.Resampling.BILINEAR)


def stretched(picture: Image, size: tuple[int, int]) -> Image:
    """Stretch an image to a size with the Lanczos filter."""
    from PIL import Image as Pictures

    if picture.size == size:
        return picture
    return picture.resize(size, Pictures.Resampling.LANCZOS)


def composite(made: Image, image: Image, mask: Image) -> Image:
    """Restore the mask's black area exactly, because decoders change all pixels slightly."""
    from PIL import Image as Pictures

    return Pictures.composite(made, image.convert("RGB"), mask)


def on_grid(size: tuple[int, int], grid_px: int = GRID_PX) -> tuple[int, int]:
    """Round a size down to multiples of the grid, at least one."""
    width, height = size
    return max(grid_px, width // grid_px * grid_px), max(grid_px, height // grid_px * grid_px)


def png(picture: Image, words: Mapping[str, str], sink: EngineSink, file_name: str) -> Produced:
    """Write an image as PNG with text metadata.

    Args:
        picture: The image.
        words: Keyword to text. Any Unicode text is allowed (``iTXt`` chunks).
        sink: Provides the file.
        file_name: Suggested name.
    """
    from PIL.PngImagePlugin import PngInfo

    metadata = PngInfo()
    for name, text in words.items():
        metadata.add_itxt(name, text)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", pnginfo=metadata)
    return written(buffer.getvalue(), "image/png", file_name, sink)


def written(data: bytes, content_type: str, file_name: str, sink: EngineSink) -> Produced:
    """Write bytes to an output file.

    Raises:
        InternalServerError: The disk is full (code ``storage_full``).
        StoreError: The file cannot be written.
    """
    from polymux.engines.media.engine import write_new

    path = sink.draft(len(data))
    write_new(path, data)
    return Produced(path, content_type, file_name)


def parameters(values: Mapping[str, Any], model: str, seed: int, size: tuple[int, int]) -> str:
    """Describe the generation parameters in the format of AUTOMATIC1111's web UI.

    The text has the prompt, the negative prompt, and a line of parameters. Other programs read it.
    """
    lines = [str(values["prompt"])]
    if values.get("negative_prompt"):
        lines.append(f"Negative prompt: {values['negative_prompt']}")
    begun_with_one = values.get("image" + FACTS) is not None
    facts = {
        "Steps": values.get("num_inference_steps"),
        "Sampler": values.get("scheduler"),
        "CFG scale": values.get("guidance_scale"),
        "Seed": seed,
        "Size": f"{size[0]}x{size[1]}",
        "Model": model,
        "Denoising strength": values.get("prompt_strength") if begun_with_one else None,
        "Version": "polymux",
    }
    parts = (f"{name}: {value}" for name, value in facts.items() if value is not None)
    return "\n".join([*lines, ", ".join(parts)])


def safety_check(
    manager: PipelineManager, sink: EngineSink, *, wanted: bool
) -> Callable[[Image], bool] | None:
    """Return a function that tells whether an image is safe; None if nothing is checked."""
    if not wanted:
        return None
    if not manager.has(_SAFETY_ROLE):
        sink.warn("images are not checked: no safety checker is installed")
        return None
    from diffusers.pipelines.stable_diffusion import safety_checker as module

    checker = manager.part(_SAFETY_ROLE, module.StableDiffusionSafetyChecker).to(manager.device)
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
    """Convert an image to CLIP's input: the center square."""
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


def check_size(image: Image) -> None:
    """Check that an initial image is large enough.

    Raises:
        BadRequestError: A side is below 64 pixels.
    """
    if min(image.size) < _SMALLEST_PX:
        raise bad_request(
            f"image: too small (got {image.width} x {image.height} pixels, allowed at least "
            f"{_SMALLEST_PX} on each side)",
            param="image",
        )


def watermark(*, wanted: bool, size: tuple[int, int], sink: EngineSink) -> Callable[[Image], Image]:
    """Return a function that adds the watermark, or returns the image unchanged if not possible.

    Raises:
        NoBackendError: The package is missing.
    """
    if not wanted:
        return _unmarked
    if min(size) < _MIN_MARKED_PX:
        sink.warn(
            f"apply_watermark: ignored, because the image is smaller than {_MIN_MARKED_PX} pixels"
        )
        return _unmarked
    return _watermark()


def _watermark() -> Callable[[Image], Image]:
    try:
        from imwatermark import WatermarkEncoder
    except ImportError:
        failure = missing_package("apply_watermark", "invisible-watermark", "diffusion")
        failure.param = "apply_watermark"
        raise failure from None
    import numpy
    from PIL import Image as Pictures

    encoder = WatermarkEncoder()
    encoder.set_watermark("bits", [int(bit) for bit in f"{_WATERMARK:048b}"])

    def marked(picture: Image) -> Image:
        # The package uses BGR order.
        blue_first = numpy.asarray(picture.convert("RGB"))[:, :, ::-1]
        made = encoder.encode(numpy.ascontiguousarray(blue_first), "dwtDct")
        return Pictures.fromarray(numpy.ascontiguousarray(made[:, :, ::-1]))

    return marked


def _unmarked(picture: Image) -> Image:
    return picture
