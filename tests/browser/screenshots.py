"""Compares screenshots of the page with docs/images. Different views fail, font changes do not."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

KEPT = Path(__file__).parents[2] / "docs" / "images"
#: The folder for new screenshots, for `scripts/screenshots`.
WANTED = os.environ.get("POLYMUX_SCREENSHOTS")
#: Fine enough for a card or a button, too coarse for a font's rendering.
_GRID = (48, 32)
#: Allowed gray-level differences: the mean, and one cell. Measured maxima: 0.3 and 31 without a
#: change, 3.5 and 51 for the server view, whose engines may be loaded or not. Missing cards cause
#: 1.1 and 42, and the two most similar views differ by 6.5 and 54.
_MAX_DIFFERENCE, _MAX_SERVER_DIFFERENCE = (0.8, 48), (5.0, 90)


def check_picture(name: str, data: bytes) -> None:
    """Fail if a screenshot differs from the stored one.

    Args:
        name: View and color scheme, such as ``chat-dark``.
        data: A PNG file.
    """
    path = (Path(WANTED) if WANTED else KEPT) / f"page-{name}.png"
    if WANTED:
        with Image.open(BytesIO(data)) as now:
            now.convert("RGB").quantize(256).save(path, optimize=True)
    if not path.exists():
        pytest.fail(f"{path.name} is missing in docs/images: run scripts/screenshots")
    differences = difference(name, data, path.read_bytes())
    assert not differences, f"{path.name}: {differences}; run scripts/screenshots to update it"


def difference(name: str, now: bytes, kept: bytes) -> str:
    """A description of the differences of two screenshots, or an empty text.

    Args:
        name: As in `check_picture`. The server view depends on the engines that are loaded.
        now: A PNG file.
        kept: The stored PNG file.
    """
    (size, cells), (wanted, others) = greys(now), greys(kept)
    if size != wanted:
        return f"{size} is not {wanted}"
    apart = [abs(one - other) for one, other in zip(cells, others, strict=True)]
    mean, worst = sum(apart) / len(apart), max(apart)
    most_mean, max_cell = _MAX_SERVER_DIFFERENCE if name.startswith("server-") else _MAX_DIFFERENCE
    if mean <= most_mean and worst <= max_cell:
        return ""
    row, column = divmod(apart.index(worst), _GRID[0])
    return f"differs by {mean:.2f} in the mean, and by {worst} in row {row}, column {column}"


def greys(data: bytes) -> tuple[tuple[int, int], bytes]:
    """The size of an image, and the gray levels of a coarse grid."""
    with Image.open(BytesIO(data)) as one:
        return one.size, one.convert("L").resize(_GRID, Image.Resampling.BOX).tobytes()
