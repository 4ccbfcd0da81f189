"""What a detailed enlargement comes to, before any of it is done: sizes, passes, steps, work.

A factor above 2 is reached in passes of at most 2, the remainder last. Each pass multiplies how
much is invented and adds 1 to the seed.
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

#: Side of a latent's cell, in pixels: Stable Diffusion's encoder halves three times.
CELL_PX = 8
#: The network halves latents three times more; sizes that are no multiple of both are awkward.
_GRID_PX = 64
MAX_PIXELS = 64_000_000
_MAX_FACTOR = 2.0
#: Of a tile, so much is painted by its neighbour too; never less than so many cells.
_OVERLAP_SHARE, _MIN_OVERLAP = 8, 4
#: Of tiles of the encoder and decoder, in cells.
CODED_TILE, CODED_OVERLAP = 128, 16
#: What the formats can say of a side, in pixels.
_MAX_SIDE_PX = {"png": (1 << 31) - 1, "jpg": 65_500, "webp": 16_383}


class Span(NamedTuple):
    """The part of an axis that a tile covers.

    Attributes:
        first: Its first cell.
        size: How many cells it has.
        before: How many of them the tile before has too.
        after: How many of them the tile behind has too.
    """

    first: int
    size: int
    before: int
    after: int

    @property
    def end(self) -> int:
        return self.first + self.size


class Pass(NamedTuple):
    """One enlargement by 2 at most, and the detail for it.

    Attributes:
        size: Width and height of what it makes, in pixels.
        canvas: Those that are painted: ``size`` and what the network's grid adds.
        creativity: Share of the way from noise that is gone, from 0 to 1.
        steps: How many of the request's steps that is; 0: nothing is painted.
        seed: Of its noise.
    """

    size: Size
    canvas: Size
    creativity: float
    steps: int
    seed: int


class Plan(NamedTuple):
    """All of a request's work.

    Attributes:
        start: Width and height that the first pass begins with, in pixels.
        passes: At least one.
    """

    start: Size
    passes: tuple[Pass, ...]

    @property
    def size(self) -> Size:
        """Width and height at the end, in pixels."""
        return self.passes[-1].size


def factors(factor: float) -> list[float]:
    """What each pass multiplies by.

    Args:
        factor: Above 0.

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
    """The passes of a request.

    Args:
        values: Of the request, by the contract's names, with its defaults.
        width: Of its picture, in pixels.
        height: Of its picture, in pixels.

    Raises:
        BadRequestError: No solver has the name that it asks for.

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
    """Refuses what would be too large.

    Args:
        output_format: ``"png"``, ``"jpg"`` or ``"webp"``.

    Raises:
        RequestTooLargeError: The picture would have more pixels, or sides that are too long for
            its format.
    """
    width, height = plan.size
    if width * height > max_pixels:
        raise status_error(
            errors.RequestTooLargeError,
            f"scale_factor: {width} x {height} pixels would be made, {width * height / 1e6:.1f} "
            f"megapixels, and {max_pixels / 1e6:g} are the most: ask for a smaller factor, or for "
            "downscaling",
            param="scale_factor",
        )
    longest = _MAX_SIDE_PX[output_format]
    if max(width, height) > longest:
        raise status_error(
            errors.RequestTooLargeError,
            f"output_format={output_format!r}: {width} x {height} pixels would be made, and a side "
            f"of this format has {longest} at most: ask for png, or for a smaller factor",
            param="output_format",
        )


def spans(length: int, tile: int, overlap: int, *, around: bool = False) -> list[Span]:
    """Tiles along an axis, evenly spread; with what they share with their neighbours.

    Args:
        length: Of the axis, in cells.
        tile: Most cells of a tile.
        overlap: Least cells that neighbours share; below ``tile``.
        around: Whether the axis is a circle. It is then as if it were ``overlap`` cells longer,
            and what lies behind ``length`` is its beginning again.

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
    """How many cells neighbours share at least.

    Example:
        >>> from polymux.engines.diffusion.upscale.plan import overlap_of
        >>> overlap_of(144), overlap_of(16)
        (18, 4)
    """
    return max(_MIN_OVERLAP, tile // _OVERLAP_SHARE)


def painted_spans(values: Mapping[str, Any], canvas: Size) -> tuple[list[Span], list[Span]]:
    """The columns and rows of tiles of a canvas, in cells, for the network.

    Args:
        values: Of the request: ``tiling_width`` (112), ``tiling_height`` (144), ``pattern``.
        canvas: Width and height, in pixels.
    """
    tile = int(values.get("tiling_width", 112)), int(values.get("tiling_height", 144))
    around = values.get("pattern") is True
    columns, rows = (
        spans(side // CELL_PX, most, overlap_of(most), around=around)
        for side, most in zip(canvas, tile, strict=True)
    )
    return columns, rows


def coded_spans(values: Mapping[str, Any], canvas: Size) -> tuple[list[Span], list[Span]]:
    """The columns and rows of tiles of a canvas, in cells, for the encoder and the decoder."""
    around = values.get("pattern") is True
    columns, rows = (
        spans(side // CELL_PX, CODED_TILE, CODED_OVERLAP, around=around) for side in canvas
    )
    return columns, rows


def calls(values: Mapping[str, Any], plan: Plan) -> int:
    """How many tiles go through a network in all: what progress counts."""
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
    """How much work a request is: megapixels that go through the network, each time they do.

    What neighbouring tiles share counts for both; with guidance (``dynamic`` above 1) each pass is
    two. Enlarging, encoding and decoding are not counted: beside it they are little.

    Args:
        values: Of the request, by the contract's names, with its defaults.
        width: Of its picture, in pixels.
        height: Of its picture, in pixels.

    Raises:
        BadRequestError: No solver has the name that it asks for.

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
    """Of all steps, those from where the noise is no more than wanted; one at least."""
    return max(1, min(steps, int(steps * creativity + 1e-9))) if creativity > 0 else 0
