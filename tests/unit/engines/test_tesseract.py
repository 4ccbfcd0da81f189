from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.engines.base import Request, Token
from polymux.engines.ocr import rapidocr, tesseract
from polymux.engines.ocr.rapidocr import RapidOcrEngine
from polymux.engines.ocr.tesseract import TesseractEngine
from polymux.service.model import Upload
from support.sinks import HeardSink

if TYPE_CHECKING:
    from pathlib import Path

#: A fake tesseract, which returns its thread limits as the text of every page.
PROGRAM = """#!/bin/sh
if [ "$*" = --list-langs ]; then
    printf 'List of available languages (2):\\neng\\nosd\\n'
else
    cat > /dev/null
    printf '5\\t1\\t1\\t1\\t1\\t1\\t0\\t0\\t9\\t9\\t90\\tlimit %s, threads %s\\n' \\
        "$OMP_THREAD_LIMIT" "$OMP_NUM_THREADS"
fi
"""


def asked(folder: Path, width: int, height: int) -> Request:
    pixels = folder / "pixels"
    pixels.write_bytes(bytes([255, 0, 0]) * (width * height))
    with pixels.open("r+b") as file:
        file.write(bytes(3))  # A blank page is not read.
    values = {
        "pictures": [{"width": width, "height": height, "channels": 3, "bits": 8}],
        "pixels_0": Upload(pixels, "a", "", 3 * width * height),
    }
    return Request("read_text", "", "", values, frozenset())


def test_rapidocr_gives_up_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of its pieces or rotations."""
    engine = RapidOcrEngine()
    engine._engines.put(lambda _: time.sleep(0.3))
    monkeypatch.setattr(rapidocr, "MAX_PAGE_S", 0.5)
    with pytest.raises(polymux.UnprocessableEntityError) as late:
        engine.run(asked(tmp_path, 20, 20), HeardSink(tmp_path), Token())
    assert late.value.code == "page_timeout"


def loaded(folder: Path) -> TesseractEngine:
    program = folder / "tesseract"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    engine = TesseractEngine()
    assert engine.load({"program": str(program)}) == {"model": "tesseract", "languages": ["eng"]}
    return engine


def test_a_page_has_limited_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding its orientation included."""
    engine = loaded(tmp_path)
    monkeypatch.setattr(tesseract, "MAX_PAGE_S", 0.5)
    slow = PROGRAM.replace("    cat > /dev/null", "    cat > /dev/null; exec sleep 60")
    (tmp_path / "tesseract").write_text(slow)
    with pytest.raises(polymux.UnprocessableEntityError) as late:
        engine.run(asked(tmp_path, 20, 20), HeardSink(tmp_path), Token())
    assert late.value.code == "page_timeout"


@pytest.mark.parametrize("turned", [False, True])
def test_pages_with_longer_sides_than_it_reads_are_refused(tmp_path: Path, turned: bool) -> None:
    """Tesseract fails without a reason at such pages. If one page is too long, none is read."""
    engine = loaded(tmp_path)

    def read(longest: int) -> str:
        sides = (2, longest) if turned else (longest, 2)
        found = engine.run(asked(tmp_path, *sides), HeardSink(tmp_path), Token())
        return str(found.value["text"])

    assert read(32_767)
    words = "2x32768" if turned else "32768x2"
    with pytest.raises(polymux.RequestTooLargeError, match=f"{words}.*32767") as refused:
        read(32_768)
    assert refused.value.status == 413
