"""What the ffprobe program says of a file, and the pictures that ffmpeg finds in it.

With a cache either is asked once about the same bytes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support import programs
from support.cache import digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.cache import Cache


def describe(path: Path, cache: Cache | None = None) -> dict[str, Any]:
    words = ("-v", "error", "-show_format", "-show_streams", "-show_chapters", "-of", "json")
    told = _once(cache, "ffprobe", path, lambda: programs.run("ffprobe", *words, path).stdout)
    described: dict[str, Any] = json.loads(told)
    return described


def picture(path: Path, cache: Cache | None = None) -> bytes:
    """The bytes of the first picture stream of `path`, not re-encoded."""
    words = ("-map", "0:v:0", "-c", "copy", "-f", "image2pipe", "-")
    return _once(cache, "picture", path, lambda: programs.ffmpeg("-i", path, *words).stdout)


def _once(cache: Cache | None, what: str, path: Path, ask: Callable[[], bytes]) -> bytes:
    if cache is None:
        return ask()
    recipe = f"{what} {path.suffix} {digest(path)}"
    return cache.make("asked", "", recipe, lambda fresh: _write(fresh, ask())).read_bytes()


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def lower(tags: dict[str, str]) -> dict[str, str]:
    return {key.lower(): text for key, text in tags.items()}
