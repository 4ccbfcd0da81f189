"""Pictures of the page against those in docs/images: loosely, but so that another view is told."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

KEPT = Path(__file__).parents[2] / "docs" / "images"
#: Where new pictures go, for `scripts/screenshots`.
WANTED = os.environ.get("POLYMUX_SCREENSHOTS")
#: Fine enough for a card or a button, too coarse for how a font is drawn.
_GRID = (48, 32)
#: Greys by which pictures may differ: in the mean, and in one cell. Measured were 0.3 and 31 at
#: most, and 3.5 and 51 where the server's engines were loaded or not; a few cards that are missing
#: make 1.1 and 42, and the two views that are most alike differ by 6.5 and 54.
_MAX_DIFFERENCE, _MAX_SERVER_DIFFERENCE = (0.8, 48), (5.0, 90)


def check_picture(name: str, data: bytes) -> None:
    """Fails where a picture is not like the one that is kept.

    Args:
        name: View and colour scheme, such as ``chat-dark``.
        data: A PNG file.
    """
    path = (Path(WANTED) if WANTED else KEPT) / f"page-{name}.png"
    if WANTED:
        with Image.open(BytesIO(data)) as now:
            now.convert("RGB").quantize(256).save(path, optimize=True)
    if not path.exists():
        pytest.fail(f"{path.name} is not in docs/images: scripts/screenshots makes it")
    told = difference(name, data, path.read_bytes())
    assert not told, f"{path.name}: {told}; scripts/screenshots makes the pictures anew"


def difference(name: str, now: bytes, kept: bytes) -> str:
    """What is too different between two pictures, in words; empty where nothing is.

    Args:
        name: As in `check_picture`: the server's view has engines that are loaded or not.
        now: A PNG file.
        kept: Another.
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
    """The size of a picture, and its greys in a few cells."""
    with Image.open(BytesIO(data)) as one:
        return one.size, one.convert("L").resize(_GRID, Image.Resampling.BOX).tobytes()
