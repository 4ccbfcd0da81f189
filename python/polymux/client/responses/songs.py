"""Results of the song operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from polymux._util.html_repr import embedded, is_address, link, table
from polymux._util.imports import IMPORTING
from polymux._util.text import shown
from polymux.client.responses._base import Response, all_nested, keep, member, wrong
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_COVER_BYTES = 1_000_000


class Song(Response):
    """A song.

    Attributes:
        name: Title and artist as "Title - Artist", or only the title (``song_name`` in the
            response).
        url: URL of a page about the song (``songid_url``).
        image_url: URL of the cover image (``song_image``).

    Example:
        >>> import polymux
        >>> polymux.Song.decode(b'{"song_name": "", "songid_url": "", "song_image": ""}').is_match
        False
    """

    __slots__ = ()
    _shown = ("name", "url")

    name: str = member("a string", name="song_name", absent="")
    url: str = member("a string", name="songid_url", absent="")
    image_url: str = member("a string", name="song_image", absent="")

    @property
    def is_match(self) -> bool:
        """Whether a song was found. Some servers return three empty strings if none matches."""
        return bool(self.name or self.url or self.image_url)

    def _repr_html_(self) -> str:
        """Return a card for notebooks. Downloads the cover with SSRF protection."""
        return f"<div>{_song_cover_html(self)}<div>{_song_name_html(self)}</div></div>"


class SongList(Response, Sequence[Song]):
    """Songs that match, best match first: an immutable sequence of `Song`.

    Example:
        >>> import polymux
        >>> songs = polymux.SongList.decode(b'[{"song_name": "Blue Danube - Strauss"}]')
        >>> len(songs), songs[0].name
        (1, 'Blue Danube - Strauss')
    """

    __slots__ = ("_songs",)
    _copied_by = "Use list() to get a copy"
    _songs: tuple[Song, ...]

    def __init__(self, value: Any, raw: bytes = b"", *, path: str = "") -> None:
        if not isinstance(value, list):
            raise wrong(path, "an array of songs", value)
        keep(self, "_value", value)
        keep(self, "_songs", all_nested(Song, value, path))
        keep(self, "_raw", raw)
        keep(self, "_answer", None)

    @property
    def extra(self) -> dict[str, Any]:
        """Always empty, because an array has no members. Each song has its own `extra`."""
        return {}

    @overload
    def __getitem__(self, index: int) -> Song: ...
    @overload
    def __getitem__(self, index: slice) -> SongList: ...
    def __getitem__(self, index: int | slice) -> Song | SongList:
        if isinstance(index, slice):
            return SongList(self._value[index])
        return self._songs[index]

    def __len__(self) -> int:
        return len(self._songs)

    def __iter__(self) -> Iterator[Song]:
        return iter(self._songs)

    def __hash__(self) -> int:
        return hash(self._songs)

    def __repr__(self) -> str:
        names = ", ".join(shown(song.name) for song in self._songs[:3])
        more = ", ..." if len(self._songs) > 3 else ""
        return f"SongList([{names}{more}])"

    def _repr_html_(self) -> str:
        """Return a table for notebooks, without covers, because there may be many."""
        rows = [(str(number), _song_name_html(one)) for number, one in enumerate(self, 1)]
        return table(rows, ("", "song")) if rows else "<div>no songs</div>"


def _song_name_html(one: Song) -> str:
    return link(one.url, one.name or one.url)


def _song_cover_html(one: Song) -> str:
    """Return the cover, downloaded with SSRF protection and without an API key."""
    if not is_address(one.image_url):
        return ""
    with IMPORTING:
        from polymux.client.remote_file import RemoteFile

    file = one._file(one.image_url)  # noqa: SLF001 - it knows the server of the response
    if not isinstance(file, RemoteFile):
        return ""
    try:
        data = file.read(limit_bytes=_MAX_COVER_BYTES)
    except PolymuxError:
        return ""  # Show the card without the cover.
    kind = _picture_type(data)
    return "" if kind is None else embedded("img", kind, data).replace("100%", "240px")


def _picture_type(data: bytes) -> str | None:
    """Detect the image type from the first bytes."""
    begins = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for first, kind in begins.items() if data.startswith(first)), None)
