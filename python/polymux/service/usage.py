"""How much of a store is used, in total and by each API key."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from polymux.service.errors import storage_full

if TYPE_CHECKING:
    from polymux.service.database import Database


class Usage:
    """Compares the size of jobs and files with the limits of a store.

    Args:
        database: Triggers of the job database count jobs, files and idempotency keys.
        max_bytes: Maximum size of everything.
        max_key_bytes: Maximum size of the jobs and files of one API key. Default: no limit.
        max_key_jobs: Maximum number of jobs of one API key. Default: no limit.
    """

    def __init__(
        self,
        database: Database,
        max_bytes: int,
        max_key_bytes: int | None = None,
        max_key_jobs: int | None = None,
    ) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._max_key_bytes = max_key_bytes
        self._max_key_jobs = max_key_jobs
        self._lock = threading.Lock()
        self._reserved_bytes = 0
        self._job_bytes = self._file_bytes = 0
        self.refresh()

    def refresh(self) -> None:
        """Read the sizes again. Call it on the database's thread after each change."""
        row = self._database.row(
            "SELECT COALESCE(SUM(job_bytes), 0), COALESCE(SUM(file_bytes), 0) FROM usage"
        )
        with self._lock:
            self._job_bytes, self._file_bytes = row or (0, 0)

    @property
    def total_bytes(self) -> int:
        """Size of all jobs and files, plus the space reserved for drafts. Thread-safe."""
        with self._lock:
            return self._job_bytes + self._file_bytes + self._reserved_bytes

    @property
    def file_bytes(self) -> int:
        """Size of all files, plus the space reserved for drafts. Thread-safe."""
        with self._lock:
            return self._file_bytes + self._reserved_bytes

    def reserve(self, more_bytes: int) -> None:
        """Reserve space, or release it if negative. Thread-safe.

        Raises:
            InternalServerError: Not enough space (code ``storage_full``).
        """
        with self._lock:
            self._check_total(more_bytes)
            self._reserved_bytes += more_bytes

    def check_job(self, owner: str, more_bytes: int) -> None:
        """Check whether there is room for a job; otherwise like `check_key`."""
        with self._lock:
            self._check_total(more_bytes)
        self.check_key(owner, more_bytes)

    def check_key(self, owner: str, more_bytes: int) -> None:
        """Check whether an API key may store more. Call it on the database's thread.

        Raises:
            InternalServerError: The key has used up its part of the store (code ``storage_full``).
        """
        if self._max_key_bytes is None and self._max_key_jobs is None:
            return
        query = "SELECT jobs, job_bytes + file_bytes FROM usage WHERE owner = ?"
        jobs, size_bytes = self._database.row(query, (owner,)) or (0, 0)
        if self._max_key_jobs is not None and jobs >= self._max_key_jobs:
            raise storage_full(
                f"this API key has too many jobs (allowed {self._max_key_jobs}). Delete jobs, or "
                "try again after some have expired"
            )
        if self._max_key_bytes is not None and size_bytes + more_bytes > self._max_key_bytes:
            raise storage_full(
                f"the jobs and files of this API key are too large (allowed {self._max_key_bytes} "
                f"bytes, used {size_bytes}, needed {more_bytes}). Delete jobs or files, or try "
                "again after some have expired"
            )

    def _check_total(self, more_bytes: int) -> None:
        used_bytes = self._job_bytes + self._file_bytes + self._reserved_bytes
        if more_bytes > 0 and used_bytes + more_bytes > self._max_bytes:
            raise storage_full(
                f"the server's store is full (limit {self._max_bytes} bytes, used {used_bytes}, "
                f"needed {more_bytes}). Send less data, delete results, or try again after some "
                "have expired"
            )
