"""Image processing around upscaling: resizing, sharpening and writing of files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.engines.diffusion.image_files import grey, parameters, png, written
from polymux.engines.upscale import UpscaleEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Produced, Token
    from polymux.engines.diffusion.upscale.plan import Plan, Size

    Pixels = NDArray[np.uint8]

_QUALITY = 95
#: Pixels beyond the edge of a seamless pattern that a filter uses.
_MARGIN_PX = 16
#: Larger outputs of the network are not created; Lanczos upscales instead.
_MAX_ENLARGED_PIXELS = 100_000_000
#: Rows that are sharpened at once, which limits memory for floats.
_ROWS = 256


def resized(pixels: Pixels, size: Size, *, around: bool = False) -> Pixels:
    """Resize an image with the Lanczos filter.

    Args:
        pixels: Rows, columns, colors.
        size: New width and height.
        around: Whether opposite edges are connected (a seamless pattern).
    """
    height, width = pixels.shape[:2]
    if (width, height) == size:
        return pixels
    margin = _MARGIN_PX if around else 0
    return _lanczos(_with_margin(pixels, margin), size, margin, (width, height))


class Enlarger:
    """Upscales images before detail is added.

    Args:
        options: Options of the manager: ``upscaler``, path of the ``.param`` file of a Real-ESRGAN
            network for ncnn with its ``.bin`` file next to it (default: Lanczos filter), and
            ``upscaler_factor``, the network's factor (default: detected).
        sink: Receives progress.
        token: Cancellation.

    Raises:
        NoBackendError: The network or its package is missing, or the factor is wrong.
    """

    def __init__(self, options: Mapping[str, Any], sink: EngineSink, token: Token) -> None:
        self._sink, self._token = sink, token
        path = options.get("upscaler")
        self._factor = 1
        self._network: Network | None = None
        if path:
            self._network = Network()
            network_options = {"model": str(path), "factor": options.get("upscaler_factor")}
            self._factor = self._network.load(network_options)["factor"]
            sink.log(f"upscaling with {Path(str(path)).stem} before adding detail")

    def enlarged(self, pixels: Pixels, size: Size, *, around: bool = False) -> Pixels:
        """Resize an image with the network, or with Lanczos if it does not get larger.

        Args:
            pixels: Rows, columns, colors.
            size: New width and height.
            around: Whether opposite edges are connected (a seamless pattern).

        Raises:
            Cancelled: The request was canceled.
        """
        height, width = pixels.shape[:2]
        if self._network is None or (size[0] <= width and size[1] <= height):
            return resized(pixels, size, around=around)
        margin = _MARGIN_PX if around else 0
        wide = _with_margin(pixels, margin)
        if wide.shape[0] * wide.shape[1] * self._factor**2 > _MAX_ENLARGED_PIXELS:
            self._sink.warn(
                f"{width} x {height} pixels are too large for the network: using the Lanczos filter"
            )
            return resized(pixels, size, around=around)
        larger = self._network.enlarged(wide, self._token)
        factor = self._factor
        return _lanczos(larger, size, margin * factor, (width * factor, height * factor))


class Network(UpscaleEngine):
    """The upscaling engine with samples as input and output."""

    def enlarged(self, pixels: Pixels, token: Token) -> Pixels:
        """Upscale by the network's factor, tile by tile."""
        import numpy

        colours = pixels.astype(numpy.float32) / numpy.float32(255)
        made = self._tiled(colours, token, lambda: None)
        return numpy.rint(numpy.clip(made, 0, 1) * 255).astype(numpy.uint8)


def sharpened(pixels: Pixels, amount: float, *, around: bool = False) -> Pixels:
    """Sharpen an image with a 3 x 3 kernel.

    The center of the kernel is ``1 + 0.8 amount``, the others are ``-amount / 10``.

    Args:
        pixels: Rows, columns, colors.
        amount: From 0 (no change) to 10.
        around: Whether opposite edges are connected; else edges are extended.
    """
    import numpy

    if amount == 0:
        return pixels
    wide = numpy.pad(pixels, ((1, 1), (1, 1), (0, 0)), "wrap" if around else "edge")
    made = numpy.empty_like(pixels)
    for top in range(0, len(pixels), _ROWS):
        piece = wide[top : top + _ROWS + 2].astype(numpy.float32)
        rows, columns = len(piece) - 2, pixels.shape[1]
        # The sum includes the center, so its share is added back.
        total = sum(
            piece[down : down + rows, right : right + columns]
            for down in range(3)
            for right in range(3)
        )
        sharp = piece[1:-1, 1:-1] * (1 + 0.9 * amount) - numpy.asarray(total) * (amount / 10)
        made[top : top + rows] = numpy.clip(numpy.rint(sharp), 0, 255).astype(numpy.uint8)
    return made


def kept(painted: Pixels, before: Pixels, mask: Image) -> Pixels:
    """Keep the pixels from before where the mask is white.

    Args:
        painted: The new image as rows, columns, colors.
        before: The image before, with the same size.
        mask: Mask of any size, which is stretched; gray values mix both images.
    """
    import numpy
    from PIL import Image as Pictures

    share = grey(mask, (painted.shape[1], painted.shape[0]))
    return numpy.asarray(
        Pictures.composite(Pictures.fromarray(before), Pictures.fromarray(painted), share)
    )


def produced(
    pixels: Pixels, values: Mapping[str, Any], plan: Plan, model: str, sink: EngineSink
) -> Produced:
    """Write an image to a file in the requested format.

    Args:
        pixels: Rows, columns, colors.
        values: Request fields.
        plan: The plan of the request.
        model: Name of the model.
        sink: Provides the file.
    """
    from PIL import Image as Pictures

    picture = Pictures.fromarray(pixels)
    kind = str(values.get("output_format", "png"))
    if kind == "png":
        fields = {
            "prompt": values.get("prompt", ""),
            "negative_prompt": values.get("negative_prompt"),
            "num_inference_steps": values.get("num_inference_steps"),
            "scheduler": values.get("scheduler"),
            "guidance_scale": values.get("dynamic"),
            "prompt_strength": values.get("creativity"),
            # A value here makes `parameters` include the strength.
            "image_facts": True,
        }
        words = parameters(fields, model, plan.passes[0].seed, plan.size)
        return png(picture, {"parameters": words, "Software": "polymux"}, sink, "detailed.png")
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG" if kind == "jpg" else "WEBP", quality=_QUALITY)
    content_type = "image/jpeg" if kind == "jpg" else "image/webp"
    return written(buffer.getvalue(), content_type, f"detailed.{kind}", sink)


def _with_margin(pixels: Pixels, margin: int) -> Pixels:
    import numpy

    if not margin:
        return pixels
    return numpy.pad(pixels, ((margin, margin), (margin, margin), (0, 0)), "wrap")


def _lanczos(pixels: Pixels, size: Size, margin: int, inner: Size) -> Pixels:
    """Resize the area inside a margin. The filter also uses the margin."""
    import numpy
    from PIL import Image as Pictures

    box = (margin, margin, margin + inner[0], margin + inner[1])
    picture = Pictures.fromarray(pixels).resize(size, Pictures.Resampling.LANCZOS, box=box)
    return numpy.asarray(picture)
