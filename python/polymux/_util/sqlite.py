"""SQLite: connections, transactions, and conversion of errors.

`connect` opens a database for one process with the standard library. `Connection` is for databases
that several processes share. It uses apsw if installed, else the standard library. Both contain
different SQLite releases. Releases before 3.51.3 can damage a write-ahead log (WAL) with several
connections (https://sqlite.org/wal.html, "the WAL-reset bug"), and the standard library uses the
system's release. Therefore only apsw creates databases with a WAL. Without apsw, a WAL is first
converted to a rollback journal.

On a read-only disk or in another user's directory, SQLite cannot lock a WAL and therefore cannot
read it. If no process has a WAL open, the file is opened as immutable. Another process may still
change it, so its state is compared before and after each query.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from contextlib import contextmanager
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from polymux._util.text import display_name
from polymux.errors import PolymuxError, SongIndexError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

try:
    apsw: Any = import_module("apsw")
except ImportError:
    apsw = None

_ERRORS: tuple[type[Exception], ...] = (sqlite3.Error,)
if apsw is not None:
    _ERRORS += (apsw.Error,)
_FIRST_SOUND_LOG = (3, 51, 3)


class Failure(Enum):
    """Kinds of errors by SQLite's result codes (https://sqlite.org/rescode.html)."""

    FULL = (13,)
    DAMAGED = (11, 26)
    LOCKED = (5, 6)
    #: Reading requires a recovery first, because a writer was killed.
    UNFINISHED = (8, 14)
    OTHER = ()


@contextmanager
def reported(failed: Callable[[Failure, str, int | None], Exception]) -> Iterator[None]:
    """Convert exceptions of SQLite and the operating system.

    Args:
        failed: Creates the exception from the failure, its text and the error number.
    """
    try:
        yield
    except PolymuxError:
        raise  # PolymuxError subclasses may also be OSErrors.
    except _ERRORS as error:
        code = getattr(error, "sqlite_errorcode", None) or getattr(error, "result", 0)
        kinds = (one for one in Failure if (code or 0) & 0xFF in one.value)
        raise failed(next(kinds, Failure.OTHER), " ".join(str(error).split()), None) from error
    except OSError as error:
        raise failed(Failure.OTHER, error.strerror or str(error), error.errno) from error


