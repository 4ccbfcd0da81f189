"""Song pages and cover images, and their URLs.

A cover is a PNG, JPEG or WebP image, detected by its content, or a generated image. The page is
plain HTML without scripts; it loads only the cover.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from polymux._util.atomic_file import write_atomically
from polymux._util.text import clock, printable
from polymux.errors import OutputError, PolymuxError
from polymux.songs.tags import EMBEDDED, LARGEST_COVER_BYTES, read_start

if TYPE_CHECKING:
    from polymux.service.store import Store
    from polymux.songs.results import IndexedSong

#: Paths of `SignedAddresses` after the base URL.
PAGES = "/songs/"
COVER = "/cover"
AUDIO = "/audio"
DRAWN = "image/svg+xml"
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", DRAWN: ".svg", "image/webp": ".webp"}
#: Signatures at the start of image files.
_BEGINNINGS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
_MAX_SIGNATURE_BYTES = 12
#: Dark enough for white text.
_COLOURS = ("#34557a", "#6b3f66", "#3d6b4a", "#7a4a2e", "#4a4a7d", "#6d5a1f", "#2f6a6d", "#74394a")
_PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400" viewBox="0 0 400 400">\
<rect width="400" height="400" fill="{colour}"/>\
<text x="200" y="200" fill="#fff" font-family="sans-serif" font-size="150" text-anchor="middle" \
dominant-baseline="central">{initials}</text></svg>
"""
_STYLE = """\
body{margin:10vh auto;max-width:24em;padding:0 1em;font:1.1em sans-serif;text-align:center}\
img{width:100%;max-width:400px;border-radius:.5em}h1{font-size:1.5em;overflow-wrap:anywhere}\
p{margin:.3em;overflow-wrap:anywhere}"""
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="referrer" content="no-referrer">
<title>{name}</title>
<style>{style}</style>
</head>
<body>
<img src="{cover}" alt="" width="400" height="400">
<h1>{title}</h1>
{lines}
</body>
</html>
"""
#: The style is allowed by its digest (CSP 3, 2.3.1); all other styles are blocked.
POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'sha256-"
    f"{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def song_page(song: IndexedSong, cover: str) -> bytes:
    """Return the song's page in UTF-8: title, artist, album, year and length, but no file path.

    Example:
        >>> import polymux
        >>> from polymux.songs.pages import song_page
        >>> with polymux.SongIndex("songs") as index:
        ...     _ = index.add("song.flac")
        ...     page = song_page(index.search("song")[0], "1/cover")
        >>> b"<h1>Song</h1>" in page
        True
    """
    album = song.album
    if song.year is not None:
        album = f"{album}, {song.year}" if album else str(song.year)
    details = (song.artist, album, clock(song.duration_s))
    text = _PAGE.format(
        name=_text(song.name),
        style=_STYLE,
        cover=escape(cover),
        title=_text(song.title),
        lines="\n".join(f"<p>{_text(one)}</p>" for one in details if one),
    )
    return text.encode("utf-8", "replace")


def _text(text: str) -> str:
    return escape(printable(text))


class Picture(NamedTuple):
    """A cover image with its content type, detected from its bytes."""

    content_type: str
    data: bytes


def picture_type(data: bytes) -> str | None:
    r"""Detect the type of an image by its first 12 bytes; None unless PNG, JPEG or WebP.

    Example:
        >>> from polymux.songs.pages import picture_type
        >>> picture_type(b"\xff\xd8\xff\xe0 JFIF"), picture_type(b"<svg onload='...'>")
        ('image/jpeg', None)
    """
    for beginning, content_type in _BEGINNINGS:
        if data.startswith(beginning):
            return content_type
    is_webp = data[:4] == b"RIFF" and data[8:_MAX_SIGNATURE_BYTES] == b"WEBP"
    return "image/webp" if is_webp else None


def cover_of(song: IndexedSong) -> Picture:
    """Return a song's current cover if it has at most 10 MiB, else a generated image.

    Never fails, even if the song's file or the cover file is missing or invalid.
    """
    try:
        cover = song.read_cover()
    except (OSError, PolymuxError):
        cover = None
    kind = None if cover is None else picture_type(cover.data)
    return drawn(song) if cover is None or kind is None else Picture(kind, cover.data)


def picture_beside(song: IndexedSong) -> Path | None:
    """Return the path of a song's cover if it is a separate image file that can be shown."""
    if song.cover is None or song.cover == EMBEDDED:
        return None
    path = Path(song.cover).absolute()
    try:
        fits = path.stat().st_size <= LARGEST_COVER_BYTES
        return path if fits and picture_type(read_start(path, _MAX_SIGNATURE_BYTES)) else None
    except OSError:
        return None


