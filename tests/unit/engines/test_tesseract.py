"""How the program tesseract is asked; what it reads is tested with the program itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.engines.base import EngineSink, Request, Token
from polymux.engines.tesseract import TesseractEngine
from polymux.service.work import Upload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

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


def test_it_has_one_thread_however_many_its_engine_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two OpenMP threads of it are many times slower than one; its engine may have more."""
    for name in ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "4")
    program = tmp_path / "tesseract"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    pixels = tmp_path / "pixels"
    pixels.write_bytes(bytes(3 * 4 * 2))
    values = {
        "pictures": [{"width": 4, "height": 2, "channels": 3}],
        "pixels_0": Upload(pixels, "a", "", 24),
    }
    engine = TesseractEngine()
    assert engine.load({"program": str(program)}) == {"languages": ["eng"]}
    made = engine.run(Request("read_text", "", "", values, frozenset()), Silent(), Token())
    assert made.value == {"text": "limit 1, threads 1"}
