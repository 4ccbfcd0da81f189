from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux

if TYPE_CHECKING:
    from pathlib import Path


def convert(inputs: Any, out: Path, **more: Any) -> polymux.BatchReport:
    return polymux.batch("convert_to_mp3", inputs, output_dir=out, bitrate="64k", **more)


def marks(out: Path) -> dict[str, tuple[int, int]]:
    found = {path.relative_to(out).as_posix(): path.stat() for path in out.rglob("*.mp3")}
    return {name: (status.st_ino, status.st_mtime_ns) for name, status in found.items()}
