"""The ffprobe program's report about a file, and the images that ffmpeg finds in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support import programs

if TYPE_CHECKING:
    from pathlib import Path

    from support.cache import Cache


def describe(path: Path, cache: Cache) -> dict[str, Any]:
    words = ("-v", "error", "-show_format", "-show_streams", "-show_chapters", "-of", "json")
    output = cache.ask("ffprobe", path, lambda: programs.run("ffprobe", *words, path).stdout)
    described: dict[str, Any] = json.loads(output)
    return described


def picture(path: Path, cache: Cache) -> bytes:
    """The bytes of the first picture stream of `path`, not re-encoded."""
    words = ("-map", "0:v:0", "-c", "copy", "-f", "image2pipe", "-")
    return cache.ask("picture", path, lambda: programs.ffmpeg("-i", path, *words).stdout)


def lower(tags: dict[str, str]) -> dict[str, str]:
    return {key.lower(): text for key, text in tags.items()}
