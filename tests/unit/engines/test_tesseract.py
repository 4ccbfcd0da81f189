"""How the program tesseract is asked; what it reads is tested with the program itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.engines.base import EngineSink, Request, Token
from polymux.engines.ocr.tesseract import TesseractEngine
from polymux.service.model import Upload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Says as the text of a page how many threads it may have.
PROGRAM = """#!/bin/sh
if [ "$*" = --list-langs ]; then
    printf 'List of available languages (2):\\neng\\nosd\\n'
else
    cat > /dev/null
    printf '5\\t1\\t1\\t1\\t1\\t1\\t0\\t0\\t9\\t9\\t90\\tlimit %s, threads %s\\n' \\
        "$OMP_THREAD_LIMIT" "$OMP_NUM_THREADS"
fi
"""


class Silent(EngineSink):
    def log(self, line: str) -> None:
        raise AssertionError(line)

    def report(self, progress: float) -> None:
        assert progress == 1.0

    def chunk(self, data: Mapping[str, Any]) -> None:
        raise AssertionError(data)

    def draft(self, expected_bytes: int = 0) -> Path:
        raise AssertionError(expected_bytes)


def asked(folder: Path, width: int, height: int) -> Request:
    pixels = folder / "pixels"
    pixels.write_bytes(bytes(3 * width * height))
    values = {
        "pictures": [{"width": width, "height": height, "channels": 3}],
        "pixels_0": Upload(pixels, "a", "", 3 * width * height),
    }
    return Request("read_text", "", "", values, frozenset())


def loaded(folder: Path) -> TesseractEngine:
    program = folder / "tesseract"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    engine = TesseractEngine()
    assert engine.load({"program": str(program)}) == {"languages": ["eng"]}
    return engine


@pytest.mark.parametrize("turned", [False, True])
def test_pages_with_longer_sides_than_it_reads_are_refused(tmp_path: Path, turned: bool) -> None:
    """It fails at them with no word of why; and none is read where a later one is too long."""
    engine = loaded(tmp_path)
    for longest in (32_767, 32_768):
        width, height = (2, longest) if turned else (longest, 2)
        request = asked(tmp_path, width, height)
        if longest == 32_767:
            assert engine.run(request, Silent(), Token()).value["text"]
            continue
        with pytest.raises(polymux.RequestTooLargeError) as refused:
            engine.run(request, Silent(), Token())
        assert refused.value.status == 413
        assert f"{width}x{height} pixels" in str(refused.value)
        assert "32,767" in str(refused.value)


def test_it_has_one_thread_however_many_its_engine_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two OpenMP threads of it are many times slower than one; its engine may have more."""
    for name in ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "4")
    made = loaded(tmp_path).run(asked(tmp_path, 4, 2), Silent(), Token())
    assert made.value == {"text": "limit 1, threads 1"}
