"""Pictures as they come to diffusion, and as they leave it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from polymux.engines.base import Produced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Request
    from polymux.service.model import Upload

#: Beside the name of a request's file: its samples, and what is known of them. The media engine has
#: opened it; see `polymux.engines.diffusion.backend`.
SAMPLES, FACTS = "_samples", "_facts"
#: What models are made for.
GRID_PX = 8


def picture_of(request: Request, name: str) -> Image | None:
    """A request's picture, in colours and opaque; None where it has none."""
    facts = request.values.get(name + FACTS)
    if facts is None:
        return None
    import numpy
    from PIL import Image

    file: Upload = request.values[name + SAMPLES]
    shape = (facts["height"], facts["width"], facts["channels"])
    samples = numpy.fromfile(file.path, numpy.uint8).reshape(shape)
    return Image.fromarray(samples[:, :, :3].copy())


def on_grid(size: tuple[int, int], grid_px: int = GRID_PX) -> tuple[int, int]:
    """The largest width and height on the model's grid that are not above these."""
    width, height = size
    return max(grid_px, width // grid_px * grid_px), max(grid_px, height // grid_px * grid_px)


def png(picture: Image, words: Mapping[str, str], sink: EngineSink, file_name: str) -> Produced:
    """Writes a picture, with texts beside it.

    Args:
        picture: What to write.
        words: Keyword to text, Latin-1 or not: PNG's ``iTXt`` takes all.
        sink: Where the file goes.
        file_name: What to save it as.
    """
    from PIL.PngImagePlugin import PngInfo

    told = PngInfo()
    for name, text in words.items():
        told.add_itxt(name, text)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", pnginfo=told)
    return written(buffer.getvalue(), "image/png", file_name, sink)


def written(data: bytes, content_type: str, file_name: str, sink: EngineSink) -> Produced:
    """A file of these bytes.

    Raises:
        InternalServerError: The disk is full (code ``storage_full``).
        StoreError: It cannot be written.
    """
    from polymux.engines.media.engine import write_new

    path = sink.draft(len(data))
    write_new(path, data)
    return Produced(path, content_type, file_name)


def parameters(values: Mapping[str, Any], model: str, seed: int, size: tuple[int, int]) -> str:
    """What a picture was made with, as programs that read such pictures know it.

    The form is that of AUTOMATIC1111's web page: the prompt, the negative prompt, then a line.
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
    told = (f"{name}: {one}" for name, one in facts.items() if one is not None)
    return "\n".join([*lines, ", ".join(told)])
