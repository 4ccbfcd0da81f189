"""Where an engine writes its results in a benchmark."""

import tempfile
from pathlib import Path
from typing import Any

from polymux.engines.base import EngineSink


class Drafts(EngineSink):
    """Gives each result a new file, and ignores the rest."""

    def log(self, line: str) -> None:
        pass

    def report(self, progress: float) -> None:
        pass

    def chunk(self, data: Any) -> None:
        pass

    def draft(self, expected_bytes: int = 0) -> Path:  # noqa: ARG002 - as engines call it
        return Path(tempfile.mkdtemp()) / "draft"