def connect(path: Path, *, timeout_s: float = 5.0) -> sqlite3.Connection:
    """Open a database for one process, with a rollback journal, synced to the disk.

    It does not use a write-ahead log, because SQLite releases before 3.51.3 can damage it
    (https://sqlite.org/wal.html, "the WAL-reset bug"), and a single writer gains nothing from it.
    """
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=timeout_s
    )
    connection.row_factory = sqlite3.Row
    for pragma in ("journal_mode = TRUNCATE", "synchronous = FULL", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


@contextmanager
def transaction(connection: Any) -> Iterator[None]:
    """Run the block in a write transaction, which is rolled back on exceptions."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back if the disk was full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


#: Maximum wait for a lock. Writers take milliseconds, one at a time.
_MAX_WAIT_MS = 30_000
#: Maximum number of retries if another process writes during a query.
_MAX_TRIES = 20


class _Files(NamedTuple):
    """State of the files of a database, to detect changes without locks."""

    database: tuple[int, int, int]
    log: tuple[int, int, int] | None
    shared: tuple[int, int, int] | None
    journal: tuple[int, int, int] | None

    @property
    def is_at_rest(self) -> bool:
        """Whether the database file is complete and no process has a log open."""
        _, size, _ = self.journal or (0, 0, 0)
        return size == 0 and (self.log is None or (self.log[1] == 0 and self.shared is None))


class Connection:
    """One connection that threads can share.

    Args:
        path: The database, which is created if necessary.
        reads_only: Reject writes.

    Attributes:
        is_fixed: Whether this process may not write the database or create files next to it.
        openings: How often it was opened. A read-only database is reopened after changes.

    Raises:
        SongIndexError: It cannot be opened, or is not a database.
    """

    def __init__(self, path: Path, *, reads_only: bool = False) -> None:
        self._path = path
        self._name = display_name(path.as_posix())
        self._lock = threading.RLock()
        self._open = True
        self.is_fixed = _is_fixed(path)
        self.openings = 1
        #: State of the files when they were opened without locks, else None.
        self._files: _Files | None = None
        with self.reported():
            if not self.is_fixed:
                _make(path)
            self._native: Any = self._opened()
        try:
            with self.reported():
                self._prepare(reads_only=reads_only)
        except BaseException:
            self.close()
            raise

    def _opened(self) -> Any:
        if not self.is_fixed:
            return _opened(os.fspath(self._path))
        found = _files_of(self._path)
        self._files = found if found.is_at_rest else None
        address = f"file:{quote(os.fsencode(self._path))}?mode=ro"
        return _opened(f"{address}&immutable=1" if found.is_at_rest else address, is_fixed=True)

    def _prepare(self, *, reads_only: bool) -> None:
        if self.is_fixed:
            reads_only = True
        elif not _has_sound_log():
            self._leave_log()
        elif self.rows("PRAGMA page_count") == [(0,)]:
            self.rows("PRAGMA journal_mode = WAL")
        for pragma in ("synchronous = FULL", "trusted_schema = OFF", "foreign_keys = ON"):
            self.rows(f"PRAGMA {pragma}")
        if reads_only:
            self.rows("PRAGMA query_only = ON")

    def _leave_log(self) -> None:
        """Convert a WAL to a rollback journal, with exclusive access, which avoids the bug."""
        self.rows("PRAGMA locking_mode = EXCLUSIVE")
        try:
            found = self.rows("PRAGMA journal_mode = TRUNCATE")
        except SongIndexError as error:
            if error.code != "song_index_busy":
                raise
            found = []
        if found != [("truncate",)]:
            raise SongIndexError(
                f"song index {self._name}: in use by another process. Sharing it requires apsw: "
                "run pip install 'polymux[songs]', or wait until that process ends",
                code="song_index_busy",
            )
        self.rows("PRAGMA locking_mode = NORMAL")
        # The next read releases the lock.
        self.rows("SELECT count(*) FROM sqlite_schema")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a write transaction, which is rolled back on exceptions."""
        if self.is_fixed:
            raise SongIndexError(
                f"song index {self._name}: cannot be written, because the disk or directory is "
                "read-only for this process",
                errno=errno.EROFS,
            )
        with self._lock, self.reported():
            self._check_open()
            with transaction(self._native):
                yield

    def _check_open(self) -> None:
        if not self._open:
            raise SongIndexError(f"song index {self._name}: already closed", code="closed")

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows."""
        with self._lock, self.reported():
            self._check_open()
            for _ in range(_MAX_TRIES if self._files else 0):
                self._follow()
                try:
                    found = list(self._native.execute(statement, values))
                except _ERRORS:
                    if not self._has_changed():
                        raise
                else:
                    if not self._has_changed():
                        return found
            return list(self._native.execute(statement, values))

    def _has_changed(self) -> bool:
        """Return whether another process has changed a database that was opened without locks."""
        return self._files is not None and _files_of(self._path) != self._files

    def _follow(self) -> None:
        """Reopen a changed database, with locks if another process has it open."""
        if not self._has_changed():
            return
        before, old = self._files, self._native
        try:
            self._native = self._opened()
        except BaseException:
            self._files = before
            raise
        old.close()
        self.openings += 1
        self._native.execute("PRAGMA trusted_schema = OFF")

    def row(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row; None if there are no rows."""
        found = self.rows(statement, values)
        return found[0] if found else None

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Return the first value of the first row; None if there are no rows."""
        found = self.row(statement, values)
        return found[0] if found else None

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self._lock:
            if self._open:
                self._open = False
                self._native.close()

    def reported(self) -> AbstractContextManager[None]:
        """Convert exceptions of SQLite and the operating system."""
        return reported(self._failed)

    def _failed(self, failure: Failure, words: str, number: int | None) -> SongIndexError:
        if number is not None:
            return SongIndexError(
                f"song index {self._name}: cannot be opened: {words}", errno=number
            )
        if failure is Failure.FULL:
            return is_full(self._name)
        if failure is Failure.DAMAGED:
            return is_damaged(self._name, words)
        if failure is Failure.LOCKED:
            return is_busy(self._name, "database locked")
        if failure is Failure.UNFINISHED and self.is_fixed:
            return SongIndexError(
                f"song index {self._name}: needs recovery after an interrupted write, but is "
                "read-only for this process. Open it once with write permission"
            )
        return SongIndexError(f"song index {self._name}: cannot be used: {words}")


def _has_sound_log() -> bool:
    """Return whether this SQLite release has the fix of the WAL-reset bug."""
    if apsw is None:
        return False
    version = tuple(int(one) for one in apsw.sqlite_lib_version().split("."))
    return version >= _FIRST_SOUND_LOG


def _make(path: Path) -> None:
    """Create an empty file that only its owner can access.

    An existing file is not opened, because closing it would release this process's locks on it.
    """
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
    except FileExistsError:
        return


def _is_fixed(path: Path) -> bool:
    """Return whether a database is readable but not writable."""
    file = os.path.realpath(path)
    may = os.access
    return may(file, os.R_OK, effective_ids=True) and not all(
        may(one, os.W_OK, effective_ids=True)
        for one in (file, os.path.dirname(file))  # noqa: PTH120
    )


def _files_of(path: Path) -> _Files:
    file = os.path.realpath(path)
    status = os.stat(file)  # noqa: PTH116 - a str, like the other files

    def state(name: str) -> tuple[int, int, int] | None:
        try:
            found = os.stat(name)  # noqa: PTH116
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    database = status.st_ino, status.st_size, status.st_mtime_ns
    return _Files(database, *(state(file + end) for end in ("-wal", "-shm", "-journal")))


def _opened(name: str, *, is_fixed: bool = False) -> Any:
    """Open a path, or the URI of a read-only database."""
    if apsw is None:
        native = sqlite3.connect(
            name,
            timeout=_MAX_WAIT_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            uri=is_fixed,
        )
        native.execute("PRAGMA temp_store = MEMORY")
        return native
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(name, flags if is_fixed else apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(_MAX_WAIT_MS)
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def library() -> str:
    """Return the SQLite library in use, such as ``"apsw 3.51.3"``.

    Example:
        >>> from polymux._util.sqlite import library
        >>> library().split()[0] in ("apsw", "sqlite3")
        True
    """
    if apsw is None:
        return f"sqlite3 {sqlite3.sqlite_version}"
    return f"apsw {apsw.sqlite_lib_version()}"


def is_full(name: str) -> SongIndexError:
    """Return the error for a full disk. The failed transaction wrote nothing."""
    return SongIndexError(
        f"song index {name}: disk full. Free some space and try again; earlier changes are kept",
        code="storage_full",
        errno=errno.ENOSPC,
    )


def is_damaged(name: str, words: str) -> SongIndexError:
    """Return the error for a damaged database."""
    return SongIndexError(
        f"song index {name}: damaged ({words}). Restore a backup, or move its directory away "
        "and add the music again; nothing was deleted",
        code="song_index_damaged",
    )


def is_busy(name: str, holder: str) -> SongIndexError:
    """Return the error for an index that another process writes."""
    return SongIndexError(
        f"song index {name}: in use by another process ({holder}). Wait until it ends; searches "
        "and recognition work in the meantime",
        code="song_index_busy",
    )
