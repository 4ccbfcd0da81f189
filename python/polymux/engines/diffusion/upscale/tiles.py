"""Overlapping tiles, and how their results are combined without visible seams.

At each step, the predictions of all tiles that contain a cell are averaged; see Bar-Tal et al.,
"MultiDiffusion: Fusing Diffusion Paths for Controlled Image Generation", 2023. The weights change
smoothly over the area that neighbors share, so tile edges are not visible.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.engines.diffusion.upscale.plan import CELL_PX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from polymux.engines.diffusion.upscale.plan import Size, Span

    Floats = NDArray[np.float32]
    Pixels = NDArray[np.uint8]


class Axis:
    """The tiles of an axis and their weights, which add up to 1 at each cell.

    Args:
        length: Length of the axis in cells.
        spans: The tiles in order. Tiles that extend past ``length`` continue at the beginning.
        cell: Samples per cell; bounds and weights are then per sample.

    Example:
        >>> from polymux.engines.diffusion.upscale.plan import spans
        >>> from polymux.engines.diffusion.upscale.tiles import Axis
        >>> axis = Axis(3, spans(3, 2, 1))
        >>> [one.round(2).tolist() for one in axis.weights]
        [[1.0, 0.5], [0.5, 1.0]]
    """

    def __init__(self, length: int, spans: Sequence[Span], cell: int = 1) -> None:
        import numpy

        self.length = length * cell
        #: Start and end of each tile.
        self.bounds = [(one.first * cell, one.end * cell) for one in spans]
        #: How far the last tile extends past the end: that many samples occur twice.
        self.behind = self.bounds[-1][1] - self.length
        plain = [
            _ramp(one.size * cell, one.before * cell)
            * _ramp(one.size * cell, one.after * cell)[::-1]
            for one in spans
        ]
        total = numpy.zeros(self.length + self.behind, numpy.float32)
        for (first, end), weights in zip(self.bounds, plain, strict=True):
            total[first:end] += weights
        if self.behind:
            total[: self.behind] += total[self.length :]
            total[self.length :] = total[: self.behind]
        #: Weights of each tile's samples.
        self.weights: list[Floats] = [
            weights / total[first:end]
            for (first, end), weights in zip(self.bounds, plain, strict=True)
        ]


class Tile(NamedTuple):
    """A tile of an image: its bounds, and the weights of its samples along both axes."""

    top: int
    bottom: int
    left: int
    right: int
    down: Floats
    across: Floats


def tiles(columns: Axis, rows: Axis) -> Iterator[Tile]:
    down = zip(rows.bounds, rows.weights, strict=True)
    across = list(zip(columns.bounds, columns.weights, strict=True))
    for ((top, bottom), high), ((left, right), wide) in itertools.product(down, across):
        yield Tile(top, bottom, left, right, high, wide)


def averaged(
    latents: Any, columns: Axis, rows: Axis, work: Callable[[Any, Tile], Any], channels: int
) -> Any:
    """Apply a function to each tile of an image and average the results.

    Args:
        latents: A tensor of batch, channels, rows, columns.
        columns: The axis of the columns.
        rows: The axis of the rows.
        work: Function of a tile's samples and the tile. Its result has the same rows and columns.
        channels: Channels of the result.

    Returns:
        A tensor with the rows and columns of `latents`.
    """
    import torch

    wrapped = _wrapped(latents, columns.behind, rows.behind)
    height, width = wrapped.shape[-2:]
    total = torch.zeros(
        (latents.shape[0], channels, height, width), dtype=torch.float32, device=latents.device
    )
    for tile in tiles(columns, rows):
        made = work(wrapped[..., tile.top : tile.bottom, tile.left : tile.right], tile)
        weights = torch.from_numpy(tile.down[:, None] * tile.across).to(latents.device)
        total[..., tile.top : tile.bottom, tile.left : tile.right] += made.float() * weights
    if columns.behind:
        total[..., : columns.behind] += total[..., columns.length :]
    if rows.behind:
        total[..., : rows.behind, :] += total[..., rows.length :, :]
    return total[..., : rows.length, : columns.length]


def cut(canvas: Pixels, tile: Tile, cell: int = CELL_PX) -> Pixels:
    """Cut a tile out of an image.

    Args:
        canvas: Rows, columns, colors.
        tile: The tile.
        cell: Side of a cell in pixels.
    """
    import numpy

    rows = numpy.arange(tile.top * cell, tile.bottom * cell)
    columns = numpy.arange(tile.left * cell, tile.right * cell)
    return canvas.take(rows, 0, mode="wrap").take(columns, 1, mode="wrap")


class Joiner:
    """Combines tiles that arrive row by row to an image. Only one row of tiles is kept as floats.

    Args:
        size: Width and height of the image in pixels.
        columns: Axis of the columns in pixels.
        rows: Axis of the rows in pixels.
    """

    def __init__(self, size: Size, columns: Axis, rows: Axis) -> None:
        import numpy

        self._columns, self._rows = columns, rows
        self.picture: Pixels = numpy.empty((size[1], size[0], 3), numpy.uint8)
        self._width = columns.length + columns.behind
        self._top = 0
        self._strip: Floats = numpy.zeros((0, self._width, 3), numpy.float32)
        self._head: Floats = self._strip

    def add(self, made: Floats, tile: Tile) -> None:
        """Add a tile with rows, columns and colors from 0 to 255."""
        if tile.top > self._top:
            self._flush(tile.top)
        missing = tile.bottom - self._top - len(self._strip)
        if missing > 0:
            self._strip = _longer(self._strip, missing)
        rows = slice(tile.top - self._top, tile.bottom - self._top)
        weights = (tile.down[:, None] * tile.across)[:, :, None]
        self._strip[rows, tile.left : tile.right] += made * weights

    def joined(self) -> Pixels:
        self._flush(self._rows.length)
        if self._rows.behind:
            self._write(0, self._head + self._strip[: self._rows.behind])
        return self.picture

    def _flush(self, end: int) -> None:
        """Write the rows above `end`, to which no further tile contributes."""
        done = self._strip[: end - self._top]
        if self._top < self._rows.behind:
            # The last rows wrap around to the first ones.
            kept = done[: self._rows.behind - self._top]
            self._head = _joined(self._head, kept)
        self._write(self._top, done)
        self._strip = self._strip[end - self._top :].copy()
        self._top = end

    def _write(self, top: int, floats: Floats) -> None:
        import numpy

        length, behind = self._columns.length, self._columns.behind
        plain = floats[:, :length]
        if behind:
            plain = plain.copy()
            plain[:, :behind] += floats[:, length:]
        rounded = numpy.clip(numpy.rint(plain), 0, 255)
        self.picture[top : top + len(plain)] = rounded.astype(numpy.uint8)


def _ramp(size: int, rising: int) -> Floats:
    """A ramp with a squared sine over `rising` samples. It adds up to 1 with a falling one."""
    import numpy

    ramp = numpy.ones(size, numpy.float32)
    steps = (numpy.arange(rising) + 0.5) / max(1, rising)
    ramp[:rising] = numpy.sin(steps * numpy.pi / 2) ** 2
    return ramp


def _wrapped(latents: Any, columns: int, rows: int) -> Any:
    import torch

    if columns:
        latents = torch.cat((latents, latents[..., :columns]), dim=-1)
    if rows:
        latents = torch.cat((latents, latents[..., :rows, :]), dim=-2)
    return latents


def _longer(strip: Floats, rows: int) -> Floats:
    import numpy

    return numpy.concatenate((strip, numpy.zeros((rows, *strip.shape[1:]), numpy.float32)))


def _joined(first: Floats, second: Floats) -> Floats:
    import numpy

    return numpy.concatenate((first, second))
