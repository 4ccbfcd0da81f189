"""Answers of the song operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from polymux._util.text import shown
from polymux.client.responses._base import Answered, Response, parsed, restored
from polymux.client.responses._members import fresh, joined, member, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        from polymux.notebook.cards import song

        return song(self)


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
        """Takes over a parsed answer and the bytes it came in."""
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
        """One song, or a part of the list."""
        if isinstance(index, slice):
            return SongList(self._value[index])
        return self._songs[index]

    def __len__(self) -> int:
        """How many songs."""
        return len(self._songs)

    def __iter__(self) -> Iterator[Song]:
        """The songs, best first."""
        return iter(self._songs)

    def __eq__(self, other: object) -> bool:
        """Whether the other is a list of equal songs."""
        if not isinstance(other, SongList):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        """Equal results hash alike."""
        return hash(self._songs)

    def __repr__(self) -> str:
        """The telling members, shortened."""
        names = ", ".join(shown(song.name) for song in self._songs[:3])
        more = ", ..." if len(self._songs) > 3 else ""
        return f"SongList([{names}{more}])"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        from polymux.notebook.cards import song_list

        return song_list(self)

    def __setattr__(self, name: str, value: object) -> None:
        """Refused: results are immutable."""
        raise AttributeError("a SongList cannot be changed; list() makes one that can")

    def __delattr__(self, name: str) -> None:
        """Refused: results are immutable."""
        raise AttributeError("a SongList cannot be changed; list() makes one that can")

    def __copy__(self) -> SongList:
        """Itself, being immutable."""
        return self

    def __deepcopy__(self, memo: object) -> SongList:
        """Itself, being immutable."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the answer; it is checked again when it is read back."""
        return restored, (SongList, self._value, self._raw, self._answer)
