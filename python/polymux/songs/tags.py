"""Metadata of music files: title, artist and cover."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from polymux.songs.text_normalization import tidy

if TYPE_CHECKING:
    from polymux.media.results import Cover, MediaInfo
    from polymux.songs.results import IndexedSong

EMBEDDED = "embedded"
LARGEST_COVER_BYTES = 10 << 20
_COVER_NAMES = ("cover", "folder", "front")
_COVER_TYPES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png"}
_FRONT_COVER = 3
_YEAR = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)(?!\d)")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER_IN_FRONT = re.compile(r"\d{1,3}(?:[-.]\d{1,3})?[\s._-]+(?=\S)")
_BETWEEN = re.compile(r"\s+[-\u2013\u2014]\s+")


class SongTags(NamedTuple):
    """Metadata of a song; unknown fields are empty."""

    title: str
    artist: str
    album: str
    year: int | None
    mbid: str
    cover: bytes | None


def tags_of(path: bytes, info: MediaInfo) -> SongTags:
    """Return the metadata from a file's tags. Without a title, it comes from the file name."""
    tags: dict[str, str] = {}
    # Ogg and Opus have tags on the stream, other formats on the container. The stream's come first.
    streams = [one.tags for one in info.streams if one.index == info.best_audio_stream]
    for found in (*streams, info.tags):
        for name, value in found.items():
            tags.setdefault("".join(char for char in name.lower() if char.isalnum()), value)

    def text(*names: str) -> str:
        return next((tidied for one in names if (tidied := tidy(tags.get(one, "")))), "")

    title, artist = text("title"), text("artist", "albumartist", "performer", "author")
    if not title:
        by, title = named(path)
        artist = artist or by
    year = _YEAR.search(text("date", "originaldate", "year", "tyer", "tdrc"))
    mbid = text("musicbrainztrackid", "musicbrainzrecordingid").lower()
    return SongTags(
        title,
        artist,
        text("album"),
        int(year[0]) if year else None,
        mbid if _ID.fullmatch(mbid) else "",
        EMBEDDED.encode() if info.cover is not None else cover_beside(path),
    )


def named(path: bytes) -> tuple[str, str]:
    """Return artist and title from a file name such as ``01 Artist - Title.mp3``.

    Example:
        >>> from polymux.songs.tags import named
        >>> named(b"/music/07 - Queen - Innuendo.flac"), named(b"/music/Untitled.mp3")
        (('Queen', 'Innuendo'), ('', 'Untitled'))
    """
    stem = tidy(os.path.splitext(os.path.basename(path))[0].decode(errors="replace"))  # noqa: PTH119, PTH122
    stem = tidy(stem.replace("_", " ")) or stem
    stem = _NUMBER_IN_FRONT.sub("", stem, count=1) or stem
    parts = _BETWEEN.split(stem.strip(" -"), maxsplit=1)
    if len(parts) == 2 and all(parts):
        return parts[0], parts[1]
    return "", stem


def cover_beside(path: bytes) -> bytes | None:
    """Return the path of a cover image in the file's directory, or None."""
    folder = os.path.dirname(path)  # noqa: PTH120
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return None
    found: dict[str, bytes] = {}
    for name in names:
        stem, suffix = os.path.splitext(os.fsdecode(name).lower())  # noqa: PTH122
        if stem in _COVER_NAMES and suffix in _COVER_TYPES:
            found.setdefault(stem, name)
    best = next((found[stem] for stem in _COVER_NAMES if stem in found), None)
    return None if best is None else os.path.join(folder, best)  # noqa: PTH118


def read_cover(song: IndexedSong) -> Cover | None:
    """Read the cover image of a song; None if it is missing or larger than 10 MiB."""
    if song.cover is None:
        return None
    if song.cover == EMBEDDED:
        from polymux.media.probe import probe

        cover = probe(song.path).cover
        return cover if cover is not None and len(cover.data) <= LARGEST_COVER_BYTES else None
    return _picture(Path(song.cover))


def _picture(path: Path) -> Cover | None:
    from polymux.media.results import Cover

    try:
        data = read_start(path, LARGEST_COVER_BYTES + 1)
    except OSError:
        return None
    if not data or len(data) > LARGEST_COVER_BYTES:
        return None
    return Cover(_COVER_TYPES[path.suffix.lower()], "", _FRONT_COVER, data)


def read_start(path: Path, max_bytes: int) -> bytes:
    """Read the start of a file; empty unless it is a regular file. Never blocks on a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(max_bytes) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
