"""What both engines of OCR do alike: columns, and the languages that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from PIL import Image, ImageDraw, ImageFont
from polymux.runtime.settings import EngineSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEFT = ("The left column has", "several lines of text", "that belong together",
        "and are read first", "before the other one")  # fmt: skip
RIGHT = ("On the right stands", "what comes after it", "when a person reads",
         "the page as people", "do read their pages")  # fmt: skip
HEADING = "A heading over both of them as wide"


@pytest.fixture(scope="module", params=["rapidocr", "tesseract"])
def local(request: pytest.FixtureRequest) -> Iterator[polymux.Local]:
    with polymux.Local(engines={"ocr": EngineSettings(request.param, threads=1)}) as made:
        yield made


@pytest.mark.parametrize("distance", [420, 480, 560])
def test_columns_are_read_one_after_the_other(
    local: polymux.Local, tmp_path: Path, distance: int
) -> None:
    """Also where they stand so close that tesseract takes two lines for one."""
    page = Image.new("RGB", (1000, 420), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(28)
    draw.text((200, 20), HEADING, "black", font)
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        draw.text((40, 120 + number * 50), left, "black", font)
        draw.text((distance, 120 + number * 50), right, "black", font)
    page.save(tmp_path / "page.png")
    text = local.read_text(tmp_path / "page.png").text
    assert [line for line in text.splitlines() if line] == [HEADING, *LEFT, *RIGHT]


def test_strips_that_are_too_long_are_refused(local: polymux.Local, tmp_path: Path) -> None:
    """It is the picture's fault, and asking again is of no use."""
    Image.new("L", (60_000, 25), "white").save(tmp_path / "page.png")
    with pytest.raises(polymux.RequestTooLargeError, match=r"60000x25 pixels.*cut it") as refused:
        local.read_text(tmp_path / "page.png")
    assert (refused.value.status, refused.value.code) == (413, "too_large")


def test_what_finds_out_how_a_page_lies_is_no_language(
    local: polymux.Local, tmp_path: Path
) -> None:
    Image.new("RGB", (100, 100), "white").save(tmp_path / "page.png")
    with pytest.raises(polymux.BadRequestError) as refused:
        local.read_text(tmp_path / "page.png", lang="osd")
    assert refused.value.param == "lang"
    assert "osd" not in str(refused.value).replace("lang=osd", "").replace("installed: osd", "")
