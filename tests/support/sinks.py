"""Sinks for engines in the test process."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.engines.base import EngineSink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class HeardSink(EngineSink):
    """Keeps everything an engine reports; `on_report` is called with each progress."""

    def __init__(self, folder: Path, on_report: Callable[[float], object] | None = None) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.progress: list[float] = []
        self.previews: list[bytes] = []
        self.chunks: list[Mapping[str, Any]] = []
        self.drafts = 0
        self._on_report = on_report
        # Not by `id`, which an earlier sink may have had.
        self._drafts = Path(tempfile.mkdtemp(prefix="drafts-", dir=folder))

    def log(self, line: str) -> None:
        self.lines.append(line)

    def report(self, progress: float) -> None:
        self.progress.append(progress)
        if self._on_report is not None:
            self._on_report(progress)

    def chunk(self, data: Mapping[str, Any]) -> None:
        self.chunks.append(data)

    def preview(self, data: bytes, content_type: str) -> None:
        assert content_type == "image/jpeg"
        self.previews.append(data)

    @property
    def seed(self) -> int:
        return int(re.findall(r"\bseed\b[^\d\n]*(\d+)", "\n".join(self.lines))[0])

    @property
    def files(self) -> list[Path]:
        return list(self._drafts.iterdir())

    def draft(self, expected_bytes: int = 0) -> Path:
        self.drafts += 1
        return self._drafts / f"draft-{self.drafts}"
