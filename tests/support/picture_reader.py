"""Reads plain pictures: the background, and color, shape and place of each object on it.

Shapes are compared with outlines that are defined by formulas. The reader shares no code with the
training of the small models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Plane = NDArray[np.float64]

#: What the names mean, in sRGB.
COLORS = {
    "red": (220, 40, 40),
    "orange": (245, 140, 30),
    "yellow": (250, 220, 50),
    "green": (50, 165, 70),
    "blue": (45, 95, 215),
    "purple": (130, 60, 175),
    "pink": (245, 140, 185),
    "brown": (125, 80, 45),
    "black": (20, 20, 20),
    "gray": (135, 135, 135),
    "turquoise": (60, 195, 195),
    "white": (255, 255, 255),
}
_SIDE_PX = 256  # of the picture in which objects are searched
_OUTLINE_PX = 48
_LEAST_AREA = 0.006  # of the picture
_DIFFERENT = 20.0  # distance in CIE L*a*b*


def _lab(rgb: NDArray[Any]) -> Plane:
    """Convert sRGB of any shape [..., 3] to CIE L*a*b*."""
    values = np.asarray(rgb, np.float32).reshape(1, -1, 3) / 255
    return np.asarray(cv2.cvtColor(values, cv2.COLOR_RGB2LAB), np.float64).reshape(np.shape(rgb))


def color_name(rgb: Plane) -> str:
    """Return the name of the nearest color."""
    names = list(COLORS)
    palette = _lab(np.array(list(COLORS.values()), np.uint8))
    distance = np.linalg.norm(palette - _lab(np.asarray(rgb).round().astype(np.uint8)), axis=1)
    return names[int(distance.argmin())]


def _star(x: Plane, y: Plane) -> NDArray[np.bool_]:
    """A pentagram: inside at least four of its five lines, which face its points."""
    angles = 2 * np.pi * np.arange(5) / 5 - np.pi / 2
    inside = [x * np.cos(a) + y * np.sin(a) < np.cos(2 * np.pi / 5) for a in angles]
    return np.asarray(np.sum(inside, 0) >= 4)


def _heart(x: Plane, y: Plane) -> NDArray[np.bool_]:
    x, y = 1.2 * x, 0.12 - 1.15 * y
    return (x * x + y * y - 1) ** 3 - x * x * y**3 < 0


#: Outlines in the square from -1 to 1, y downwards.
_OUTLINES: dict[str, Callable[[Plane, Plane], NDArray[np.bool_]]] = {
    "circle": lambda x, y: x * x + y * y < 1,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) < 1,
    "triangle": lambda x, y: (y < 0.85) & (y > -1 + 1.85 * abs(x)),
    "star": _star,
    "heart": _heart,
    "diamond": lambda x, y: abs(x) / 0.82 + abs(y) < 1,
    "hexagon": lambda x, y: (abs(y) < 0.86) & (abs(x) + 0.58 * abs(y) < 1),
    "cross": lambda x, y: np.minimum(abs(x), abs(y)) < 0.32,
    "crescent moon": lambda x, y: (x * x + y * y < 1) & ((x - 0.38) ** 2 + (y + 0.22) ** 2 > 0.64),
    "ring": lambda x, y: (x * x + y * y < 1) & (x * x + y * y > 0.29),
    "arrow": lambda x, y: (
        ((x < 0.15) & (abs(y) < 0.31)) | ((x >= 0.15) & (abs(y) < 0.97 * (1 - x)))
    ),
    "oval": lambda x, y: x * x + (y / 0.62) ** 2 < 1,
}


def _fitted(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Scale the bounding box so that its longer side fills the square of an outline."""
    rows, columns = np.where(mask)
    box = mask[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1].astype(np.float32)
    scale = _OUTLINE_PX / max(box.shape)
    width, height = (max(1, round(side * scale)) for side in (box.shape[1], box.shape[0]))
    square = np.zeros((_OUTLINE_PX, _OUTLINE_PX), np.float32)
    left, top = (_OUTLINE_PX - width) // 2, (_OUTLINE_PX - height) // 2
    resized = cv2.resize(box, (width, height), interpolation=cv2.INTER_AREA)
    square[top : top + height, left : left + width] = resized
    return square


def _templates() -> dict[str, NDArray[np.float32]]:
    axis = np.linspace(-1.1, 1.1, 4 * _OUTLINE_PX)
    x, y = np.meshgrid(axis, axis)
    return {name: _fitted(inside(x, y)) for name, inside in _OUTLINES.items()}


SHAPES = tuple(_OUTLINES)
_TEMPLATES = _templates()


def shape_name(mask: NDArray[np.bool_]) -> str:
    """Return the shape with the greatest overlap, relative to the union."""
    found = _fitted(mask)
    overlap = {
        name: np.minimum(found, one).sum() / np.maximum(found, one).sum()
        for name, one in _TEMPLATES.items()
    }
    return max(overlap, key=lambda name: float(overlap[name]))


@dataclass(frozen=True)
class Thing:
    """An object. Its middle is between -1 (left, top) and 1."""

    color: str
    shape: str
    x: float
    y: float

    @property
    def place(self) -> tuple[int, int]:
        """Column and row of nine places: -1, 0 or 1."""
        return tuple(int(np.sign(at)) if abs(at) > 0.22 else 0 for at in (self.x, self.y))  # type: ignore[return-value]


def read(pixels: NDArray[np.uint8]) -> tuple[str, list[Thing]]:
    """Return the color of the background and the objects of an image [height, width, 3]."""
    large = cv2.resize(pixels, (_SIDE_PX, _SIDE_PX), interpolation=cv2.INTER_CUBIC)
    border = np.concatenate([large[0], large[-1], large[:, 0], large[:, -1]])
    background = np.median(border, 0)
    distance = np.linalg.norm(_lab(large) - _lab(background.astype(np.uint8)), axis=-1)
    count, labels, facts, _ = cv2.connectedComponentsWithStats(
        (distance > _DIFFERENT).astype(np.uint8)
    )
    things = []
    for number in range(1, count):
        if facts[number, cv2.CC_STAT_AREA] < _LEAST_AREA * _SIDE_PX**2:
            continue
        mask = labels == number
        # Half of the distance to the object's own color is its edge; halos are outside.
        inner = cv2.erode(mask.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(bool)
        color = np.median(large[inner if inner.any() else mask], 0)
        contrast = np.linalg.norm(_lab(color.astype(np.uint8)) - _lab(background.astype(np.uint8)))
        inside = mask & (distance > contrast / 2)
        rows, columns = np.where(inside if inside.any() else mask)
        middle = (columns.min() + columns.max() + 1, rows.min() + rows.max() + 1)
        x, y = (at / _SIDE_PX - 1 for at in middle)
        shape = shape_name(inside if inside.any() else mask)
        things.append(Thing(color_name(color), shape, float(x), float(y)))
    return color_name(background), things
