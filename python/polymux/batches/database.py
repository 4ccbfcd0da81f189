"""The SQLite file of a manifest. Only one process at a time may write it."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from polymux._util import sqlite
from polymux._util.sqlite import Failure
from polymux._util.text import display_name
from polymux.errors import OutputFailedError, OutputRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

#: "pmxb": distinguishes a manifest from other databases.
APPLICATION_ID = 0x706D7862
_TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID",
    """
    CREATE TABLE items (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        input BLOB NOT NULL,
        fields TEXT NOT NULL,
        stem BLOB NOT NULL UNIQUE,
        state TEXT NOT NULL,
        size_bytes INTEGER,
        mtime_ns INTEGER,
        identity BLOB,
        copied_from INTEGER,
        error_code TEXT,
        error_message TEXT,
        tries INTEGER NOT NULL DEFAULT 0,
        elapsed_s REAL
    ) STRICT
    """,
    "CREATE INDEX items_to_do ON items (id) WHERE state = 'waiting'",
    "CREATE INDEX items_by_identity ON items (identity) WHERE state = 'done'",
    """
    CREATE TABLE outputs (
        item INTEGER NOT NULL REFERENCES items (id),
        number INTEGER NOT NULL,
        name BLOB NOT NULL UNIQUE,
        ending TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        sha256 BLOB NOT NULL,
        is_own INTEGER NOT NULL,
        PRIMARY KEY (item, number)
    ) STRICT, WITHOUT ROWID
    """,
)
#: Readers in other processes lock the database only briefly.
BUSY_S = 60.0


class Database:
    """The only connection that writes.

    A change takes several disk syncs, so callers should write as much as possible in one change.

    Args:
        path: The file. It is created if necessary, together with a lock file that one process
            holds.

    Raises:
        OutputRefusedError: Another batch uses it (code ``batch_busy``), or it is not a manifest.
        OutputFailedError: It is damaged, or cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        refuse_others(path)
        self._held = _locked(path)
        try:
            with reported(path):
                self._connection = sqlite.connect(path, timeout_s=BUSY_S)
                if check_application(self._connection, path) == 0:
                    with self.change() as connection:
                        _make(connection)
        except BaseException:
            _release(path, self._held)
            raise

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction that is on the disk when the block ends."""
        with self._lock, reported(self._path), sqlite.transaction(self._connection):
            yield self._connection

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lock the connection for reading."""
        with self._lock, reported(self._path):
            yield self._connection

    def close(self) -> None:
        """Close the file, release the lock, and remove the journal. Idempotent."""
        with self._lock:
            if self._held >= 0:
                with suppress(sqlite3.Error):  # A reader may use the journal.
                    self._connection.execute("PRAGMA journal_mode = DELETE")
                self._connection.close()
                _release(self._path, self._held)
                self._held = -1


def refuse_others(path: Path) -> None:
    """Reject a file that is not a manifest before anything is written to it.

    Opening a database normally can change its journal, so this opens it as immutable. If there is a
    journal from a killed process, SQLite has to recover first; `check_application` then checks it.

    Raises:
        OutputRefusedError: It is a database but not a manifest.
        OutputFailedError: It is not a database, or cannot be read.
    """
    with reported(path):
        if not path.exists() or path.with_name(f"{path.name}-journal").exists():
            return
        with path.open("rb") as file:
            # https://sqlite.org/fileformat2.html#the_database_header: 2 means write-ahead log
            has_log = file.read(19)[18:] == b"\x02"
        address = f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            check_application(connection, path, has_log=has_log)


def reported(path: Path) -> AbstractContextManager[None]:
    """Convert SQLite errors to exceptions that name the file and the remedy."""
    name = display_name(path.as_posix())

    def failed(failure: Failure, words: str, number: int | None) -> OutputFailedError:
        if number is not None:
            return OutputFailedError(f"manifest '{name}': cannot be opened: {words}", errno=number)
        if failure is Failure.FULL:
            words, number = "the disk is full", errno.ENOSPC
        elif failure is Failure.DAMAGED:
            words = f"damaged or not a manifest ({words}). Use another file"
        return OutputFailedError(f"manifest '{name}': cannot be used: {words}", errno=number)

    return sqlite.reported(failed)


def check_application(connection: sqlite3.Connection, path: Path, *, has_log: bool = False) -> int:
    """Return the version of the tables; 0 before they exist.

    Args:
        connection: The database.
        path: The file, for errors.
        has_log: Whether a write-ahead log may contain tables that are not visible.

    Raises:
        OutputRefusedError: The database belongs to another program or a newer polymux.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
    has_tables = tables or has_log
    if (application, version) not in ((APPLICATION_ID, 1), (0, 0)) or (not version and has_tables):
        problem = (
            "created by a newer version of polymux. Use that version"
            if application == APPLICATION_ID
            else "not a manifest but another database. Use another file"
        )
        raise OutputRefusedError(f"manifest '{display_name(path.as_posix())}': {problem}")
    return int(version)


def _make(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")


def _locked(path: Path) -> int:
    """Return a descriptor that holds the lock.

    A separate lock file is used, because closing a descriptor of the database would release
    SQLite's own locks.
    """
    name = display_name(path.as_posix())
    file = _lock_file(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(file, flags, 0o666)
    except OSError as error:
        raise OutputFailedError(
            f"manifest '{name}': cannot be opened: {error.strerror}", errno=error.errno
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise OutputRefusedError(
            f"manifest '{name}': in use by another batch (process {holder or 'unknown'}). "
            "Wait until it ends, or use another --output-dir or --manifest",
            code="batch_busy",
        ) from None
    # The previous holder may have removed the file after it was opened here.
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), file.stat()):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor
    os.close(descriptor)
    return _locked(path)


def _release(path: Path, descriptor: int) -> None:
    """Remove the lock file, then release the lock."""
    with suppress(OSError):
        _lock_file(path).unlink()
    os.close(descriptor)


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")
