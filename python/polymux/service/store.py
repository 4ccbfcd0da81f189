"""The folder that jobs and files are kept in, and the one thread that writes its catalogue."""

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
    CATALOGUE,
    MediaStore,
    refuse_files_of_others,
    set_aside_files_of_none,
)
from polymux.service.model import OutputFile
from polymux.service.signed_urls import UrlSigner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.service.job_table import Job

Result = TypeVar("Result")


class Store:
    """One folder, one process: a second that opens it is refused.

    ::

        FOLDER/lock             held while the store is open; names who holds it
        FOLDER/catalogue.db     jobs and files, SQLite
        FOLDER/link-secrets     what links are signed with
        FOLDER/media/ab/ab...   the files
        FOLDER/drafts/          files that are being written

    What others have put into the last two is left alone, and a folder that has such files and no
    catalogue is no store: it is refused.

    Args:
        folder: Made where there is none.
        cap_bytes: Most that all files may take. Default: 20 GiB.
        life_s: How long jobs that have ended, and their files, are kept. Default: a day.
        clock: Seconds since 1970. Of a `SteadyClock`, the default, leaps between two servers are
            found out, see `polymux.service.clock.ClockSkewTracker`; any other is believed.

    Raises:
        StoreError: Another process has it open; it is damaged; it cannot be written; it is no
            store, and has ``media`` or ``drafts`` of somebody else.
    """

    def __init__(
        self,
        folder: Path,
        *,
        cap_bytes: int = 20 << 30,
        life_s: float = 86400.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.clock = clock or SteadyClock()
        self._lock = _locked(folder)
        try:
            set_aside_files_of_none(folder)
            self._database = Database(folder / CATALOGUE)
            try:
                self._ages = ages_of(self._database, self.clock)
                self.jobs = JobTable(self._database, life_s=life_s, clock=self.clock)
                self.media = MediaStore(
                    folder, self._database, cap_bytes=cap_bytes, life_s=life_s, clock=self.clock
                )
                self.links = UrlSigner(folder / "link-secrets", clock=self.clock)
            except BaseException:
                self._database.close()
                raise
        except (OSError, InternalServerError) as error:
            os.close(self._lock)
            words = error.strerror if isinstance(error, OSError) else str(error)
            raise StoreError(
                f"the store {display_name(folder.as_posix())} cannot be used: {words}"
            ) from error
        except BaseException:
            os.close(self._lock)
            raise
        self._thread = ThreadPoolExecutor(1, "polymux-catalogue")

    async def run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Runs what touches the catalogue on its thread.

        A task that is cancelled meanwhile leaves it to its end: nothing is written by halves.
        """
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, work, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    async def run_to_end(self, work: Callable[..., Result], *arguments: object) -> Result:
        """The same, but returns or raises when it is done, and not before.

        To be cancelled meanwhile has no effect: the task that awaits it is at its end with it.
        """
        loop = asyncio.get_running_loop()
        # No task: those are all cancelled when a loop is closed.
        future = loop.run_in_executor(self._thread, work, *arguments)
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        return future.result()

    async def kept(self, job: Job, output: Any) -> Any:
        """A job's output with files of the store in the place of what was made.

        Raises:
            PolymuxError: One of them cannot be kept; it is gone.
        """
        if isinstance(output, OutputFile):
            return {"file": await self._adopted(job, output)}
        if isinstance(output, list):
            return [await self.kept(job, one) for one in output]
        if isinstance(output, dict):
            return {name: await self.kept(job, one) for name, one in output.items()}
        return output

    async def _adopted(self, job: Job, made: OutputFile) -> str:
        """Gives a file that was made its name; where that fails, or is cancelled, it is gone."""
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
        """Removes what has had its time: files, jobs, keys of idempotency; gives how many.

        On the catalogue's thread.
        """
        removed = self.media.sweep()
        over = self.jobs.expired()
        if over:
            self.forget(*over)
        # Behind what makes room: on a full disk there is none to forget keys in.
        removed += self.jobs.sweep_keys()
        self.links.rotate()
        if self._ages is not None:
            self._ages.note()
        return removed + len(over)

    def forget(self, *jobs: str) -> None:
        """Removes jobs with their files. On the catalogue's thread."""
        files = [file for name in jobs for file in self.media.of_job(name)]
        self.media.remove(*files, also=lambda: self.jobs.remove(*jobs))

    def withdraw(self, job: Job) -> None:
        """Removes a job whose result nobody has had, with its files and its key; as `forget`."""
        self.media.remove(*self.media.of_job(job.id), also=lambda: self.jobs.withdraw(job))

    def close(self) -> None:
        """Finishes what is being written, and lets the next process in. Any number of times."""
        if self._lock < 0:
            return
        self._thread.shutdown(wait=True)
        self._database.close()
        os.close(self._lock)
        self._lock = -1


#: What a store cannot do without, where it is there.
_OWN = (CATALOGUE, "link-secrets", "media", "drafts")


def _check_access(path: Path) -> None:
    """Refuses what this process may not use, before anything is changed."""
    if not path.exists():
        return
    wanted = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    if not os.access(path, wanted):
        raise StoreError(
            f"{display_name(path.as_posix())} belongs to another account (user "
            f"{path.stat().st_uid}), and this is user {os.geteuid()}: run the server as that one, "
            "or give this one the store (chown -R); nothing was changed"
        )


def _locked(folder: Path) -> int:
    """A descriptor that holds the store's lock."""
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
        raise StoreError(f"the store {name} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise StoreError(
            f"the store {name} is in use by another server (process {holder or 'unknown'}): stop "
            "that one, or give this one a folder of its own"
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise StoreError(f"the store {name} cannot be written: {error.strerror}") from error
    return descriptor
