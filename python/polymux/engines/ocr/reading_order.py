"""Reading order, turned pages and the languages' names: what both engines of OCR share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.base import samples_of
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


#: Lines whose middles are nearer than this part of their height are one line.
_SAME_LINE = 0.5
#: A gap as wide as this many heights of a line parts columns.
COLUMN_GAP = 3.0
#: Of so many lines at most one runs across columns.
_FEW = 3
_FEWEST_IN_COLUMNS = 4
_FEWEST_IN_COLUMN = 2


class Line(NamedTuple):
    """A piece of text and where it stands, in pixels.

    Attributes:
        text: As it was read.
        left: And so on: its box, upright.
        confidence: From 0 to 1.
    """

    text: str
    left: float
    top: float
    right: float
    bottom: float
    confidence: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        """Of the box, from above."""
        return (self.top + self.bottom) / 2


def in_reading_order(lines: Sequence[Line]) -> str:
    """The text of a page: columns from left to right, lines from above, pieces of a line joined.

    Example:
        >>> from polymux.engines.ocr.reading_order import Line, in_reading_order
        >>> in_reading_order([Line("b", 50, 1, 90, 11, 1.0), Line("a", 0, 0, 40, 10, 1.0)])
        'a b'
    """
    return "\n".join(
        text
        for band in _bands(list(lines))
        for column in _columns(band)
        for text in _rows(column)
        if text.strip()
    )


def _bands(lines: list[Line]) -> list[list[Line]]:
    """Parted by lines that run across columns, such as a heading: each is a band of its own."""
    widest = sorted(lines, key=lambda line: line.left - line.right)
    for count in range(len(lines) // _FEW + 1):
        if len(_columns(widest[count:])) > 1:
            break
    else:
        return [lines]
    across = set(map(id, widest[:count]))
    bands: list[list[Line]] = [[]]
    for one in sorted(lines, key=lambda line: line.middle):
        if id(one) in across:
            bands += [[one], []]
        else:
            bands[-1].append(one)
    return [band for band in bands if band]


def _columns(lines: list[Line]) -> list[list[Line]]:
    """Parted where an upright gap runs through all lines that stand beside each other."""
    if len(lines) < _FEWEST_IN_COLUMNS:
        return [lines]
    height = sorted(one.height for one in lines)[len(lines) // 2]
    spans = sorted((one.left, one.right) for one in lines)
    edges, end = [], spans[0][1]
    for left, right in spans[1:]:
        if left - end > COLUMN_GAP * height:
            edges.append((end + left) / 2)
        end = max(end, right)
    columns: list[list[Line]] = [[] for _ in range(len(edges) + 1)]
    for one in lines:
        columns[sum(one.left > edge for edge in edges)].append(one)
    if any(len(column) < _FEWEST_IN_COLUMN for column in columns):
        return [lines]  # A heading's number, a price: no column.
    return columns


def _rows(lines: list[Line]) -> list[str]:
    rows: list[list[Line]] = []
    for one in sorted(lines, key=lambda line: line.middle):
        last = rows[-1] if rows else None
        if last and abs(one.middle - _middle(last)) < _SAME_LINE * min(one.height, last[0].height):
            last.append(one)
        else:
            rows.append([one])
    return [" ".join(one.text for one in sorted(row, key=lambda line: line.left)) for row in rows]


def _middle(row: list[Line]) -> float:
    return sum(one.middle for one in row) / len(row)


def pages_of(values: Mapping[str, Any]) -> list[NDArray[np.uint8]]:
    """The pictures that the media engine has loaded, as height x width x 3."""
    return [
        samples_of(values[f"pixels_{number}"], facts)
        for number, facts in enumerate(values["pictures"])
    ]


def too_long(number: int, page: NDArray[np.uint8], most: int) -> errors.RequestTooLargeError:
    """What is told of a page (0 is the first) with a side of more pixels than are read."""
    return status_error(
        errors.RequestTooLargeError,
        f"page {number + 1}: {page.shape[1]}x{page.shape[0]} pixels: what is longer than "
        f"{most:,} is not read; cut it into shorter pictures",
    )


def joined(pages: Sequence[str]) -> str:
    """The text of all pages, a blank line between two."""
    return "\n\n".join(page.strip() for page in pages).strip()
