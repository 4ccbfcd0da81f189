"""Tiles that overlap, and how what comes of them is put together without a seam.

Bar-Tal et al., "MultiDiffusion: Fusing Diffusion Paths for Controlled Image Generation", 2023: at
each step the predictions for all tiles that see a cell are averaged. The weights here rise and fall
smoothly over what neighbours share, so no edge of a tile is a step in the picture.
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
        length: Of the axis, in cells.
        spans: Its tiles, in order; those that reach behind ``length`` go on at its beginning.
        cell: How many samples a cell has; tiles are then of samples.

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
        #: Where tiles begin and end.
        self.bounds = [(one.first * cell, one.end * cell) for one in spans]
        #: How far the last reaches behind the axis: that many samples are there twice.
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
        #: For each tile, its samples'.
        self.weights: list[Floats] = [
            weights / total[first:end]
            for (first, end), weights in zip(self.bounds, plain, strict=True)
        ]


class Tile(NamedTuple):
    """A tile of a plane: where it begins and ends, and its samples' weights along both axes."""

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
    """What work says of each tile of a plane, put together.

    Args:
        latents: A tensor of batch, channels, rows, columns.
        work: Given a tile's samples and where they are; gives as many rows and columns.

    Returns:
        A tensor of rows and columns as `latents` has.
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
    """A tile of a picture.

    Args:
        canvas: Rows, columns, colours.
        cell: Side of a cell, in pixels.
    """
    import numpy

    rows = numpy.arange(tile.top * cell, tile.bottom * cell)
    columns = numpy.arange(tile.left * cell, tile.right * cell)
    return canvas.take(rows, 0, mode="wrap").take(columns, 1, mode="wrap")


class Joiner:
    """Puts a picture together of tiles that come row by row; no more than a row of them is floats.

    Args:
        size: Width and height of the picture, in pixels.
        columns: Its tiles, in pixels.
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
        """Adds a tile: rows, columns, colours from 0 to 255."""
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
        """Nothing more comes above this row."""
        done = self._strip[: end - self._top]
        if self._top < self._rows.behind:
            # The last rows are the first ones again.
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
    """Rises over so many samples, as the square of a sine: with one that falls it gives 1."""
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
