"""Rows of a music library's database: songs, recordings and changes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from polymux.songs.results import IndexedSong
from polymux.songs.text_normalization import folded, spellings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from polymux.songs.database import Database
    from polymux.songs.tags import SongTags

_COLUMNS = (
    "songs.id, path, size_bytes, mtime_ns, content_hash, title, artist, album, year, "
    "songs.duration_s, mbid, cover, group_id, recording"
)
#: Columns that are written for a song, and their values. The duration comes from the recording.
_WRITTEN = (
    "path, size_bytes, mtime_ns, content_hash, title, artist, album, year, mbid, cover, group_id, "
    "recording, title_folded, artist_folded, duration_s"
)
_VALUES = (
    "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
    "(SELECT duration_s FROM recordings WHERE id = ?12)"
)
_AT_ONCE = 500
#: Tables of full-text search.
_SEARCHED = ("words", "trigrams")

#: First frame, number of frames, and peaks of both windows, from the native core.
Part = tuple[int, int, bytes, bytes]


class FileState(NamedTuple):
    """Size and time of a file. If both are unchanged, the file is not read again."""

    size_bytes: int
    mtime_ns: int


class SongRow(NamedTuple):
    """A row of the table ``songs``."""

    id: int
    path: bytes
    size_bytes: int
    mtime_ns: int
    content_hash: bytes
    title: str
    artist: str
    album: str
    year: int | None
    duration_s: float
    mbid: str
    cover: bytes | None
    group_id: int
    recording: int

    @property
    def state(self) -> FileState:
        """The state of the file when it was last read."""
        return FileState(self.size_bytes, self.mtime_ns)

    def song(self) -> IndexedSong:
        return IndexedSong(
            id=self.id,
            path=Path(os.fsdecode(self.path)),
            title=self.title,
            artist=self.artist,
            album=self.album,
            year=self.year,
            duration_s=self.duration_s,
            mbid=self.mbid,
            cover=None if self.cover is None else os.fsdecode(self.cover),
            group_id=self.group_id,
        )


def signed(parameters: int) -> int:
    """Convert an unsigned 64-bit hash to a signed integer for SQLite."""
    return parameters - (1 << 64) if parameters >= 1 << 63 else parameters


def digest_of(parts: Iterable[Part]) -> bytes:
    """Return a digest of a fingerprint; it does not depend on other content of the file."""
    digest = hashlib.blake2b(digest_size=16)
    for first_frame, frames, peaks_1, peaks_2 in parts:
        digest.update(b"%d %d %d %d\n" % (first_frame, frames, len(peaks_1), len(peaks_2)))
        digest.update(peaks_1)
        digest.update(peaks_2)
    return digest.digest()


class SongTable:
    """Reads and writes rows.

    Call the writing methods inside one of the database's transactions.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._read = database.rows
        self._write = database.writer.rows

    def get(self, number: int) -> SongRow | None:
        return next(self._of("WHERE songs.id = ?", number), None)

    def at(self, path: bytes) -> SongRow | None:
        """Return the song with this path."""
        return next(self._of("WHERE path = ?", path), None)

    def below(self, folder: bytes) -> list[SongRow]:
        """Return the songs in a directory, at any depth."""
        prefix = folder.rstrip(b"/") + b"/"
        after = prefix[:-1] + b"0"  # "0" follows "/".
        return list(self._of("WHERE path > ? AND path < ?", prefix, after))

    def with_content(self, content_hash: bytes) -> list[SongRow]:
        """Return the songs whose files have the same bytes."""
        return list(self._of("WHERE content_hash = ? ORDER BY songs.id", content_hash))

    def of_recording(self, recording: int) -> list[SongRow]:
        """Return the songs of a recording, oldest first."""
        return list(self._of("WHERE recording = ? ORDER BY songs.id", recording))

    def first_like(self, recording: int) -> SongRow | None:
        """Return the oldest of the songs that sound the same as a recording."""
        group = "SELECT group_id FROM songs WHERE recording = ? ORDER BY id LIMIT 1"
        same = f"WHERE group_id = ({group}) ORDER BY songs.id LIMIT 1"
        return next(self._of(same, recording), None)

    def every(self, after: int = 0) -> Iterator[SongRow]:
        """Iterate over the songs with a higher ID. Rows are read in batches; no read stays open."""
        while True:
            found = list(self._of("WHERE songs.id > ? ORDER BY songs.id LIMIT ?", after, _AT_ONCE))
            yield from found
            if len(found) < _AT_ONCE:
                return
            after = found[-1].id

    def many(self, numbers: list[int]) -> dict[int, SongRow]:
        """Return songs by ID. Missing songs are left out."""
        marks = ",".join("?" * len(numbers))
        return {one.id: one for one in self._of(f"WHERE songs.id IN ({marks})", *numbers)}

    def _of(self, condition: str, *values: object) -> Iterator[SongRow]:
        query = f"SELECT {_COLUMNS} FROM songs {condition}"  # noqa: S608 - of constants
        return (SongRow(*row) for row in self._read(query, values))

    def is_current(self, recording: int, parameters: int) -> bool:
        """Whether a recording was fingerprinted with the current parameters."""
        query = "SELECT 1 FROM recordings WHERE id = ? AND parameters = ?"
        return bool(self._read(query, (recording, signed(parameters))))

    def stale(self, parameters: int) -> list[SongRow]:
        """Return the songs whose recordings were fingerprinted with other parameters."""
        join = "JOIN recordings ON recordings.id = recording WHERE parameters != ?"
        return list(self._of(f"{join} ORDER BY songs.id", signed(parameters)))

    def recording_like(self, digest: bytes, parameters: int) -> int | None:
        """Return the recording with the same fingerprint. Call this inside a transaction."""
        found = self._write(
            "SELECT id FROM recordings WHERE digest = ? AND parameters = ?",
            (digest, signed(parameters)),
        )
        return found[0][0] if found else None

    def add_recording(self, parts: list[Part], duration_s: float, parameters: int) -> int:
        """Write a recording with its fingerprint and return its ID."""
        ((number,),) = self._write("INSERT INTO changes (removed) VALUES (NULL) RETURNING sequence")
        self._write(
            "INSERT INTO recordings VALUES (?, ?, ?, ?)",
            (number, signed(parameters), duration_s, digest_of(parts)),
        )
        for part, (first_frame, frames, peaks_1, peaks_2) in enumerate(parts):
            self._write(
                "INSERT INTO fingerprints VALUES (?, ?, ?, ?, ?, ?)",
                (number, part, first_frame, frames, peaks_1, peaks_2),
            )
        return int(number)

    def _forget_recording(self, number: int) -> None:
        """Remove a recording if it has no songs left."""
        if self._write("SELECT 1 FROM songs WHERE recording = ? LIMIT 1", (number,)):
            return
        self._write("DELETE FROM recordings WHERE id = ?", (number,))
        self._write("INSERT INTO changes (removed) VALUES (?)", (number,))

    def add(
        self,
        path: bytes,
        state: FileState,
        content_hash: bytes,
        tags: SongTags,
        recording: int,
        group_id: int | None,
    ) -> int:
        """Write a new song and return its ID. Without a group it starts a new one."""
        ((number,),) = self._write(
            f"INSERT INTO songs ({_WRITTEN}) VALUES ({_VALUES}) RETURNING id",  # noqa: S608
            _values(path, state, content_hash, tags, group_id or 0, recording),
        )
        if group_id is None:
            self._write("UPDATE songs SET group_id = id WHERE id = ?", (number,))
        self._name(number, tags)
        return int(number)

    def _name(self, number: int, tags: SongTags) -> None:
        """Add a song to full-text search.

        Triggers are not used, because SQLite before 3.41 rejects full-text tables in them as
        unsafe.
        """
        for table in _SEARCHED:
            self._write(
                f"INSERT INTO {table} (rowid, title_folded, artist_folded) "  # noqa: S608
                "SELECT id, title_folded, artist_folded FROM songs WHERE id = ?",
                (number,),
            )
        self._learn_words(tags)

    def _unname(self, number: int) -> None:
        """Undo `_name` while the song still has the same names."""
        for table in _SEARCHED:
            self._write(
                f"INSERT INTO {table} ({table}, rowid, title_folded, artist_folded) "  # noqa: S608
                "SELECT 'delete', id, title_folded, artist_folded FROM songs WHERE id = ?",
                (number,),
            )

    def _learn_words(self, tags: SongTags) -> None:
        for word in {*" ".join(_folded(tags)).split()}:
            found = self._write(
                "INSERT INTO vocabulary (word) VALUES (?) ON CONFLICT DO NOTHING RETURNING id",
                (word,),
            )
            for form in spellings(word) if found else ():
                self._write("INSERT INTO spellings VALUES (?, ?)", (form, found[0][0]))

    def replace(
        self,
        row: SongRow,
        path: bytes,
        state: FileState,
        content_hash: bytes,
        tags: SongTags,
        recording: int,
        group_id: int | None = None,
    ) -> None:
        """Update the row of a song whose file has changed or moved."""
        self._unname(row.id)
        group = row.group_id if group_id is None else group_id
        self._write(
            f"UPDATE songs SET ({_WRITTEN}) = ({_VALUES}) WHERE id = ?15",  # noqa: S608
            (*_values(path, state, content_hash, tags, group, recording), row.id),
        )
        self._name(row.id, tags)
        if recording != row.recording:
            self._forget_recording(row.recording)

    def touch(self, row: SongRow, state: FileState) -> None:
        """Update the stored time of a file with unchanged content."""
        self._write("UPDATE songs SET size_bytes = ?, mtime_ns = ? WHERE id = ?", (*state, row.id))

    def remove(self, row: SongRow) -> None:
        self._unname(row.id)
        self._write("DELETE FROM songs WHERE id = ?", (row.id,))
        self._forget_recording(row.recording)

    def remove_path(self, path: bytes) -> int:
        """Remove the song of a file, or all songs of a directory, which is no longer scanned.

        Returns:
            The number of removed songs.
        """
        row = self.at(path)
        rows = self.below(path) if row is None else [row]
        for one in rows:
            self.remove(one)
        self.remove_root(path)
        return len(rows)

    def roots(self) -> list[bytes]:
        """Return the added directories."""
        return [path for (path,) in self._read("SELECT path FROM roots ORDER BY path")]

    def add_root(self, folder: bytes) -> None:
        """Register a directory. `rescan` adds its new files."""
        self._write("INSERT OR IGNORE INTO roots VALUES (?)", (folder,))

    def remove_root(self, folder: bytes) -> None:
        self._write("DELETE FROM roots WHERE path = ?", (folder,))

    def count(self) -> int:
        found: int = self._read("SELECT count(*) FROM songs")[0][0]
        return found

    def counts(self) -> tuple[int, int, int, float]:
        """Return the numbers of songs, recordings and groups, and the total duration in seconds."""
        ((songs, groups, duration_s),) = self._read(
            "SELECT count(*), count(DISTINCT group_id), total(duration_s) FROM songs"
        )
        ((recordings,),) = self._read("SELECT count(*) FROM recordings")
        return songs, recordings, groups, duration_s


def _values(
    path: bytes,
    state: FileState,
    content_hash: bytes,
    tags: SongTags,
    group_id: int,
    recording: int,
) -> tuple[object, ...]:
    return (path, *state, content_hash, *tags, group_id, recording, *_folded(tags))


def _folded(tags: SongTags) -> tuple[str, str]:
    return folded(tags.title), folded(tags.artist)
