"""Reading order, columns, blank pages, limits and errors, shared by both OCR engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.base import samples_of
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


#: Lines are joined if the distance of their centers is below this part of their height.
_SAME_LINE = 0.5
#: A gap of this many line heights separates columns.
COLUMN_GAP = 3.0
#: At most one of this many lines may span several columns.
_FEW = 3
_FEWEST_IN_COLUMNS = 4
_FEWEST_IN_COLUMN = 2


class Line(NamedTuple):
    """A piece of text with its bounding box in pixels.

    Attributes:
        text: The recognized text.
        left: Left edge; the other edges follow.
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
        """Vertical center of the box."""
        return (self.top + self.bottom) / 2


def in_reading_order(lines: Sequence[Line]) -> str:
    """Join the text of a page: columns from left to right, lines from top to bottom.

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
    """Split a page at lines that span several columns, such as headings; each is its own band."""
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
    """Split lines where a vertical gap separates all of them."""
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
        return [lines]  # A single number or price is not a column.
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
    """Return the images from the media engine, as height x width x 3."""
    return [
        samples_of(values[f"pixels_{number}"], facts)
        for number, facts in enumerate(values["pictures"])
    ]


#: Time for one page. An ordinary page takes a few seconds.
MAX_PAGE_S = 60.0
#: A page or a part of it with less contrast is blank. White paper in a JPEG has about 10.
_BLANK_CONTRAST = 20


def is_blank(pixels: NDArray[np.uint8]) -> bool:
    """Check whether all pixels of a part of a page have nearly the same color."""
    return bool((pixels.max(axis=(0, 1)) - pixels.min(axis=(0, 1))).max() < _BLANK_CONTRAST)


def too_slow(number: int) -> errors.UnprocessableEntityError:
    """Return the error for a page (counted from 0) that took too long."""
    return status_error(
        errors.UnprocessableEntityError,
        f"page {number + 1}: reading timed out after {MAX_PAGE_S:.0f} s. Send a smaller image, or "
        "cut the page into several",
        code="page_timeout",
    )


def too_long(number: int, page: NDArray[np.uint8], most: int) -> errors.RequestTooLargeError:
    """Return the error for a page (counted from 0) with a side that is too long."""
    return status_error(
        errors.RequestTooLargeError,
        f"page {number + 1}: image too large (got {page.shape[1]}x{page.shape[0]} pixels, "
        f"allowed {most} on each side). Cut the page into smaller images",
    )


def joined(pages: Sequence[str]) -> str:
    """Join the text of all pages with blank lines between them."""
    return "\n\n".join(page.strip() for page in pages).strip()