def drawn(song: IndexedSong) -> Picture:
    """Generate a cover for a song without one: its initials on a color derived from its name."""
    digest = hashlib.sha256(song.name.encode("utf-8", "replace")).digest()
    colour = _COLOURS[digest[0] % len(_COLOURS)]
    text = _PICTURE.format(colour=colour, initials=escape(initials(song)))
    return Picture(DRAWN, text.encode("utf-8", "replace"))


def initials(song: IndexedSong) -> str:
    """Return the initials of the first two words of the artist, else of the title."""
    words = (song.artist or song.title).split()
    letters = [next((char for char in word if char.isalnum()), "") for word in words]
    first = [letter for letter in letters if letter][:2]
    return "".join(first).upper()[:2] or "?"


class SignedAddresses:
    """URLs of song pages and covers on a server. They are signed and expire.

    Args:
        base_url: Prefix of the URLs.
        store: Store whose secrets sign the URLs.
        retention_s: Maximum lifetime of the URLs in seconds.
    """

    def __init__(self, base_url: str, store: Store, retention_s: float) -> None:
        self._base_url = base_url
        self._store = store
        self._retention_s = retention_s

    def page(self, song: IndexedSong) -> str:
        """URL at MusicBrainz if the tags have the recording's ID, else on this server."""
        return song.url if song.mbid else self._link(f"{PAGES}{song.id}")

    def cover(self, song: IndexedSong) -> str:
        """URL of the cover on this server, which generates missing covers."""
        return self._link(f"{PAGES}{song.id}{COVER}")

    def audio(self, song: IndexedSong) -> str:
        """URL of the song's file on this server."""
        return self._link(f"{PAGES}{song.id}{AUDIO}")

    def _link(self, path: str) -> str:
        return f"{self._base_url}{path}?{signature(self._store, path, self._retention_s)}"


def signature(store: Store, path: str, retention_s: float) -> str:
    """Return the signed query of a URL. It expires with the secrets at the latest."""
    return store.links.query(path, store.clock() + min(retention_s, store.links.max_lifetime_s))


class FileAddresses:
    """URLs of song files and covers on this machine.

    Args:
        folder: Directory for covers that are not separate files; created when needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def page(self, song: IndexedSong) -> str:
        """URL at MusicBrainz if the tags have the recording's ID, else of the file."""
        return song.url

    def cover(self, song: IndexedSong) -> str:
        """URL of the separate cover file, else a file with the embedded or generated cover."""
        beside = picture_beside(song)
        if beside is not None:
            return beside.as_uri()
        stem = _stem(song)
        for extension in _EXTENSIONS.values():
            path = self._folder / f"{stem}{extension}"
            if path.is_file():
                return path.as_uri()
        picture = cover_of(song)
        path = self._folder / f"{stem}{_EXTENSIONS[picture.content_type]}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(path, picture.data, overwrite=True)
        except (OSError, OutputError):
            # A failure to write the cover must not fail the search.
            return f"data:image/svg+xml;base64,{b64encode(drawn(song).data).decode()}"
        return path.as_uri()


def _stem(song: IndexedSong) -> str:
    """Return a file name that changes when the song's file, cover or name changes."""
    try:
        status = song.path.stat()
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        state = None
    known = repr((os.fsencode(song.path), state, song.cover, song.name))
    return hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()[:40]
