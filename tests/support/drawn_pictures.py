"""Captions of plain shapes, drawings that obey them, and the score of other pictures."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy
from PIL import Image, ImageDraw

from support.picture_reader import COLORS, SHAPES, Thing, read
from support.small_models import PICTURES

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from numpy.typing import NDArray

_NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}
_PLACES = {
    (-1, -1): "in the top left corner",
    (0, -1): "at the top",
    (1, -1): "in the top right corner",
    (-1, 0): "on the left",
    (0, 0): "in the center",
    (1, 0): "on the right",
    (-1, 1): "in the bottom left corner",
    (0, 1): "at the bottom",
    (1, 1): "in the bottom right corner",
}
_SPOTS = {
    2: ((-0.5, 0.0), (0.5, 0.0)),
    3: ((0.0, -0.5), (-0.5, 0.5), (0.5, 0.5)),
    4: ((-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5), (0.5, 0.5)),
    5: ((-0.6, -0.6), (0.6, -0.6), (0.0, 0.0), (-0.6, 0.6), (0.6, 0.6)),
}
_CANVAS_PX = 512


@dataclass(frozen=True)
class Caption:
    """A caption and what a picture of it must show.

    Attributes:
        place: Column and row of the only object, if the caption names them.
        is_withheld: Whether no training picture combines its color, or its number, with its shape.
        spots: Where a drawing has the objects, from -1 to 1, and their size.
    """

    text: str
    background: str
    things: tuple[tuple[str, str], ...]
    place: tuple[int, int] | None
    is_withheld: bool
    spots: tuple[tuple[float, float], ...]
    size: float


def withheld() -> tuple[set[tuple[str, str]], set[tuple[int, str]]]:
    """The pairs of color and shape, and of number and shape, that the training leaves out."""
    sys.path.insert(0, str(PICTURES / "training"))
    try:
        from compose import withheld as pairs
    finally:
        sys.path.pop(0)
    found: tuple[set[tuple[str, str]], set[tuple[int, str]]] = pairs()
    return found


def captions(count: int, rng: random.Random) -> Iterator[Caption]:
    """Every third has a withheld pair; half of all name a place."""
    no_colors, no_numbers = withheld()
    for number in range(count):
        unseen = number % 3 == 0
        background = rng.choice(list(COLORS))
        pairs = [
            (color, shape)
            for color in COLORS
            for shape in SHAPES
            if color != background and ((color, shape) in no_colors) == unseen
        ]
        color, shape = rng.choice(pairs)
        tail = f" on a {background} background"
        if number % 4 < 2:
            place = rng.choice(list(_PLACES))
            text = f"a {color} {shape} {_PLACES[place]}{tail}"
            spot = (0.5 * place[0], 0.5 * place[1])
            yield Caption(text, background, ((color, shape),), place, unseen, (spot,), 0.42)
        elif number % 4 == 2:
            allowed = [one for one in _NUMBERS if ((one, shape) not in no_numbers) or unseen]
            many = rng.choice(allowed)
            ending = "es" if shape.endswith(("s", "x")) else "s"
            text = f"{_NUMBERS[many]} {color} {shape}{ending}{tail}"
            size = 0.3 if many == 5 else 0.42
            things = ((color, shape),) * many
            yield Caption(text, background, things, None, unseen, _SPOTS[many], size)
        else:
            other = rng.choice([one for one in pairs if one[1] != shape])
            text = f"a {color} {shape} left of a {other[0]} {other[1]}{tail}"
            things = ((color, shape), other)
            yield Caption(text, background, things, None, unseen, _SPOTS[2], 0.42)


def _points(count: int, first: float, *radii: float) -> list[tuple[float, float]]:
    turns = [first + 2 * math.pi * k / count for k in range(count)]
    return [
        (radii[k % len(radii)] * math.cos(turn), radii[k % len(radii)] * math.sin(turn))
        for k, turn in enumerate(turns)
    ]


def _curve(shape: str) -> list[tuple[float, float]]:
    """The outline of a shape as a polygon, y downwards."""
    if shape in {"circle", "ring", "crescent moon"}:
        return _points(90, 0, 1)
    if shape == "oval":
        return [(x, 0.6 * y) for x, y in _points(90, 0, 1)]
    if shape == "heart":
        turns = [2 * math.pi * k / 90 for k in range(90)]
        heights = [
            sum(k * math.cos(n * turn) for n, k in enumerate((13, -5, -2, -1), 1)) for turn in turns
        ]
        return [
            (math.sin(turn) ** 3, -height / 16) for turn, height in zip(turns, heights, strict=True)
        ]
    corners: dict[str, list[tuple[float, float]]] = {
        "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "triangle": [(0, -0.95), (0.98, 0.8), (-0.98, 0.8)],
        "star": _points(10, -math.pi / 2, 1, 0.39),
        "diamond": [(0, -1), (0.8, 0), (0, 1), (-0.8, 0)],
        "hexagon": _points(6, 0, 1),
        "cross": [
            (-0.3, -0.95), (0.3, -0.95), (0.3, -0.3), (0.95, -0.3), (0.95, 0.3), (0.3, 0.3),
            (0.3, 0.95), (-0.3, 0.95), (-0.3, 0.3), (-0.95, 0.3), (-0.95, -0.3), (-0.3, -0.3),
        ],
        "arrow": [
            (-1, -0.3), (0.1, -0.3), (0.1, -0.8), (1, 0), (0.1, 0.8), (0.1, 0.3), (-1, 0.3),
        ],
    }  # fmt: skip
    return corners[shape]


def drawn(caption: Caption, side_px: int = 64) -> NDArray[numpy.uint8]:
    """A picture of what the caption says."""
    image = Image.new("RGB", (_CANVAS_PX, _CANVAS_PX), COLORS[caption.background])
    draw = ImageDraw.Draw(image)
    for (color, shape), (x, y) in zip(caption.things, caption.spots, strict=True):

        def placed(
            points: list[tuple[float, float]], scale: float = 1, dx: float = 0, dy: float = 0,
            x: float = x, y: float = y,
        ) -> list[tuple[float, float]]:  # fmt: skip
            half, size = _CANVAS_PX / 2, caption.size
            return [
                (half * (1 + x + size * (a * scale + dx)), half * (1 + y + size * (b * scale + dy)))
                for a, b in points
            ]

        draw.polygon(placed(_curve(shape)), COLORS[color])
        hole = {"ring": (0.54, 0.0, 0.0), "crescent moon": (0.8, 0.38, -0.2)}.get(shape)
        if hole:
            draw.polygon(placed(_points(90, 0, 1), *hole), COLORS[caption.background])
    return numpy.asarray(image.resize((side_px, side_px), Image.Resampling.BOX))


#: What `score` judges.
CRITERIA = ("background", "count", "color", "shape", "place", "all")


def score(wanted: list[Caption], pictures: list[NDArray[numpy.uint8]]) -> dict[str, float]:
    """The share of pictures that are right in each of CRITERIA. Places count where one is named."""
    marks: dict[str, list[bool]] = {name: [] for name in CRITERIA}
    for caption, pixels in zip(wanted, pictures, strict=True):
        background, things = read(pixels)
        ordered = _left_to_right(things) if len({*caption.things}) > 1 else things
        right = {
            "background": background == caption.background,
            "count": len(things) == len(caption.things),
            "color": [one.color for one in ordered] == [color for color, _ in caption.things],
            "shape": [one.shape for one in ordered] == [shape for _, shape in caption.things],
        }
        if caption.place is not None:
            right["place"] = [one.place for one in things] == [caption.place]
        right["all"] = all(right.values())
        for name, value in right.items():
            marks[name].append(value)
    return {name: sum(values) / len(values) for name, values in marks.items()}


def _left_to_right(things: list[Thing]) -> list[Thing]:
    return sorted(things, key=lambda one: one.x)
