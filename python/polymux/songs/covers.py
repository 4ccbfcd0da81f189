"""Covers of songs for whoever shows them: PNG, JPEG or WebP by their bytes, else a drawn one."""

from __future__ import annotations

import hashlib
import os
import stat
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from polymux.errors import PolymuxError
from polymux.songs.tags import EMBEDDED, LARGEST_COVER_BYTES

if TYPE_CHECKING:
    from polymux.songs.results import CatalogueSong

DRAWN = "image/svg+xml"
#: By what a file begins.
_BEGINNINGS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
_MAX_SIGNATURE_BYTES = 12
#: Dark enough for white letters.
_COLOURS = ("#34557a", "#6b3f66", "#3d6b4a", "#7a4a2e", "#4a4a7d", "#6d5a1f", "#2f6a6d", "#74394a")
_PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400" viewBox="0 0 400 400">\
<rect width="400" height="400" fill="{colour}"/>\
<text x="200" y="200" fill="#fff" font-family="sans-serif" font-size="150" text-anchor="middle" \
dominant-baseline="central">{initials}</text></svg>
"""


class Picture(NamedTuple):
    """A cover.

    Attributes:
        content_type: What it is, by its bytes.
        data: They.
    """

    content_type: str
    data: bytes


def picture_type(data: bytes) -> str | None:
    r"""What a picture is by its first 12 bytes; None for all but PNG, JPEG and WebP.

    Example:
        >>> from polymux.songs.covers import picture_type
        >>> picture_type(b"\xff\xd8\xff\xe0 JFIF"), picture_type(b"<svg onload='...'>")
        ('image/jpeg', None)
    """
    for beginning, content_type in _BEGINNINGS:
        if data.startswith(beginning):
            return content_type
    is_webp = data[:4] == b"RIFF" and data[8:_MAX_SIGNATURE_BYTES] == b"WEBP"
    return "image/webp" if is_webp else None


def cover_of(song: CatalogueSong) -> Picture:
    """A song's cover as it is now, of 10 MiB at most; else the one that `drawn` makes.

    Whatever the song's file or the picture beside it have become, this gives a picture.
    """
    try:
        if song.cover == EMBEDDED:
            embedded = song.read_cover()
            data = b"" if embedded is None else embedded.data
        else:
            data = b"" if song.cover is None else _read(Path(song.cover), LARGEST_COVER_BYTES + 1)
    except (OSError, PolymuxError):
        data = b""
    kind = picture_type(data)
    if kind is None or len(data) > LARGEST_COVER_BYTES:
        return drawn(song)
    return Picture(kind, data)


def picture_beside(song: CatalogueSong) -> Path | None:
    """The file of a song's cover, where that is one of its own that can be shown."""
    if song.cover is None or song.cover == EMBEDDED:
        return None
    path = Path(song.cover).absolute()
    try:
        fits = path.stat().st_size <= LARGEST_COVER_BYTES
        return path if fits and picture_type(_read(path, _MAX_SIGNATURE_BYTES)) else None
    except OSError:
        return None


def _read(path: Path, max_bytes: int) -> bytes:
    """The beginning of a file; of what is none, such as a pipe that nobody writes to, nothing."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(max_bytes) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


def drawn(song: CatalogueSong) -> Picture:
    """The initials of a song that has no cover, on a colour of its own."""
    digest = hashlib.sha256(song.name.encode("utf-8", "replace")).digest()
    colour = _COLOURS[digest[0] % len(_COLOURS)]
    text = _PICTURE.format(colour=colour, initials=escape(initials(song)))
    return Picture(DRAWN, text.encode("utf-8", "replace"))


def initials(song: CatalogueSong) -> str:
    """The first letters of the first two words of its artist, else of its title.

    Example:
        >>> import polymux
        >>> from polymux.songs.covers import initials
        >>> with polymux.Catalogue("songs") as catalogue:
        ...     _ = catalogue.add("song.flac")
        ...     initials(catalogue.search("song")[0])
        'S'
    """
    words = (song.artist or song.title).split()
    letters = [next((char for char in word if char.isalnum()), "") for word in words]
    first = [letter for letter in letters if letter][:2]
    return "".join(first).upper()[:2] or "?"
