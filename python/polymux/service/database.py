"""The job database: SQLite in one process, on one connection, with a rollback journal."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux._util.sqlite import Failure, connect, reported, transaction
from polymux._util.text import display_name
from polymux.service.errors import StoreError, storage_full

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

#: Number of backups kept per version.
_KEPT_BACKUPS = 3
#: One script per schema version; a database of version n has run the first n.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE jobs (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        operation TEXT NOT NULL,
        status TEXT NOT NULL,
        record TEXT NOT NULL,
        created_at REAL NOT NULL,
        completed_at REAL,
        idempotency_key TEXT,
        idempotency_hash TEXT
    ) STRICT;
    CREATE INDEX jobs_of_owner ON jobs (owner, number);
    CREATE INDEX jobs_by_end ON jobs (completed_at) WHERE completed_at IS NOT NULL;
    CREATE UNIQUE INDEX jobs_by_key ON jobs (owner, idempotency_key)
        WHERE idempotency_key IS NOT NULL;
    CREATE TABLE files (
        name TEXT PRIMARY KEY,
        job TEXT NOT NULL,
        owner TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        content_type TEXT NOT NULL,
        file_name TEXT NOT NULL,
        created_at REAL NOT NULL,
        expires_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX files_of_job ON files (job);
    CREATE INDEX files_by_expiry ON files (expires_at);
    """,
    """
    ALTER TABLE files ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
    CREATE INDEX files_of_owner ON files (owner, created_at) WHERE job = ''
    """,
    """
    CREATE TABLE times (
        boot TEXT NOT NULL,
        since_boot_s REAL NOT NULL,
        now REAL NOT NULL,
        began REAL NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE idempotency_keys (
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        hash TEXT NOT NULL,
        job TEXT NOT NULL UNIQUE,
        created_at REAL NOT NULL,
        PRIMARY KEY (owner, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
    INSERT INTO idempotency_keys (owner, key, hash, job, created_at)
        SELECT owner, idempotency_key, idempotency_hash, id, created_at FROM jobs
        WHERE idempotency_key IS NOT NULL;
    DROP INDEX jobs_by_key;
    ALTER TABLE jobs DROP COLUMN idempotency_key;
    ALTER TABLE jobs DROP COLUMN idempotency_hash
    """,
    # Inputs are written once. Records only have a shortened one, for lists. Before, a record had
    # the whole input, and that of a Replicate prediction twice.
    """
    CREATE TABLE inputs (
        job TEXT NOT NULL UNIQUE,
        input TEXT NOT NULL
    ) STRICT;
    INSERT INTO inputs
        SELECT id, COALESCE(
            json_extract(record, '$.asked.input'), json_extract(record, '$.input'), '{}'
        )
        FROM jobs WHERE json_valid(record);
    UPDATE jobs SET record = json_set(
            json_remove(record, '$.asked.input'), '$.input',
            json(CASE WHEN length(inputs.input) <= 10000 THEN inputs.input ELSE '{}' END)
        )
        FROM inputs WHERE inputs.job = jobs.id;
    CREATE TRIGGER job_deleted AFTER DELETE ON jobs BEGIN
        DELETE FROM inputs WHERE job = old.id;
    END;
    """,
    # How much each API key stores. Triggers keep it exact.
    """
    CREATE TABLE usage (
        owner TEXT PRIMARY KEY,
        jobs INTEGER NOT NULL,
        job_bytes INTEGER NOT NULL,
        file_bytes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    ALTER TABLE jobs ADD COLUMN size_bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE jobs SET size_bytes = length(record) +
        COALESCE((SELECT length(input) FROM inputs WHERE job = jobs.id), 0);
    INSERT INTO usage
        SELECT owner, SUM(jobs), SUM(job_bytes), SUM(file_bytes) FROM (
            SELECT owner, 1 AS jobs, size_bytes AS job_bytes, 0 AS file_bytes FROM jobs
            UNION ALL SELECT owner, 0, 0, size_bytes FROM files
            UNION ALL SELECT owner, 0, 200, 0 FROM idempotency_keys
        ) GROUP BY owner;
    CREATE TRIGGER job_counted AFTER INSERT ON jobs BEGIN
        INSERT INTO usage VALUES (new.owner, 1, new.size_bytes, 0)
        ON CONFLICT (owner) DO UPDATE SET jobs = jobs + 1, job_bytes = job_bytes + new.size_bytes;
    END;
    CREATE TRIGGER job_resized AFTER UPDATE OF size_bytes ON jobs BEGIN
        UPDATE usage SET job_bytes = job_bytes + new.size_bytes - old.size_bytes
        WHERE owner = new.owner;
    END;
    CREATE TRIGGER job_uncounted AFTER DELETE ON jobs BEGIN
        UPDATE usage SET jobs = jobs - 1, job_bytes = job_bytes - old.size_bytes
        WHERE owner = old.owner;
    END;
    CREATE TRIGGER file_counted AFTER INSERT ON files BEGIN
        INSERT INTO usage VALUES (new.owner, 0, 0, new.size_bytes)
        ON CONFLICT (owner) DO UPDATE SET file_bytes = file_bytes + new.size_bytes;
    END;
    CREATE TRIGGER file_uncounted AFTER DELETE ON files BEGIN
        UPDATE usage SET file_bytes = file_bytes - old.size_bytes WHERE owner = old.owner;
    END;
    CREATE TRIGGER key_counted AFTER INSERT ON idempotency_keys BEGIN
        INSERT INTO usage VALUES (new.owner, 0, 200, 0)
        ON CONFLICT (owner) DO UPDATE SET job_bytes = job_bytes + 200;
    END;
    CREATE TRIGGER key_uncounted AFTER DELETE ON idempotency_keys BEGIN
        UPDATE usage SET job_bytes = job_bytes - 200 WHERE owner = old.owner;
    END;
    """,
)


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements. A trigger contains semicolons."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


