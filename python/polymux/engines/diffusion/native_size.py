"""Generation at a model's native size, and resizing to the requested one.

Models generate poor images at sizes that they were not trained for. Models with a native size
generate at about its number of pixels, in the aspect ratio nearest to the requested one.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.diffusion.upscale.images import Network

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Token

    Size = tuple[int, int]

#: Weight of the aspect ratio relative to the number of pixels.
_RATIO_WEIGHT = 2.0
#: Bytes per number in the files of ncnn networks, which have half precision.
_NETWORK_NUMBER_BYTES = 2


def drawn_size(native: Size, size: Size, grid_px: int) -> Size:
    """Return the size at which a model generates an image.

    Args:
        native: The model's native size. Outside of the grid, a size near it is taken.
        size: The requested size.
        grid_px: Both sides must be multiples of it.

    Example:
        >>> from polymux.engines.diffusion.native_size import drawn_size
        >>> drawn_size((64, 64), (512, 512), 16), drawn_size((64, 64), (1280, 720), 16)
        ((64, 64), (80, 48))
    """
    ratio, area = size[0] / size[1], native[0] * native[1]
    is_on_grid = native[0] % grid_px == native[1] % grid_px == 0
    if is_on_grid and native[0] * size[1] == native[1] * size[0]:
        return native

    def cost(one: Size) -> float:
        off = abs(math.log(one[0] / one[1] / ratio))
        return _RATIO_WEIGHT * off + abs(math.log(one[0] * one[1] / area))

    widest = math.ceil(math.sqrt(area * ratio) * 2 / grid_px) + 1
    sizes = (
        (width * grid_px, height * grid_px)
        for width in range(1, widest + 1)
        for height in {max(1, math.floor(width / ratio)), math.ceil(width / ratio)}
    )
    return min(sizes, key=cost)


def drawn_mask(mask: Image, size: Size, cell_px: int) -> Image:
    """Return a mask for generation at another size.

    Each latent cell with any white is white. The mask of the request then selects the pixels.

    Args:
        mask: Grayscale mask.
        size: The size at which the model generates.
        cell_px: Pixels per latent cell.
    """
    import numpy
    from PIL import Image as Pictures

    samples = numpy.asarray(mask)
    for axis in (0, 1):
        cells = max(1, size[1 - axis] // cell_px)
        starts = numpy.arange(cells) * samples.shape[axis] // cells
        samples = numpy.maximum.reduceat(samples, starts, axis)
    white = Pictures.fromarray(numpy.where(samples > 0, 255, 0).astype(numpy.uint8))
    return white.resize(size, Pictures.Resampling.NEAREST)


class Resizer:
    """Resizes generated images to the requested size.

    It enlarges with the network in the engine's option ``upscaler``, else with an installed
    Real-ESRGAN network, else with the Lanczos filter.

    Args:
        options: Options of the engine.
        sink: Receives a line about each way of resizing.
        token: Cancellation.

    Raises:
        NoBackendError: The network in the option ``upscaler`` cannot be used.
    """

    def __init__(self, options: Mapping[str, Any], sink: EngineSink, token: Token) -> None:
        self._options, self._sink, self._token = options, sink, token
        self._network: Network | None = None
        self._factor, self._name = 1, ""
        self._is_loaded = False
        self._told: set[str] = set()

    def resized(self, picture: Image, size: Size) -> Image:
        """Return an image in another size.

        Raises:
            Cancelled: The request was canceled.
        """
        from PIL import Image as Pictures

        if picture.size == size:
            return picture
        before, scale = picture.size, _scale(picture.size, size)
        how = "the Lanczos filter"
        network = self._loaded_network() if scale > 1 else None
        count = 0 if network is None else _passes(scale, self._factor)
        if network is not None and count > 0:
            import numpy

            pixels = numpy.asarray(picture.convert("RGB"))
            for _ in range(count):
                pixels = network.enlarged(pixels, self._token)
            picture, how = Pictures.fromarray(pixels), self._name
        self._tell(
            f"generated at {before[0]} x {before[1]} pixels, the model's native size, and resized "
            f"to {size[0]} x {size[1]} with {how}"
        )
        return picture.resize(size, Pictures.Resampling.LANCZOS)

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._sink.log(line)

    def _loaded_network(self) -> Network | None:
        if not self._is_loaded:
            self._is_loaded = True
            path, name = network_of(self._options)
            try:
                if path:
                    self._network = Network()
                    factor = self._options.get("upscaler_factor")
                    given = {"factor": factor} if self._options.get("upscaler") else {}
                    self._factor = self._network.load({"model": path, **given})["factor"]
                    self._name = name
            except errors.PolymuxError as error:
                if self._options.get("upscaler"):
                    raise
                self._network = None
                self._sink.warn(f"{name} cannot be used: {error}")
        return self._network if self._factor > 1 else None


def network_of(options: Mapping[str, Any]) -> tuple[str, str]:
    """Return path and name of the network that enlarges; empty for the Lanczos filter."""
    if options.get("upscaler"):
        path = str(options["upscaler"])
        return path, Path(path).stem
    installed = options.get("installed_upscaler") or {}
    return str(installed.get("path", "")), str(installed.get("name", ""))


def enlarging_flops(options: Mapping[str, Any], before: Size, size: Size, factor: int = 4) -> float:
    """Estimate the operations of enlarging an image with the network.

    Each weight is used once per pixel. The factor is only known after loading the network.
    """
    path, _ = network_of(options)
    weights = Path(path).expanduser().with_suffix(".bin") if path else None
    if weights is None or not weights.is_file():
        return 0.0
    numbers = weights.stat().st_size / _NETWORK_NUMBER_BYTES
    pixels = before[0] * before[1]
    count = _passes(_scale(before, size), factor)
    return 2.0 * numbers * sum(pixels * float(factor) ** (2 * number) for number in range(count))


def _scale(before: Size, size: Size) -> float:
    return max(size[0] / before[0], size[1] / before[1])


def _passes(scale: float, factor: int) -> int:
    """Return how often the network runs: the filter enlarges by the rest, at most its root."""
    count = 0
    while scale > math.sqrt(factor):
        scale /= factor
        count += 1
    return count
