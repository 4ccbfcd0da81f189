"""SQLite: connections, transactions, and its failures as errors of polymux.

`connect` opens a database of one process with the standard library. `Connection` is for databases
that several processes share: by apsw where it is installed, else by the standard library. The two
carry different releases of SQLite. Releases before 3.51.3 can damage a write-ahead log that several
connections use (https://sqlite.org/wal.html, "the WAL-reset bug"), and the standard library's is as
old as the system. So only apsw's makes databases with such a log; the other one turns a log back
into a rollback journal before it reads anything else.

Of a database that this process may read and not write, on a disk that is mounted so or in a folder
of somebody else's, SQLite can read no log that it cannot lock. Where nobody has one open, the file
is read as one that never changes; and it is looked at before and after each question, for somebody
else may change it after all.
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
from polymux.errors import CatalogueError, PolymuxError

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
    """What went wrong, by SQLite's result codes (https://sqlite.org/rescode.html)."""

    FULL = (13,)
    DAMAGED = (11, 26)
    LOCKED = (5, 6)
    #: Reading must write first: a writer was killed.
    UNFINISHED = (8, 14)
    OTHER = ()


@contextmanager
def reported(failed: Callable[[Failure, str, int | None], Exception]) -> Iterator[None]:
    """Turns what SQLite and the system raise into an error for people.

    Args:
        failed: Makes the error, of the failure, its text and the system's error number.
    """
    try:
        yield
    except PolymuxError:
        raise  # Some are OSErrors as well.
    except _ERRORS as error:
        code = getattr(error, "sqlite_errorcode", None) or getattr(error, "result", 0)
        kinds = (one for one in Failure if (code or 0) & 0xFF in one.value)
        raise failed(next(kinds, Failure.OTHER), " ".join(str(error).split()), None) from error
    except OSError as error:
        raise failed(Failure.OTHER, error.strerror or str(error), error.errno) from error


def connect(path: Path, *, timeout_s: float = 5.0) -> sqlite3.Connection:
    """Opens a database of one process at a time, with a rollback journal, synced to the disk.

    Not a write-ahead log: releases of SQLite before 3.51.3 can damage one
    (https://sqlite.org/wal.html, "the WAL-reset bug"), and one writer gains nothing from it.
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
    """All of what is written inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself where the disk was full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


#: Writers take milliseconds, and there is one at a time.
_MAX_WAIT_MS = 30_000
#: Writers that are done between the beginning and the end of one question are few.
_MAX_TRIES = 20


class _Files(NamedTuple):
    """By what a change is known of a database that is read without locks."""

    database: tuple[int, int, int]
    log: tuple[int, int, int] | None
    shared: tuple[int, int, int] | None
    journal: tuple[int, int, int] | None

    @property
    def is_at_rest(self) -> bool:
        """Whether all of it is in the database itself, and nobody has a log of it open."""
        _, size, _ = self.journal or (0, 0, 0)
        return size == 0 and (self.log is None or (self.log[1] == 0 and self.shared is None))


