"""What holds the page against its pictures can tell one from another."""

from __future__ import annotations

from io import BytesIO

import pytest
from browser.pictures import KEPT, difference
from PIL import Image, ImageDraw

NAMES = sorted(one.stem.removeprefix("page-") for one in KEPT.glob("page-*.png"))


def kept(name: str) -> bytes:
    return (KEPT / f"page-{name}.png").read_bytes()


def painted(name: str, box: tuple[int, int, int, int]) -> bytes:
    """A picture in which a box has the colour of the ground beside it."""
    with Image.open(BytesIO(kept(name))) as one:
        picture = one.convert("RGB")
    ground = picture.getpixel((box[0] - 4, box[1] - 4))
    ImageDraw.Draw(picture).rectangle(box, fill=ground)
    out = BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def test_a_picture_is_like_itself_and_like_no_other() -> None:
    assert len(NAMES) == 12
    pictures = {name: kept(name) for name in NAMES}
    alike = {
        (name, other) for name, one in pictures.items() for other, another in pictures.items()
        if not difference(name, another, one)
    }  # fmt: skip
    assert alike == {(name, name) for name in NAMES}


@pytest.mark.parametrize(
    ("name", "box"),
    [
        pytest.param("playground-light", (272, 176, 800, 420), id="cards"),
        pytest.param("playground-dark", (20, 76, 215, 320), id="places"),
        pytest.param("jobs-light", (289, 263, 801, 647), id="result"),
    ],
)
def test_what_is_missing_is_told(name: str, box: tuple[int, int, int, int]) -> None:
    assert "differs" in difference(name, painted(name, box), kept(name))
