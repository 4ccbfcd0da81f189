"""Planning of upscaling: sizes, passes, steps and amount of work.

A factor above 2 is split into passes of at most 2, with the remainder last. Each pass multiplies
the creativity by `multistep_factor` and increments the seed.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.diffusion.upscale import schedulers
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    Size = tuple[int, int]

#: Side of a latent cell in pixels: Stable Diffusion's encoder halves the size three times.
CELL_PX = 8
#: The network halves latents three more times, so sizes should be multiples of this.
_GRID_PX = 64
MAX_PIXELS = 64_000_000
_MAX_FACTOR = 2.0
#: Neighboring tiles overlap by this part of a tile, and by at least this many cells.
_OVERLAP_SHARE, _MIN_OVERLAP = 8, 4
#: Tile size and overlap of the encoder and decoder, in cells.
CODED_TILE, CODED_OVERLAP = 128, 16
#: Maximum sides of the file formats in pixels.
_MAX_SIDE_PX = {"png": (1 << 31) - 1, "jpg": 65_500, "webp": 16_383}


class Span(NamedTuple):
    """The part of an axis that a tile covers.

    Attributes:
        first: First cell.
        size: Number of cells.
        before: Number of cells shared with the previous tile.
        after: Number of cells shared with the next tile.
    """

    first: int
    size: int
    before: int
    after: int

    @property
    def end(self) -> int:
        return self.first + self.size


class Pass(NamedTuple):
    """One upscaling by at most 2 with added detail.

    Attributes:
        size: Width and height of the result in pixels.
        canvas: Generated size in pixels: ``size`` rounded up to the network's grid.
        creativity: Strength of the denoising, from 0 to 1.
        steps: Number of steps at this strength; 0 means that no detail is added.
        seed: Seed of the noise.
    """

    size: Size
    canvas: Size
    creativity: float
    steps: int
    seed: int


class Plan(NamedTuple):
    """The complete work of a request.

    Attributes:
        start: Width and height of the first pass's input in pixels.
        passes: At least one pass.
    """

    start: Size
    passes: tuple[Pass, ...]

    @property
    def size(self) -> Size:
        """Width and height of the result in pixels."""
        return self.passes[-1].size


def factors(factor: float) -> list[float]:
    """Split a scale factor into the factors of the passes.

    Args:
        factor: Scale factor above 0.

    Example:
        >>> from polymux.engines.diffusion.upscale.plan import factors
        >>> factors(5), factors(4), factors(0.5)
        ([2.0, 2.0, 1.25], [2.0, 2.0], [0.5])
    """
    passes = []
    while factor > _MAX_FACTOR:
        passes.append(_MAX_FACTOR)
        factor /= _MAX_FACTOR
    return [*passes, factor]


def planned(values: Mapping[str, Any], width: int, height: int) -> Plan:
    """Plan the passes of a request.

    Args:
        values: Request fields by API name, with defaults.
        width: Width of the input image in pixels.
        height: Height of the input image in pixels.

    Raises:
        BadRequestError: The scheduler is unknown.

    Example:
        >>> from polymux.engines.diffusion.upscale.plan import planned
        >>> plan = planned({"scale_factor": 3, "num_inference_steps": 18}, 100, 50)
        >>> [(one.size, one.canvas, one.steps, one.seed) for one in plan.passes]
        [((200, 100), (256, 128), 6, 1337), ((300, 150), (320, 192), 5, 1338)]
    """
    schedulers.named(str(values.get("scheduler", schedulers.DEFAULT)))
    start = _start(values, width, height)
    creativity = float(values.get("creativity", 0.35))
    seed = int(values.get("seed", 1337))
    reached = 1.0
    passes = []
    for number, factor in enumerate(factors(float(values.get("scale_factor", 2)))):
        reached *= factor
        size = _scaled(start, reached)
        invented = min(1.0, creativity)
        steps = _steps(int(values.get("num_inference_steps", 18)), invented)
        passes.append(Pass(size, _canvas(size), invented, steps, seed + number))
        creativity *= float(values.get("multistep_factor", 0.8))
    return Plan(start, tuple(passes))


def check(plan: Plan, output_format: str, max_pixels: int = MAX_PIXELS) -> None:
    """Reject an output that is too large.

    Args:
        plan: The plan.
        output_format: ``"png"``, ``"jpg"`` or ``"webp"``.
        max_pixels: Maximum pixels of the output.

    Raises:
        RequestTooLargeError: The output has too many pixels, or a side is too long for its format.
    """
    width, height = plan.size
    if width * height > max_pixels:
        raise status_error(
            errors.RequestTooLargeError,
            f"scale_factor: output too large (got {width} x {height} pixels, "
            f"{width * height / 1e6:.1f} megapixels, allowed {max_pixels / 1e6:g} megapixels). Use "
            "a smaller factor, or downscaling",
            param="scale_factor",
        )
    longest = _MAX_SIDE_PX[output_format]
    if max(width, height) > longest:
        raise status_error(
            errors.RequestTooLargeError,
            f"output_format={output_format!r}: output too large (got {width} x {height} pixels, "
            f"allowed {longest} on each side). Use png or a smaller factor",
            param="output_format",
        )


def spans(length: int, tile: int, overlap: int, *, around: bool = False) -> list[Span]:
    """Distribute tiles evenly along an axis.

    Args:
        length: Length of the axis in cells.
        tile: Maximum cells of a tile.
        overlap: Minimum cells that neighbors share; below ``tile``.
        around: Whether the axis is a circle. It is then extended by ``overlap`` cells, and cells
            after ``length`` are those at its beginning.

    Example:
        >>> from polymux.engines.diffusion.upscale.plan import spans
        >>> [(one.first, one.size, one.before, one.after) for one in spans(28, 16, 4)]
        [(0, 16, 0, 4), (12, 16, 4, 0)]
    """
    outer = min(overlap, length) if around else 0
    length += outer
    if length <= tile:
        return [Span(0, length, outer, outer)]
    count = math.ceil((length - overlap) / (tile - overlap))
    firsts = [round(number * (length - tile) / (count - 1)) for number in range(count)]
    shared = [outer, *(a + tile - b for a, b in itertools.pairwise(firsts)), outer]
    return [Span(first, tile, shared[n], shared[n + 1]) for n, first in enumerate(firsts)]


def overlap_of(tile: int) -> int:
    """Return the minimum number of cells that neighboring tiles share.

    Example:
        >>> from polymux.engines.diffusion.upscale.plan import overlap_of
        >>> overlap_of(144), overlap_of(16)
        (18, 4)
    """
    return max(_MIN_OVERLAP, tile // _OVERLAP_SHARE)


def painted_spans(values: Mapping[str, Any], canvas: Size) -> tuple[list[Span], list[Span]]:
    """Return the columns and rows of the network's tiles on a canvas, in cells.

    Args:
        values: Request fields: ``tiling_width`` (112), ``tiling_height`` (144), ``pattern``.
        canvas: Width and height in pixels.
    """
    tile = int(values.get("tiling_width", 112)), int(values.get("tiling_height", 144))
    around = values.get("pattern") is True
    columns, rows = (
        spans(side // CELL_PX, most, overlap_of(most), around=around)
        for side, most in zip(canvas, tile, strict=True)
    )
    return columns, rows


def coded_spans(values: Mapping[str, Any], canvas: Size) -> tuple[list[Span], list[Span]]:
    """Return the columns and rows of the tiles for encoder and decoder, in cells."""
    around = values.get("pattern") is True
    columns, rows = (
        spans(side // CELL_PX, CODED_TILE, CODED_OVERLAP, around=around) for side in canvas
    )
    return columns, rows


def calls(values: Mapping[str, Any], plan: Plan) -> int:
    """Return how many tiles the networks process in total, for progress."""
    total = 0
    name = str(values.get("scheduler", schedulers.DEFAULT))
    for one in plan.passes:
        if one.steps == 0:
            continue
        columns, rows = painted_spans(values, one.canvas)
        total += schedulers.calls(name, one.steps) * len(columns) * len(rows)
        columns, rows = coded_spans(values, one.canvas)
        total += 2 * len(columns) * len(rows)
    return total


def units(values: Mapping[str, Any], width: int, height: int) -> float:
    """Return the work of a request: megapixels that pass through the network in all steps.

    Areas shared by tiles count for each tile. Guidance (``dynamic`` above 1) doubles the work.
    Upscaling, encoding and decoding are small in comparison and not counted.

    Args:
        values: Request fields by API name, with defaults.
        width: Width of the input image in pixels.
        height: Height of the input image in pixels.

    Raises:
        BadRequestError: The scheduler is unknown.

    Example:
        >>> from polymux.engines.diffusion.upscale.plan import units
        >>> units({"scale_factor": 2, "creativity": 0.5, "num_inference_steps": 10}, 256, 256)
        2.62144
    """
    name = str(values.get("scheduler", schedulers.DEFAULT))
    total = 0.0
    for one in planned(values, width, height).passes:
        columns, rows = painted_spans(values, one.canvas)
        cells = sum(column.size for column in columns) * sum(row.size for row in rows)
        if one.steps:
            total += schedulers.calls(name, one.steps) * cells * CELL_PX**2 / 1e6
    return round(total * (2 if float(values.get("dynamic", 6)) > 1 else 1), 9)


def _start(values: Mapping[str, Any], width: int, height: int) -> Size:
    longest = int(values.get("downscaling_resolution", 768))
    if values.get("downscaling") is not True or max(width, height) <= longest:
        return width, height
    return _scaled((width, height), longest / max(width, height))


def _scaled(size: Size, factor: float) -> Size:
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def _canvas(size: Size) -> Size:
    width, height = (math.ceil(side / _GRID_PX) * _GRID_PX for side in size)
    return width, height


def _steps(steps: int, creativity: float) -> int:
    """Return how many of the last steps are run for a strength; at least one unless it is 0."""
    return max(1, min(steps, int(steps * creativity + 1e-9))) if creativity > 0 else 0