class Database:
    """A SQLite database.

    Not thread-safe: one thread owns it, see `polymux.service.store.Store`.

    Raises:
        StoreError: It is damaged, was made by a newer polymux, or cannot be opened or written.
        InternalServerError: The disk is full (code ``storage_full``).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._reported():
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            os.close(descriptor)
            self._connection = connect(path)
        try:
            with self._reported():
                self._open()
        except BaseException:
            self._connection.close()
            raise

    def _open(self) -> None:
        (found,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self._damaged(found)
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise StoreError(
                f"job database {self._name()}: unsupported version (got {version}, allowed up to "
                f"{len(MIGRATIONS)}). Use the version of polymux that created it, or choose "
                "another directory for the store"
            )
        if 0 < version < len(MIGRATIONS):
            self._back_up(version)
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            with self.transaction():
                for statement in _statements(script):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {number}")

    def _back_up(self, version: int) -> None:
        """Copy the database to a backup file beside it before a migration."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        target = self._path.with_name(f"{self._path.name}.version-{version}.{stamp}.backup")
        partial = target.with_name(f"{target.name}.part")
        # Remove partial backups of killed processes: they are large and useless.
        for left in self._path.parent.glob(f"{self._path.name}.version-*.backup.part*"):
            left.unlink(missing_ok=True)
        copy = sqlite3.connect(partial)
        try:
            self._connection.backup(copy)
        finally:
            copy.close()
        partial.chmod(0o600)
        partial.replace(target)
        # If migrations fail, each start creates another backup: keep only the newest.
        of_version = self._path.parent.glob(f"{self._path.name}.version-{version}.*.backup")
        for superseded in sorted(of_version)[:-_KEPT_BACKUPS]:
            superseded.unlink(missing_ok=True)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run all statements or none; nested transactions join the outer one."""
        if self._connection.in_transaction:
            yield
            return
        with self._reported(), transaction(self._connection):
            yield

    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int:
        with self._reported():
            return self._connection.execute(statement, values).rowcount

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self._reported():
            return self._connection.execute(query, values).fetchall()

    def row(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Row | None:
        """Return the first row, or None."""
        found = self.rows(query, values)
        return found[0] if found else None

    def close(self) -> None:
        self._connection.close()

    def _reported(self) -> AbstractContextManager[None]:
        return reported(self._failed)

    def _failed(self, failure: Failure, words: str, number: int | None) -> Exception:
        if number is not None:
            return StoreError(f"job database {self._name()}: cannot be opened: {words}")
        if failure is Failure.FULL:
            return storage_full("the disk of the job database is full")
        if failure is Failure.DAMAGED:
            return self._damaged(words)
        return StoreError(f"job database {self._name()}: cannot be used: {words}")

    def _damaged(self, words: str) -> StoreError:
        details = " ".join(words.split())  # SQLite reports several lines.
        return StoreError(
            f"job database {self._name()}: damaged ({details}). Restore a backup: media files that "
            "the backup does not list will be deleted. Or move the database away: the server will "
            "start with an empty one and move all media files to another directory"
        )

    def _name(self) -> str:
        return display_name(self._path.as_posix())
