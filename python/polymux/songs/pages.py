"""The page that a server shows of a song: plain HTML that runs nothing and loads one picture."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from polymux._util.text import clock, printable

if TYPE_CHECKING:
    from polymux.songs.results import CatalogueSong

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
#: The style by its digest (CSP 3, 2.3.1): no other one is taken, wherever it would come from.
POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'sha256-"
    f"{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def song_page(song: CatalogueSong, cover: str) -> bytes:
    """The page in UTF-8: title, artist, album, year and length; nothing of where its file is.

    Args:
        song: The song.
        cover: Address of its cover.

    Example:
        >>> import polymux
        >>> from polymux.songs.pages import song_page
        >>> with polymux.Catalogue("songs") as catalogue:
        ...     _ = catalogue.add("song.flac")
        ...     page = song_page(catalogue.search("song")[0], "1/cover")
        >>> b"<h1>Song</h1>" in page
        True
    """
    album = song.album
    if song.year is not None:
        album = f"{album}, {song.year}" if album else str(song.year)
    told = (song.artist, album, clock(song.duration_s))
    text = _PAGE.format(
        name=_text(song.name),
        style=_STYLE,
        cover=escape(cover),
        title=_text(song.title),
        lines="\n".join(f"<p>{_text(one)}</p>" for one in told if one),
    )
    return text.encode("utf-8", "replace")


def _text(text: str) -> str:
    return escape(printable(text))
