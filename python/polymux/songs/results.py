"""Results of the music library: songs, matches and reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polymux._util.html_repr import (
    MAX_ROWS,
    HtmlReprMixin,
    escaped,
    image,
    is_address,
    key_values,
    link,
    table,
)
from polymux._util.text import clock, printable, short_repr, size
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.media.results import Cover

_COVER_PX = 160


@dataclass(frozen=True, slots=True)
class IndexedSong:
    """A song in the music library: one file.

    Attributes:
        id: ID of the song; never reused for another song.
        path: Path of the file when it was last scanned.
        title: Title from the tags, else from the file name.
        artist: Artist; empty if unknown.
        album: Album title; empty if unknown.
        year: Year of the release; None if unknown.
        duration_s: Duration in seconds.
        mbid: MusicBrainz ID of the recording; empty if the tags do not have it.
        cover: ``"embedded"`` for a cover image inside the file, the path of an image next to the
            file, or None. `read_cover` returns the image.
        group_id: The same number for all files of one recording.

    Example:
        >>> import polymux
        >>> with polymux.SongIndex("songs") as index:
        ...     _ = index.add("song.flac")
        ...     song = index.search("song")[0]
        >>> song.name, round(song.duration_s), song.cover
        ('Song', 2, None)
    """

    id: int
    path: Path
    title: str
    artist: str
    album: str
    year: int | None
    duration_s: float
    mbid: str
    cover: str | None
    group_id: int

    def __repr__(self) -> str:
        return short_repr(self, "album", "duration_s", "path", "id", name=self.name)

    @property
    def name(self) -> str:
        """Title and artist as ``Title - Artist``, or only the title if the artist is unknown."""
        return f"{self.title} - {self.artist}" if self.artist else self.title

    @property
    def url(self) -> str:
        """The recording's page at MusicBrainz, else the ``file:`` URL of the file."""
        if self.mbid:
            return f"https://musicbrainz.org/recording/{self.mbid}"
        return self.path.absolute().as_uri()

    def read_cover(self) -> Cover | None:
        """Read the current cover image.

        Returns:
            The cover; None if it does not exist or is larger than 10 MiB.

        Raises:
            InputError: The file is missing or cannot be read.
            MediaError: The file is no longer a valid media file.
        """
        from polymux.songs.tags import read_cover

        return read_cover(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values. Invalid characters in paths are escaped."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["path"] = printable(str(self.path))
        if self.cover is not None:
            plain["cover"] = printable(self.cover)
        return plain

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        try:
            picture = self.read_cover()
        except PolymuxError:
            picture = None  # The file is missing; show the other fields.
        shown = "" if picture is None else image(picture.mime_type, picture.data, _COVER_PX)
        # File URLs are not shown: browsers do not open them, and they reveal the directory.
        name = link(self.url, self.name) if is_address(self.url) else escaped(self.name)
        facts = [escaped(self.album)] if self.album else []
        facts += [str(self.year)] if self.year is not None else []
        facts.append(clock(self.duration_s))
        return f"<div>{shown}<div><b>{name}</b></div><div>{', '.join(facts)}</div></div>"


@dataclass(frozen=True, slots=True)
class RunnerUp(HtmlReprMixin):
    """The second best match.

    Attributes:
        song: The song.
        confidence: Confidence from 0 to 1.
    """

    song: IndexedSong
    confidence: float


@dataclass(frozen=True, slots=True)
class Match:
    """The song that matches a recording.

    Attributes:
        song: The matching song. If several files have the same recording, the one that was added
            first.
        offset_s: Position in the song where the recording starts, in seconds. It refers to the file
            of the recording that matches best.
        speed: Playback speed relative to the song, with tempo and pitch changed together: 1.02 is
            two percent faster. 1.0 if only the tempo or only the pitch differs.
        tempo: Tempo relative to the song.
        pitch: Pitch relative to the song, as a frequency ratio.
        confidence: Confidence from 0 to 1.
        runner_up: The next best song that is not another file of the same recording; None if the
            twelve best recordings are all of this song.
    """

    song: IndexedSong
    offset_s: float
    speed: float
    tempo: float
    pitch: float
    confidence: float
    runner_up: RunnerUp | None = None

    def __repr__(self) -> str:
        facts = {"offset_s": self.offset_s, "confidence": self.confidence}
        return short_repr(self, "song", name=self.song.name, **facts)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["song"] = self.song.to_dict()
        if self.runner_up is not None:
            second = self.runner_up
            plain["runner_up"] = {"song": second.song.to_dict(), "confidence": second.confidence}
        return plain

    def _repr_html_(self) -> str:
        """Return the song's card with the match details for notebooks."""
        facts = [("at", clock(self.offset_s)), ("confidence", f"{self.confidence:.0%}")]
        for name in ("speed", "tempo", "pitch"):
            factor = getattr(self, name)
            if factor != 1.0:
                facts.append((name, f"{factor:.3f} times"))
        if self.runner_up is not None:
            second = self.runner_up
            facts.append(("next best", f"{second.song.name} ({second.confidence:.0%})"))
        return f"<div>{self.song._repr_html_()}{key_values(facts)}</div>"


@dataclass(frozen=True, slots=True)
class AddProgress(HtmlReprMixin):
    """Progress of `SongIndex.add` or `SongIndex.rescan` after one file.

    Attributes:
        path: Path of the file.
        outcome: ``"added"``, ``"updated"`` (its audio or tags have changed), ``"moved"`` (known
            from another path that no longer exists), ``"duplicate"`` (the same file also exists at
            another path), ``"unchanged"``, ``"missing"`` (only in `rescan`) or ``"failed"``.
        error: The error if the outcome is ``"failed"``, else None.
        done: Number of files processed so far.
        total: Total number of files.
        audio_s: Audio fingerprinted so far, in seconds.
        elapsed_s: Elapsed time in seconds.
    """

    path: Path
    outcome: str
    error: PolymuxError | None
    done: int
    total: int
    audio_s: float
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class FailedFile(HtmlReprMixin):
    """A file that could not be added.

    Attributes:
        path: Path of the file.
        error: The error.
    """

    path: Path
    error: PolymuxError


@dataclass(frozen=True, slots=True)
class AddReport:
    """Report of `SongIndex.add` or `SongIndex.rescan`.

    Attributes:
        added: Number of new songs.
        updated: Number of songs whose files have changed.
        moved: Number of songs whose files have moved.
        duplicates: Number of new songs whose files are copies of other songs.
        unchanged: Number of unchanged songs.
        missing: Songs whose files are missing. Only `rescan` reports them; they stay in the
            library.
        failed: Files that are not music or cannot be read, and directories that cannot be read.
        audio_s: Fingerprinted audio in seconds.
        elapsed_s: Elapsed time in seconds.
        cancelled: Whether the operation was canceled.
    """

    added: int = 0
    updated: int = 0
    moved: int = 0
    duplicates: int = 0
    unchanged: int = 0
    missing: tuple[IndexedSong, ...] = ()
    failed: tuple[FailedFile, ...] = ()
    audio_s: float = 0.0
    elapsed_s: float = 0.0
    cancelled: bool = False

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        names = ("added", "updated", "moved", "duplicates", "unchanged")
        facts = [(name, str(getattr(self, name))) for name in names if getattr(self, name)]
        facts += [("missing", str(len(self.missing)))] if self.missing else []
        facts.append(("fingerprinted", f"{clock(self.audio_s)} in {self.elapsed_s:.1f} s"))
        if self.cancelled:
            facts.append(("status", "canceled"))
        failed = [(escaped(one.path.name), escaped(one.error)) for one in self.failed]
        return key_values(facts) + (table(failed, ("failed", "why")) if failed else "")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Report of `SongIndex.check`.

    Attributes:
        problems: Problems of the database, or an empty tuple.
        damaged_segments: Damaged index files. They have been rebuilt.
        missing: Songs whose files are missing.
        stale: Songs that `rescan` must fingerprint again, because another version of polymux has
            added them.
    """

    problems: tuple[str, ...] = ()
    damaged_segments: tuple[str, ...] = ()
    missing: tuple[IndexedSong, ...] = ()
    stale: tuple[IndexedSong, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the index has no problems. Missing files do not count as problems."""
        return not self.problems and not self.damaged_segments and not self.stale

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        state = "no problems" if self.is_whole else "problems found"
        rows = [("music library", state)]
        rows += [("problem", escaped(one)) for one in self.problems[:MAX_ROWS]]
        rows += [("rebuilt index file", escaped(one)) for one in self.damaged_segments[:MAX_ROWS]]
        rows += _songs_html("missing", self.missing) + _songs_html(
            "outdated fingerprint", self.stale
        )
        return table(rows)


@dataclass(frozen=True, slots=True)
class SongIndexStatistics:
    """Statistics of a song index.

    Attributes:
        songs: Number of songs (files).
        recordings: Number of different recordings.
        groups: Number of groups of recordings that sound the same.
        duration_s: Total duration of all songs in seconds.
        database_bytes: Size of the database in bytes.
        library: Name and version of the SQLite library in use.
        index: Statistics of the index files: ``songs``, ``segments``, ``bytes``, ``memory_bytes``,
            ``postings``.
    """

    songs: int
    recordings: int
    groups: int
    duration_s: float
    database_bytes: int
    library: str
    index: dict[str, int] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return key_values(
            [
                ("songs", self.songs),
                ("recordings", self.recordings),
                ("groups", self.groups),
                ("length", clock(self.duration_s)),
                ("database", f"{size(self.database_bytes)}, {self.library}"),
                *((f"index, {name}", number) for name, number in self.index.items()),
            ]
        )


def _songs_html(words: str, songs: tuple[IndexedSong, ...]) -> list[tuple[str, str]]:
    rows = [(words, escaped(one.name)) for one in songs[:MAX_ROWS]]
    if len(songs) > MAX_ROWS:
        rows.append((words, f"and {len(songs) - MAX_ROWS} more"))
    return rows
