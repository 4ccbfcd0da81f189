"""Answers of the song operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from polymux._util.html_repr import embedded, is_address, link, table
from polymux._util.text import shown
from polymux.client.responses._base import Answered, Response, parsed, restored
from polymux.client.responses._members import fresh, joined, member, wrong
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_COVER_BYTES = 1_000_000


class Song(Response):
    """A song.

    Attributes:
        name: "Title - Artist", or the title alone (``song_name`` in the answer).
        url: Page about the song (``songid_url``).
        image_url: Address of its cover (``song_image``).

    Example:
        >>> import polymux
        >>> polymux.Song.decode(b'{"song_name": "", "songid_url": "", "song_image": ""}').is_match
        False
    """

    __slots__ = ()
    _shown = ("name", "url")

    name: str = member("a text", name="song_name", absent="")
    url: str = member("a text", name="songid_url", absent="")
    image_url: str = member("a text", name="song_image", absent="")

    @property
    def is_match(self) -> bool:
        """False for the three empty texts by which some servers say that nothing matched."""
        return bool(self.name or self.url or self.image_url)

    def _repr_html_(self) -> str:
        """A card for notebooks; its cover is fetched for it, by the guarded fetcher."""
        return _song_html(self)


class SongList(Sequence[Song], Answered):
    """Songs that were found, best first: a sequence of `Song`, immutable.

    Example:
        >>> import polymux
        >>> songs = polymux.SongList.decode(b'[{"song_name": "Blue Danube - Strauss"}]')
        >>> len(songs), songs[0].name
        (1, 'Blue Danube - Strauss')
    """

    __slots__ = ("_answer", "_raw", "_songs", "_value")
    _raw: bytes
    _songs: tuple[Song, ...]
    _value: list[Any]

    def __init__(self, value: Any, raw: bytes = b"") -> None:
        if not isinstance(value, list):
            raise wrong("", "an array of songs", value)
        songs = tuple(Song(one, path=joined("", index)) for index, one in enumerate(value))
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_songs", songs)
        object.__setattr__(self, "_raw", raw)
        object.__setattr__(self, "_answer", None)

    @classmethod
    def decode(cls, body: bytes) -> SongList:
        """Decodes the body of an answer.

        Raises:
            DecodeError: No JSON, no array, or a song with a member of a wrong type.
        """
        return cls(parsed(body), bytes(body))

    @property
    def raw(self) -> bytes:
        """The bytes as they came; empty for a part of a list."""
        return self._raw

    @property
    def extra(self) -> dict[str, Any]:
        """Always empty: an array has no members. Each song has an `extra` of its own."""
        return {}

    def json(self) -> Any:
        """The whole JSON as plain lists and dicts; a new copy each time."""
        return fresh(self._value)

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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SongList):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._songs)

    def __repr__(self) -> str:
        names = ", ".join(shown(song.name) for song in self._songs[:3])
        more = ", ..." if len(self._songs) > 3 else ""
        return f"SongList([{names}{more}])"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return _song_list_html(self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a SongList cannot be changed; list() makes one that can")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a SongList cannot be changed; list() makes one that can")

    def __copy__(self) -> SongList:
        return self

    def __deepcopy__(self, memo: object) -> SongList:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (SongList, self._value, self._raw, self._answer)


def _song_html(one: Song) -> str:
    """A song with its cover, which is fetched as results are: guarded, and without a key."""
    return f"<div>{_song_cover_html(one)}<div>{_song_name_html(one)}</div></div>"


def _song_name_html(one: Song) -> str:
    return link(one.url, one.name or one.url)


def _song_cover_html(one: Song) -> str:
    if not is_address(one.image_url):
        return ""
    from polymux.client.remote_file import RemoteFile

    file = one._file(one.image_url)  # noqa: SLF001 - it knows which server answered
    if not isinstance(file, RemoteFile):
        return ""
    try:
        data = file.read(limit_bytes=_MAX_COVER_BYTES)
    except PolymuxError:
        return ""  # A card without its picture is still one.
    kind = _picture_type(data)
    return "" if kind is None else embedded("img", kind, data).replace("100%", "240px")


def _picture_type(data: bytes) -> str | None:
    """What a picture is by its first bytes."""
    begins = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for first, kind in begins.items() if data.startswith(first)), None)


def _song_list_html(songs: SongList) -> str:
    """Songs, best first. Their covers are not fetched: there may be many."""
    rows = [(str(number), _song_name_html(one)) for number, one in enumerate(songs, 1)]
    return table(rows, ("", "song")) if rows else "<div>no songs</div>"
