from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.batch_kills import noise

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.wav").write_bytes(noise(number))
    (folder / "deep/again.wav").write_bytes(noise(0))
    (folder / "broken.wav").write_bytes(b"this is no sound")
    (folder / "notes.txt").write_text("not media")
    return folder
