"""The ffmpeg program's output for a file: the reference of identity tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support import programs
from support.cache import Cache, digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def mp3(
    cache: Cache,
    source: Path,
    arguments: Sequence[str] = ("-b:a", "128k"),
    *,
    input_arguments: Sequence[str] = (),
) -> Path:
    """The MP3 of `ffmpeg -i source -vn -c:a libmp3lame arguments`, made once."""
    command = [*input_arguments, "-i", str(source), "-vn", "-c:a", "libmp3lame", *arguments]

    def build(path: Path) -> None:
        programs.ffmpeg(*command, "-f", "mp3", path, timeout_s=300)

    recipe = f"{digest(source)} {[*input_arguments, '-i', *arguments]}"
    return cache.make("reference", ".mp3", recipe, build)


def pcm(
    cache: Cache,
    source: Path,
    rate_hz: int = 16_000,
    channels: int = 1,
    *,
    arguments: Sequence[str] = (),
    input_arguments: Sequence[str] = (),
) -> bytes:
    """The decoded samples as interleaved little-endian float32, by the ffmpeg program."""
    words = ["-vn", *arguments, "-ar", str(rate_hz), "-ac", str(channels), "-f", "f32le"]
    given = [*input_arguments, "-i", source, *words, "-c:a", "pcm_f32le", "-"]
    what = [*input_arguments, *words]
    return cache.ask(what, source, lambda: programs.ffmpeg(*given, timeout_s=300).stdout)
