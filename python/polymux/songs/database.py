"""The database of a song index: schema, migrations and connections."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux._util.sqlite import Connection, is_damaged
from polymux._util.text import display_name
from polymux.errors import SongIndexError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: "pmxs", the SQLite application ID of a song index.
APPLICATION_ID = 0x706D7873
#: Error codes that do not mean that the database is damaged.
_NO_DAMAGE = ("song_index_busy", "storage_full", "closed")
#: Statements that migrate the schema from each version to the next.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE songs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            path BLOB NOT NULL UNIQUE,
            size_bytes INTEGER NOT NULL,
            mtime_ns INTEGER NOT NULL,
            content_hash BLOB NOT NULL,
            title TEXT NOT NULL,
            artist TEXT NOT NULL,
            album TEXT NOT NULL,
            year INTEGER,
            duration_s REAL NOT NULL,
            mbid TEXT NOT NULL,
            cover BLOB,
            group_id INTEGER NOT NULL,
            recording INTEGER NOT NULL,
            title_folded TEXT NOT NULL,
            artist_folded TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX songs_by_content ON songs (content_hash)",
        "CREATE INDEX songs_by_recording ON songs (recording)",
        "CREATE INDEX songs_by_group ON songs (group_id)",
        # The ID is the sequence number of the change that added the recording; it is never reused.
        """
        CREATE TABLE recordings (
            id INTEGER PRIMARY KEY,
            parameters INTEGER NOT NULL,
            duration_s REAL NOT NULL,
            digest BLOB NOT NULL
        ) STRICT
        """,
        "CREATE INDEX recordings_by_digest ON recordings (digest)",
        """
        CREATE TABLE fingerprints (
            recording INTEGER NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
            part INTEGER NOT NULL,
            first_frame INTEGER NOT NULL,
            frames INTEGER NOT NULL,
            peaks_1 BLOB NOT NULL,
            peaks_2 BLOB NOT NULL,
            UNIQUE (recording, part)
        ) STRICT
        """,
        """
        CREATE TABLE changes (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            removed INTEGER
        ) STRICT
        """,
        "CREATE TABLE roots (path BLOB PRIMARY KEY) STRICT, WITHOUT ROWID",
        "CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        """
        CREATE VIRTUAL TABLE words USING fts5 (
            title_folded, artist_folded, content = 'songs', content_rowid = 'id',
            tokenize = 'unicode61 remove_diacritics 0', prefix = '1 2 3'
        )
        """,
        # Words, and their forms with one letter deleted, for searches with typing errors.
        "CREATE TABLE vocabulary (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE) STRICT",
        """
        CREATE TABLE spellings (
            form TEXT NOT NULL, word INTEGER NOT NULL, PRIMARY KEY (form, word)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE VIRTUAL TABLE trigrams USING fts5 (
            title_folded, artist_folded, content = 'songs', content_rowid = 'id',
            tokenize = 'trigram'
        )
        """,
        "CREATE VIRTUAL TABLE trigram_counts USING fts5vocab (trigrams, row)",
    ),
)


class Database:
    """The database of a song index, with one connection for writing and one for reading.

    Searches on the reading connection do not wait for a write in progress.

    Args:
        path: Database file; created if it does not exist.

    Raises:
        SongIndexError: The file is damaged, not a song index, made by a newer polymux, or not
            writable.
    """

    def __init__(self, path: Path) -> None:
        self._name = display_name(path.as_posix())
        self._own = threading.local()
        self.writer = Connection(path)
        try:
            self._open()
            self.reader = Connection(path, reads_only=True)
        except BaseException:
            self.writer.close()
            raise

    def _open(self) -> None:
        version, application = self._version()
        if application not in (0, APPLICATION_ID) or (version > 0 and application == 0):
            raise SongIndexError(
                f"song index {self._name}: the file is a database of another program. Use "
                "another directory"
            )
        if version > len(MIGRATIONS):
            raise SongIndexError(
                f"song index {self._name}: unsupported version (got {version}, allowed "
                f"{len(MIGRATIONS)}). Use the newer version of polymux that created it, or another "
                "directory"
            )
        if version < len(MIGRATIONS) and self.writer.is_fixed:
            raise SongIndexError(
                f"song index {self._name}: must be upgraded (got version {version}, allowed "
                f"{len(MIGRATIONS)}). Open it once with write permission to upgrade it"
            )
        if version < len(MIGRATIONS):
            with self.writer.transaction():
                # Another process may have migrated it in the meantime.
                for statements in MIGRATIONS[self._version()[0] :]:
                    for statement in statements:
                        self.writer.rows(statement)
                    self.writer.rows(f"PRAGMA application_id = {APPLICATION_ID}")
                if version == 0:
                    self._begin()
                self.writer.rows(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self) -> tuple[int, int]:
        read = self.writer.value
        return read("PRAGMA user_version"), read("PRAGMA application_id")

    def _begin(self) -> None:
        """Start the change numbers at the current time, which makes them unique per index.

        Segments of another index in the directory are recognized by their numbers.
        """
        if self.writer.value("SELECT value FROM facts WHERE name = 'first_sequence'") is not None:
            return
        first = time.time_ns() // 1000
        self.writer.rows("INSERT INTO facts VALUES ('first_sequence', ?)", (first,))
        self.writer.rows("INSERT INTO sqlite_sequence (name, seq) VALUES ('changes', ?)", (first,))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything written inside, or nothing."""
        with self.writer.transaction():
            self._own.writes = True
            try:
                yield
            finally:
                self._own.writes = False

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query and return its rows.

        Inside a transaction of this thread, the query uses the writing connection. Without a
        write-ahead log a large transaction blocks readers, and the thread would wait for itself.
        """
        connection = self.writer if getattr(self._own, "writes", False) else self.reader
        return connection.rows(statement, values)

    def span(self) -> tuple[int, int]:
        """Return the number before the first change, and the number of the last change."""
        found = self.reader.row(
            "SELECT (SELECT value FROM facts WHERE name = 'first_sequence'), seq "
            "FROM sqlite_sequence WHERE name = 'changes'"
        )
        if found is None or found[0] is None:
            raise is_damaged(self._name, "its change counter is missing")
        return found[0], found[1]

    def version(self) -> Any:
        """Return a value that changes after each change by any process."""
        version = self.reader.value("PRAGMA data_version")
        return self.reader.openings, version

    def problems(self) -> list[str]:
        """Check the integrity of the complete database and return the problems.

        Raises:
            SongIndexError: It cannot be read, is being written, or the disk is full.
        """
        found = [row[0] for row in self.writer.rows("PRAGMA integrity_check(20)")]
        problems = [] if found == ["ok"] else found
        for row in self.writer.rows("PRAGMA foreign_key_check"):
            problems.append(f"a row of {row[0]} has an invalid reference")
        # FTS5 runs its check as an INSERT statement, which a read-only database rejects.
        for table in () if self.writer.is_fixed else ("words", "trigrams"):
            try:
                self.writer.rows(
                    f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)"  # noqa: S608
                )
            except SongIndexError as error:
                if error.code in _NO_DAMAGE:
                    raise
                problems.append(f"search by name ({table}): {error}")
        return problems

    def close(self) -> None:
        self.reader.close()
        self.writer.close()
