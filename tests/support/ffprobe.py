"""What the ffprobe program says of a file, and the pictures that ffmpeg finds in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support import programs

if TYPE_CHECKING:
    from pathlib import Path


def describe(path: Path) -> dict[str, Any]:
    answer = programs.run(
        "ffprobe", "-v", "error", "-show_format", "-show_streams", "-show_chapters",
        "-of", "json", path,
    )  # fmt: skip
    described: dict[str, Any] = json.loads(answer.stdout)
    return described


def picture(path: Path) -> bytes:
    """The bytes of the first picture stream of `path`, not re-encoded."""
    return programs.ffmpeg(
        "-i", path, "-map", "0:v:0", "-c", "copy", "-f", "image2pipe", "-"
    ).stdout


def lower(tags: dict[str, str]) -> dict[str, str]:
    return {key.lower(): text for key, text in tags.items()}
