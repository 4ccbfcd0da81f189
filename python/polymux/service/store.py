"""The folder of jobs and files, and the one thread that uses its database."""

from __future__ import annotations

import asyncio
import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from polymux._util.text import display_name
from polymux.errors import InternalServerError
from polymux.service.clock import SteadyClock, ages_of
from polymux.service.database import Database
from polymux.service.errors import StoreError
from polymux.service.job_table import JobTable
from polymux.service.media_store import (
    JOB_DATABASE,
    MediaStore,
    refuse_files_of_others,
    set_aside_files_of_none,
)
from polymux.service.model import OutputFile
from polymux.service.signed_urls import UrlSigner
from polymux.service.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.service.job_table import Job

Result = TypeVar("Result")


class Store:
    """A folder of jobs and files, used by one process at a time.

    ::

        FOLDER/lock             locked while the store is open; contains the process id
        FOLDER/catalogue.db     job database, SQLite
        FOLDER/link-secrets     secrets of signed links
        FOLDER/media/ab/ab...   the files
        FOLDER/drafts/          files being written

    The store does not touch foreign files in the last two folders. It rejects a folder with such
    files but without a job database.

    Args:
        folder: Created if missing.
        max_bytes: Maximum size of all jobs and files. Default: 20 GiB.
        max_key_bytes: Maximum size of the jobs and files of one API key. Default: no limit.
        max_key_jobs: Maximum number of jobs of one API key. Default: no limit.
        life_s: Retention of ended jobs and their files in seconds. Default: a day.
        clock: Returns seconds since 1970. With the default, a `SteadyClock`, the store detects
            clock jumps between two servers, see `polymux.service.clock.ClockSkewTracker`. Any
            other clock is trusted.

    Raises:
        StoreError: Another process uses the folder; it is damaged or not writable; or it is not a
            store but contains foreign files in ``media`` or ``drafts``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int = 20 << 30,
        max_key_bytes: int | None = None,
        max_key_jobs: int | None = None,
        life_s: float = 86400.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.clock = clock or SteadyClock()
        self._lock = _locked(folder)
        try:
            set_aside_files_of_none(folder)
            self._database = Database(folder / JOB_DATABASE)
            try:
                self._ages = ages_of(self._database, self.clock)
                self.usage = Usage(self._database, max_bytes, max_key_bytes, max_key_jobs)
                self.jobs = JobTable(self._database, self.usage, life_s=life_s, clock=self.clock)
                self.media = MediaStore(
                    folder, self._database, self.usage, life_s=life_s, clock=self.clock
                )
                self.links = UrlSigner(folder / "link-secrets", clock=self.clock)
            except BaseException:
                self._database.close()
                raise
        except (OSError, InternalServerError) as error:
            os.close(self._lock)
            words = error.strerror if isinstance(error, OSError) else str(error)
            raise StoreError(
                f"store {display_name(folder.as_posix())}: cannot be used: {words}"
            ) from error
        except BaseException:
            os.close(self._lock)
            raise
        self._thread = ThreadPoolExecutor(1, "polymux-jobs")

    async def run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Run a function on the database thread.

        If the awaiting task is canceled, the function still finishes, so no write is partial.
        """
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, work, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    async def run_to_end(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Like `run`, but returns or raises only when the function is done.

        Cancellation is ignored, because the awaiting task ends right after it anyway.
        """
        loop = asyncio.get_running_loop()
        # Not a task, because closing a loop cancels all tasks.
        future = loop.run_in_executor(self._thread, work, *arguments)
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        return future.result()

    async def kept(self, job: Job, output: Any) -> Any:
        """Store the files of a job's output and replace them by their names.

        Raises:
            PolymuxError: A file cannot be stored; it is discarded.
        """
        if isinstance(output, OutputFile):
            return {"file": await self._adopted(job, output)}
        if isinstance(output, list):
            return [await self.kept(job, one) for one in output]
        if isinstance(output, dict):
            return {name: await self.kept(job, one) for name, one in output.items()}
        return output

    async def _adopted(self, job: Job, made: OutputFile) -> str:
        """Store a file and return its name; discards it on failure or cancellation."""
        sealing = asyncio.ensure_future(asyncio.to_thread(made.draft.seal))
        try:
            digest, size_bytes = await asyncio.shield(sealing)
            file = await self.run(
                lambda: self.media.adopt(
                    made.draft,
                    job=job.id,
                    owner=job.owner,
                    sha256=digest,
                    size_bytes=size_bytes,
                    content_type=made.content_type,
                    file_name=made.file_name,
                )
            )
        except BaseException:
            with suppress(Exception):
                await sealing
            await self.run(made.draft.discard)
            raise
        return file.name

    def sweep(self) -> int:
        """Remove expired files, jobs and idempotency keys; returns the number.

        Runs on the database thread.
        """
        removed = self.media.sweep()
        over = self.jobs.expired()
        if over:
            self.forget(*over)
        # After the other steps, which free space: deleting keys needs some on a full disk.
        removed += self.jobs.sweep_keys()
        self.links.rotate()
        if self._ages is not None:
            self._ages.note()
        return removed + len(over)

    def forget(self, *jobs: str) -> None:
        """Remove jobs with their files. Runs on the database thread."""
        files = [file for name in jobs for file in self.media.of_job(name)]
        self.media.remove(*files, also=lambda: self.jobs.remove(*jobs))

    def withdraw(self, job: Job) -> None:
        """Remove a job that no client has received, with files and key; like `forget`."""
        self.media.remove(*self.media.of_job(job.id), also=lambda: self.jobs.withdraw(job))

    def close(self) -> None:
        """Finish writing and release the lock. May be called more than once."""
        if self._lock < 0:
            return
        self._thread.shutdown(wait=True)
        self._database.close()
        os.close(self._lock)
        self._lock = -1


#: Parts of a store that must be accessible if they exist.
_OWN = (JOB_DATABASE, "link-secrets", "media", "drafts")


def _check_access(path: Path) -> None:
    """Reject files without permission before anything is changed."""
    if not path.exists():
        return
    wanted = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    if not os.access(path, wanted):
        raise StoreError(
            f"{display_name(path.as_posix())}: permission denied (owner: user "
            f"{path.stat().st_uid}, this process: user {os.geteuid()}). Run the server as the "
            "owner, or change the owner of the store with chown -R (nothing was changed)"
        )


def _locked(folder: Path) -> int:
    """Lock the store and return the descriptor of the lock."""
    name = display_name(folder.as_posix())
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_access(folder)
        for own in _OWN:
            _check_access(folder / own)
        refuse_files_of_others(folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(folder / "lock", flags, 0o600)
    except OSError as error:
        raise StoreError(f"store {name}: cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise StoreError(
            f"store {name}: in use by another server (process {holder or 'unknown'}). Stop that "
            "server, or choose another directory for the store"
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise StoreError(f"store {name}: cannot be written: {error.strerror}") from error
    return descriptor
