"""Media for tests of remuxing, and lists of their packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support import programs

if TYPE_CHECKING:
    from pathlib import Path

    from support.cache import Cache

PICTURE = ("-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=2")
SOUND = ("-f", "lavfi", "-i", "sine=duration=2:sample_rate=48000")
VIDEO_CODECS = {
    "h264": ("-c:v", "libx264", "-bf", "2"),
    "hevc": ("-c:v", "libx265", "-x265-params", "log-level=error"),
    "av1": ("-c:v", "libaom-av1", "-cpu-used", "8"),
    "vp8": ("-c:v", "libvpx", "-deadline", "realtime"),
    "vp9": ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"),
    "mpeg4": ("-c:v", "mpeg4"),
}
AUDIO_CODECS = {
    "aac": ("-c:a", "aac"),
    "ac3": ("-c:a", "ac3"),
    "eac3": ("-c:a", "eac3"),
    "mp3": ("-c:a", "libmp3lame"),
    "opus": ("-c:a", "libopus"),
    "flac": ("-c:a", "flac", "-strict", "-2"),
    "alac": ("-c:a", "alac"),
    "vorbis": ("-c:a", "libvorbis"),
}


@dataclass(frozen=True)
class Packet:
    """One line of FFmpeg's framemd5, times in seconds."""

    pts_s: float
    size: int
    md5: str


def packets(cache: Cache, path: Path, stream: str) -> list[Packet]:
    """The packets of a stream, cached by the file's bytes."""
    wanted = ("-map", f"0:{stream}:0", "-c", "copy", "-copyts", "-f", "framemd5")
    output = cache.ask(wanted, path, lambda: programs.ffmpeg("-i", path, *wanted, "-").stdout)
    found, time_base = [], 1.0
    for line in output.decode().splitlines():
        if line.startswith("#tb 0:"):
            numerator, denominator = line.split()[2].split("/")
            time_base = int(numerator) / int(denominator)
        elif not line.startswith("#"):
            _, _, pts, _, size, md5 = line.split(",")[:6]
            found.append(Packet(int(pts) * time_base, int(size), md5.strip()))
    return found


def contents(found: list[Packet]) -> list[tuple[int, str]]:
    return [(packet.size, packet.md5) for packet in found]


def one_offset(ours: list[Packet], theirs: list[Packet], within_s: float = 0.0011) -> float:
    """The constant offset of our times; fails if it varies."""
    offsets = [a.pts_s - b.pts_s for a, b in zip(ours, theirs, strict=True)]
    assert max(offsets) - min(offsets) <= 2 * within_s
    return sum(offsets) / len(offsets)


def make(path: Path, *arguments: str | Path) -> Path:
    programs.ffmpeg(*arguments, path)
    return path


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if "polymux" in path.name]


def make_parts(cache: Cache) -> Path:
    """A folder with a file for each codec: ``h264.mp4``, ``opus.webm``, ..."""
    recipe = f"{PICTURE} {SOUND} {VIDEO_CODECS} {AUDIO_CODECS}"
    return cache.make("parts", "", recipe, _make_parts)


def _make_parts(folder: Path) -> None:
    folder.mkdir()
    for codecs, source in ((VIDEO_CODECS, PICTURE), (AUDIO_CODECS, SOUND)):
        for name, arguments in codecs.items():
            suffix = ".webm" if name in ("vp8", "vp9", "opus", "vorbis") else ".mp4"
            make(folder / f"{name}{suffix}", *source, *arguments)


def part(parts: Path, codec: str) -> Path:
    return next(parts.glob(f"{codec}.*"))
