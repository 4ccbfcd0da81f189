from __future__ import annotations

import numpy
import pytest
from PIL import Image
from polymux.engines.diffusion.upscale.images import kept, sharpened
from polymux.engines.diffusion.upscale.plan import spans
from polymux.engines.diffusion.upscale.tiles import Axis, Joiner, Tile, cut, tiles


def noise(width: int, height: int) -> numpy.typing.NDArray[numpy.uint8]:
    return numpy.random.default_rng(1).integers(0, 256, (height, width, 3), numpy.uint8)


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("length", [1, 16, 17, 145])
def test_weights_add_up_to_one(length: int, *, around: bool) -> None:
    axis = Axis(length, spans(length, 16, 4, around=around))
    total = numpy.zeros(length)
    for (first, end), weights in zip(axis.bounds, axis.weights, strict=True):
        assert weights.min() > 0
        numpy.add.at(total, numpy.arange(first, end) % length, weights)
    assert total == pytest.approx(1)


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("size", [(128, 128), (64, 448)])
def test_a_picture_in_tiles_is_the_picture(size: tuple[int, int], *, around: bool) -> None:
    picture = noise(*size)
    columns, rows = (Axis(side // 8, spans(side // 8, 16, 4, around=around), 8) for side in size)
    joiner = Joiner(size, columns, rows)
    for tile in tiles(columns, rows):
        joiner.add(cut(picture, tile, 1).astype(numpy.float32), tile)
    assert numpy.array_equal(joiner.joined(), picture)


def test_a_tile_goes_on_at_the_other_edge() -> None:
    weights = numpy.ones(2, numpy.float32)
    picture = noise(8, 8)
    found = cut(picture, Tile(7, 9, 6, 8, weights, weights), 1)
    assert numpy.array_equal(found, picture[[7, 0]][:, [6, 7]])


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("amount", [0.3, 10])
@pytest.mark.parametrize("size", [(1, 1), (40, 30)])
def test_sharpening_is_the_kernel(amount: float, size: tuple[int, int], *, around: bool) -> None:
    picture = noise(*size)
    kernel = numpy.full((3, 3), -amount / 10)
    kernel[1, 1] = 1 + 0.8 * amount
    wide = numpy.pad(picture, ((1, 1), (1, 1), (0, 0)), "wrap" if around else "edge")
    windows = numpy.lib.stride_tricks.sliding_window_view(wide.astype(float), (3, 3), (0, 1))
    exact = numpy.clip((windows * kernel).sum((3, 4)), 0, 255)
    found = sharpened(picture, amount, around=around).astype(float)
    # Halves may be rounded up or down.
    assert abs(found - exact).max() < 0.501
    assert sharpened(picture, 0) is picture


def test_what_a_mask_keeps_is_as_it_was() -> None:
    painted, before = noise(4, 4), 255 - noise(4, 4)
    mask = numpy.zeros((4, 4), numpy.uint8)
    mask[:, :2] = 255
    found = kept(painted, before, Image.fromarray(mask))
    assert numpy.array_equal(found[:, :2], before[:, :2])
    assert numpy.array_equal(found[:, 2:], painted[:, 2:])
    small = kept(painted, before, Image.fromarray(mask[::2, ::2]))
    assert numpy.array_equal(small[:, 0], before[:, 0])
    assert numpy.array_equal(small[:, 3], painted[:, 3])
