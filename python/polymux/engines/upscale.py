"""Upscaling with Real-ESRGAN's networks on ncnn, tile by tile, by any factor, keeping alpha.

https://github.com/xinntao/Real-ESRGAN. The network upscales by its own factor. It runs again until
the requested factor is reached, and the Lanczos filter resizes the result to the requested size.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.text import shown
from polymux.engines.base import (
    Engine,
    Output,
    Produced,
    hash_of,
    missing_package,
    model_name,
    samples_of,
    threads,
)
from polymux.service.errors import engine_failed, status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from polymux.engines.base import EngineSink, Request, Token

    Floats = NDArray[np.float32]

_TILE = 192
_OVERLAP = 10
#: Side of the tile that is used to detect the network's factor.
_TRIAL = 16
#: Maximum pixels of an output of the network, and of the result.
MAX_PIXELS = 100_000_000
_OPAQUE = 4


def passes(factor: int, scale: float, pixels: int, max_pixels: int = MAX_PIXELS) -> int:
    """Return how often a network runs to reach a scale.

    Args:
        factor: The network's factor.
        scale: The requested factor. One pass is the minimum.
        pixels: Pixels of the input.
        max_pixels: Maximum pixels of a pass's output; passes with a larger one are not counted.

    Example:
        >>> from polymux.engines.upscale import passes
        >>> passes(2, 4, 10_000), passes(2, 5, 10_000), passes(4, 0.5, 10_000)
        (2, 3, 1)
        >>> passes(2, 5, 2_000_000), passes(4, 4, 10_000_000)
        (2, 0)
    """
    count, reached = 0, 1
    while count == 0 or (factor > 1 and reached < scale):
        reached *= factor
        if pixels * reached**2 > max_pixels:
            break
        count += 1
    return count


class UpscaleEngine(Engine):
    """An upscaling engine with one network; it processes one image at a time."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Load the network ``model``: a ``.param`` file with its ``.bin`` file next to it.

        Further options: ``factor`` (checked against the network's factor), ``input`` and ``output``
        (names of its blobs, default ``"data"`` and ``"output"``), ``tile``, and ``max_pixels`` of
        the output.

        Raises:
            NoBackendError: The package or the network is missing, or the network does not upscale
                by an integer factor, or not by ``factor``.
        """
        try:
            import ncnn
        except ImportError as error:
            raise missing_package("upscaling", "ncnn", "upscale", error) from None
        path = Path(str(options.get("model", ""))).expanduser()
        weights = path.with_suffix(".bin")
        if not path.is_file() or not weights.is_file():
            raise status_error(
                errors.NoBackendError,
                f"upscaling network not found: {path.name!r}. Set the engine's option `model` to "
                "the path of a .param file with its .bin file next to it",
            )
        self._ncnn = ncnn
        self._network = ncnn.Net()
        self._network.opt.use_vulkan_compute = False
        self._network.opt.num_threads = threads()
        if self._network.load_param(os.fspath(path)) or self._network.load_model(
            os.fspath(weights)
        ):
            raise engine_failed(f"cannot load the upscaling network {path.name!r}")
        self._input = str(options.get("input", "data"))
        self._output = str(options.get("output", "output"))
        self._factor = self._learned_factor(path.name, options.get("factor"))
        self._tile = int(options.get("tile", _TILE))
        self._max_pixels = int(options.get("max_pixels", MAX_PIXELS))
        self._version = hash_of(weights)
        self._name = model_name(options, path.stem)
        return {"model": self._name, "version": self._version, "factor": self._factor}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        from polymux.engines.media.engine import write_new

        scale = float(request.values.get("scale", self._factor))
        pixels = samples_of(request.values["pixels_0"], request.values["pictures"][0])
        height, width = pixels.shape[:2]
        size = max(1, round(width * scale)), max(1, round(height * scale))
        count = passes(self._factor, scale, width * height, self._max_pixels)
        largest = max(size[0] * size[1], width * height * self._factor**2)
        if largest > self._max_pixels:  # Also if not even one pass is possible.
            raise status_error(
                errors.RequestTooLargeError,
                f"scale={scale:g}: output too large (got {largest / 1e6:.0f} megapixels, allowed "
                f"{self._max_pixels / 1e6:.0f} megapixels). Use a smaller image or scale",
                param="scale",
            )
        made = self._enlarged(pixels, count, sink, token)
        self._describe(count, made, size, sink)
        encoded = _encoded(_resized(made, size), deep=pixels.dtype.itemsize == 2)
        path = sink.draft(len(encoded))
        write_new(path, encoded)
        metrics = {"width": float(size[0]), "height": float(size[1])}
        return Output(Produced(path, "image/png", "upscaled.png"), self._version, metrics)

    def _describe(self, count: int, made: Floats, size: tuple[int, int], sink: EngineSink) -> None:
        """Log which network ran how often, and how its output is resized."""
        often = "1 pass" if count == 1 else f"{count} passes"
        sink.log(f"upscaled by {self._factor**count} with {self._name} in {often}")
        height, width = made.shape[:2]
        words = f"with the Lanczos filter from {width} x {height} to {size[0]} x {size[1]} pixels"
        if size[0] > width or size[1] > height:
            reason = (
                f"another pass of the network would exceed {self._max_pixels / 1e6:g} megapixels"
                if self._factor > 1
                else "the network does not upscale"
            )
            sink.warn(f"scale: enlarged {words}, because {reason}")
        elif size != (width, height):
            sink.log(f"reduced {words}")

    def _learned_factor(self, name: str, configured: object) -> int:
        """Detect the network's factor with a small tile, because its files do not state it.

        A wrong factor would crop every image, or leave most of it black.
        """
        import numpy

        shape = self._of_network(numpy.full((3, _TRIAL, _TRIAL), 0.5, numpy.float32)).shape
        factor = shape[1] // _TRIAL if len(shape) == 3 else 0
        if factor < 1 or shape != (3, factor * _TRIAL, factor * _TRIAL):
            raise status_error(
                errors.NoBackendError,
                f"network {name!r} converts 3 x {_TRIAL} x {_TRIAL} samples to "
                f"{' x '.join(map(str, shape))}. Use a network that upscales by an integer factor",
            )
        if configured is not None and (isinstance(configured, bool) or configured != factor):
            raise status_error(
                errors.NoBackendError,
                f"factor={shown(configured)}: network {name!r} upscales by {factor}. Set the "
                f"engine's option `factor = {factor}`, or omit it",
            )
        return factor

    def _of_network(self, piece: Floats) -> Floats:
        """Run the network on samples of colors, rows, columns."""
        import numpy

        extractor = self._network.create_extractor()
        extractor.input(self._input, self._ncnn.Mat(piece))
        status, found = extractor.extract(self._output)
        if status != 0:
            raise engine_failed(
                f"upscaling failed: the neural network cannot process a tile (ncnn status {status})"
            )
        return numpy.array(found)

    def _enlarged(self, pixels: Any, count: int, sink: EngineSink, token: Token) -> Floats:
        """Upscale all channels `count` times, from 0 to 1. Alpha is processed as grayscale."""
        import numpy

        top = 255.0 if pixels.dtype.itemsize == 1 else 65535.0
        values = numpy.asarray(pixels, numpy.float32) / top
        channels = values.shape[2]
        has_alpha = channels in (2, _OPAQUE)
        tiles = self._tiles(values.shape[:2], count) * (2 if has_alpha else 1)
        done = 0

        def report() -> None:
            nonlocal done
            done += 1
            sink.report(done / tiles)

        colours = values[:, :, :3] if channels >= 3 else numpy.repeat(values[:, :, :1], 3, axis=2)
        made = self._repeated(colours, count, token, report)
        if channels < 3:
            made = made.mean(axis=2, keepdims=True)
        if has_alpha:
            alpha = numpy.repeat(values[:, :, -1:], 3, axis=2)
            larger = self._repeated(alpha, count, token, report)
            made = numpy.concatenate((made, larger.mean(axis=2, keepdims=True)), axis=2)
        return made

    def _tiles(self, size: tuple[int, int], count: int) -> int:
        """Return how many tiles all passes have for one image of colors."""
        scales = [self._factor**number for number in range(count)]
        return sum(
            math.ceil(size[0] * one / self._tile) * math.ceil(size[1] * one / self._tile)
            for one in scales
        )

    def _repeated(
        self, colours: Floats, count: int, token: Token, report: Callable[[], object]
    ) -> Floats:
        import numpy

        for _ in range(count):
            colours = self._tiled(colours, token, report)
            # The values exceed these bounds at edges, which the next pass or resizing would widen.
            numpy.clip(colours, 0.0, 1.0, out=colours)
        return colours

    def _tiled(self, colours: Floats, token: Token, report: Callable[[], object]) -> Floats:
        """Upscale by the network's factor; calls `report` after each tile."""
        import numpy

        height, width = colours.shape[:2]
        made = numpy.empty((height * self._factor, width * self._factor, 3), numpy.float32)
        rows, columns = math.ceil(height / self._tile), math.ceil(width / self._tile)
        for number in range(rows * columns):
            token.check()
            top, left = number // columns * self._tile, number % columns * self._tile
            self._one_tile(colours, made, top, left)
            report()
        return made

    def _one_tile(self, colours: Floats, made: Floats, top: int, left: int) -> None:
        import numpy

        height, width = colours.shape[:2]
        bottom, right = min(top + self._tile, height), min(left + self._tile, width)
        above, before = max(0, top - _OVERLAP), max(0, left - _OVERLAP)
        below, behind = min(height, bottom + _OVERLAP), min(width, right + _OVERLAP)
        piece = numpy.ascontiguousarray(colours[above:below, before:behind].transpose(2, 0, 1))
        larger = self._of_network(piece).transpose(1, 2, 0)
        factor = self._factor
        inner = larger[
            (top - above) * factor : (bottom - above) * factor,
            (left - before) * factor : (right - before) * factor,
        ]
        made[top * factor : bottom * factor, left * factor : right * factor] = inner


def _resized(made: Floats, size: tuple[int, int]) -> Floats:
    """Resize to the width and height, with samples from 0 to 1."""
    import numpy
    from PIL import Image

    planes = []
    for channel in range(made.shape[2]):
        plane = Image.fromarray(made[:, :, channel])
        if plane.size != size:
            plane = plane.resize(size, Image.Resampling.LANCZOS)
        planes.append(numpy.clip(numpy.asarray(plane), 0.0, 1.0))
    return numpy.stack(planes, axis=2)


def _encoded(made: Floats, *, deep: bool) -> bytes:
    """Encode as PNG with 8 or 16 bits per sample."""
    import io

    import numpy
    from PIL import Image

    channels = made.shape[2]
    if deep and channels > 1:
        # Pillow cannot write 16-bit colors. OpenCV has read them, so it is installed.
        import cv2

        values = numpy.round(made * 65535).astype(numpy.uint16)
        order = cv2.COLOR_RGBA2BGRA if channels == _OPAQUE else cv2.COLOR_RGB2BGR
        done, found = cv2.imencode(".png", cv2.cvtColor(values, order))
        if not done:
            raise engine_failed("cannot encode the image as PNG")
        return bytes(found)
    kind, top = (numpy.uint16, 65535) if deep else (numpy.uint8, 255)
    values = numpy.round(made * top).astype(kind)
    buffer = io.BytesIO()
    Image.fromarray(values[:, :, 0] if channels == 1 else values).save(buffer, "PNG")
    return buffer.getvalue()