class Connection:
    """One connection, for any number of threads, one after another.

    Args:
        path: The database; made where there is none.
        reads_only: Refuse to write.

    Attributes:
        is_fixed: Whether this process may not write it, nor make files beside it.
        openings: How often it was opened: others have changed what this process cannot lock.

    Raises:
        CatalogueError: It cannot be opened, or is no database.
    """

    def __init__(self, path: Path, *, reads_only: bool = False) -> None:
        self._path = path
        self._name = display_name(path.as_posix())
        self._lock = threading.RLock()
        self._open = True
        self.is_fixed = _is_fixed(path)
        self.openings = 1
        #: Of one that is read without locks: what it was when it was opened.
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
        """Alone, so without what other connections share, which is where the defect is."""
        self.rows("PRAGMA locking_mode = EXCLUSIVE")
        try:
            found = self.rows("PRAGMA journal_mode = TRUNCATE")
        except CatalogueError as error:
            if error.code != "catalogue_busy":
                raise
            found = []
        if found != [("truncate",)]:
            raise CatalogueError(
                f"the catalogue {self._name} was made with apsw, and another process uses it now: "
                "install polymux[songs] here too, or wait for the end of that process",
                code="catalogue_busy",
            )
        self.rows("PRAGMA locking_mode = NORMAL")
        # The lock goes with the next reading.
        self.rows("SELECT count(*) FROM sqlite_schema")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it, or nothing."""
        if self.is_fixed:
            raise CatalogueError(
                f"the catalogue {self._name} cannot be written: it is on a disk, or in a folder, "
                "that this process may only read",
                errno=errno.EROFS,
            )
        with self._lock, self.reported():
            self._check_open()
            with transaction(self._native):
                yield

    def _check_open(self) -> None:
        if not self._open:
            raise CatalogueError(f"the catalogue {self._name} is closed", code="closed")

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement; gives all its rows."""
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
        """Whether somebody has written what is read without locks."""
        return self._files is not None and _files_of(self._path) != self._files

    def _follow(self) -> None:
        """Opens it anew where somebody has written it: with locks while he is there."""
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
        """The first row; None where there is none."""
        found = self.rows(statement, values)
        return found[0] if found else None

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first value of the first row; None where there is none."""
        found = self.row(statement, values)
        return found[0] if found else None

    def close(self) -> None:
        """Closes. Any number of times."""
        with self._lock:
            if self._open:
                self._open = False
                self._native.close()

    def reported(self) -> AbstractContextManager[None]:
        """Turns what SQLite and the system raise into errors for people."""
        return reported(self._failed)

    def _failed(self, failure: Failure, words: str, number: int | None) -> CatalogueError:
        if number is not None:
            return CatalogueError(
                f"the catalogue {self._name} cannot be opened: {words}", errno=number
            )
        if failure is Failure.FULL:
            return is_full(self._name)
        if failure is Failure.DAMAGED:
            return is_damaged(self._name, words)
        if failure is Failure.LOCKED:
            return is_busy(self._name, "it holds the database")
        if failure is Failure.UNFINISHED and self.is_fixed:
            return CatalogueError(
                f"the catalogue {self._name} was left by a process that ended while it wrote, and "
                "cannot be put in order where it may only be read: open it once where it can be "
                "written"
            )
        return CatalogueError(f"the catalogue {self._name} cannot be used: {words}")


def _has_sound_log() -> bool:
    """Whether this SQLite has the repair of the write-ahead log."""
    if apsw is None:
        return False
    version = tuple(int(one) for one in apsw.sqlite_lib_version().split("."))
    return version >= _FIRST_SOUND_LOG


def _make(path: Path) -> None:
    """An empty file that is only its owner's.

    One that is there is not touched: closing it would give up what this process has locked in it.
    """
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
    except FileExistsError:
        return


def _is_fixed(path: Path) -> bool:
    """Whether a database is there to be read, but not to be written."""
    file = os.path.realpath(path)
    may = os.access
    return may(file, os.R_OK, effective_ids=True) and not all(
        may(one, os.W_OK, effective_ids=True)
        for one in (file, os.path.dirname(file))  # noqa: PTH120
    )


def _files_of(path: Path) -> _Files:
    file = os.path.realpath(path)
    status = os.stat(file)  # noqa: PTH116 - of a text, as what lies beside it

    def state(name: str) -> tuple[int, int, int] | None:
        try:
            found = os.stat(name)  # noqa: PTH116
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    database = status.st_ino, status.st_size, status.st_mtime_ns
    return _Files(database, *(state(file + end) for end in ("-wal", "-shm", "-journal")))


def _opened(name: str, *, is_fixed: bool = False) -> Any:
    """Opens a path, or the address of what is only to be read."""
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
    """Which SQLite it is, such as ``"apsw 3.51.3"``.

    Example:
        >>> from polymux._util.sqlite import library
        >>> library().split()[0] in ("apsw", "sqlite3")
        True
    """
    if apsw is None:
        return f"sqlite3 {sqlite3.sqlite_version}"
    return f"apsw {apsw.sqlite_lib_version()}"


def is_full(name: str) -> CatalogueError:
    """No room for what should be written; nothing of it was."""
    return CatalogueError(
        f"the disk of the catalogue {name} is full: make room and do it again; what was written "
        "before is kept",
        code="storage_full",
        errno=errno.ENOSPC,
    )


def is_damaged(name: str, words: str) -> CatalogueError:
    """The database is not whole."""
    return CatalogueError(
        f"the catalogue {name} is damaged ({words}): put a backup of it in its place, or move it "
        "away and add the music again; nothing was removed",
        code="catalogue_damaged",
    )


def is_busy(name: str, holder: str) -> CatalogueError:
    """Another process writes."""
    return CatalogueError(
        f"the catalogue {name} is being written by another process ({holder}): wait for its end; "
        "songs can be searched and identified meanwhile",
        code="catalogue_busy",
    )
