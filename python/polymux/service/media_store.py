"""Result and uploaded files: random names, atomic creation, expiry."""

from __future__ import annotations

import logging
import os
import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import display_name
from polymux.errors import InternalServerError
from polymux.service.errors import StoreError
from polymux.service.temporary_files import TempFile, is_of_drafts, remove_left_drafts, reported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from polymux.service.database import Database
    from polymux.service.usage import Usage

_log = logging.getLogger("polymux.service")
_NAME_BYTES = 20
#: Name of a stored file; its folder is named after its first two characters.
_NAME = re.compile(r"[0-9a-f]{40}\.[0-9a-z]+")
_GROUP = re.compile(r"[0-9a-f]{2}")
#: File name of the job database in the store's folder. It has the name of 0.1, because an older
#: polymux that did not find it would set all files aside instead of refusing a newer store.
JOB_DATABASE = "catalogue.db"
#: Media types and their file extensions.
MEDIA_EXTENSIONS = {
    "audio/flac": ".flac",
    "audio/ogg": ".ogg",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "audio/matroska": ".mka",
    "audio/mp4": ".m4a",
    "audio/webm": ".weba",
    "video/matroska": ".mkv",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
}
_EXTENSIONS = {**MEDIA_EXTENSIONS, "application/json": ".json", "text/plain": ".txt"}


def refuse_files_of_others(folder: Path) -> None:
    """Reject a folder without job database whose ``media`` or ``drafts`` contain foreign files.

    A store would delete or move these files. It recognizes its own files by their names.

    Raises:
        StoreError: The folder contains foreign files.
        OSError: The folder cannot be read.
    """
    if _has_job_database(folder):
        return
    for one in _files_of_others(folder):
        raise StoreError(
            f"{display_name(one.as_posix())}: not created by polymux. The store "
            f"{display_name(folder.as_posix())} must not contain other files in its directories "
            "media and drafts. Choose another directory for the store, or move the file away "
            "(nothing was changed)"
        )


def _files_of_others(folder: Path) -> Iterator[Path]:
    media, drafts = folder / "media", folder / "drafts"
    for one in (media, drafts):
        if one.exists() and not one.is_dir():
            yield one
    for one in drafts.iterdir() if drafts.is_dir() else ():
        if not is_of_drafts(one):
            yield one
    for group in media.iterdir() if media.is_dir() else ():
        if group.is_symlink() or not group.is_dir() or not _GROUP.fullmatch(group.name):
            yield group
            continue
        for one in group.iterdir():
            if not _is_of_media(one):
                yield one


def _is_of_media(path: Path) -> bool:
    """Check by name and type whether a file belongs to the store."""
    named = _NAME.fullmatch(path.name) and path.name.startswith(path.parent.name)
    return bool(named) and (path.is_symlink() or not path.is_dir())


def _has_job_database(folder: Path) -> bool:
    database = folder / JOB_DATABASE
    return database.exists() and database.stat().st_size > 0


def set_aside_files_of_none(folder: Path) -> None:
    """Move media aside if their job database is missing: they may be valuable.

    Call it before a new database is created. A store with an empty database would delete them like
    leftovers of a killed process.

    Raises:
        OSError: They cannot be moved.
    """
    media = folder / "media"
    if _has_job_database(folder):
        return
    if media.is_dir() and any(media.iterdir()):
        media.rename(folder / f"media.without-catalogue.{secrets.token_hex(4)}")


class StoredFile(NamedTuple):
    """A file of the store.

    Attributes:
        name: Random, 160 bits, with an extension; part of the file's URL.
        job: Id of the job that created it; empty for an uploaded file.
        owner: Id of the API key that created the job or uploaded the file.
        sha256: 64 hexadecimal digits.
        content_type: Determined by polymux; for uploaded files as declared by the client.
        file_name: Suggested name for saving.
        created_at: Seconds since 1970.
        expires_at: Seconds since 1970.
        metadata: JSON of an uploaded file from its client.
    """

    name: str
    job: str
    owner: str
    sha256: str
    size_bytes: int
    content_type: str
    file_name: str
    created_at: float
    expires_at: float
    metadata: str = "{}"


class MediaStore:
    """Manages the folders ``media`` and ``drafts`` and the database table of files.

    Methods that use the database (`adopt`, `find`, `remove`, `sweep`) belong to its thread; others
    may be called on any thread.

    Args:
        folder: Folder of the store.
        usage: Counts the files, and the space reserved for drafts.
        life_s: Retention in seconds.
        clock: Returns seconds since 1970.

    Raises:
        StoreError: A folder cannot be created.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        usage: Usage,
        *,
        life_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._media = folder / "media"
        self._drafts = folder / "drafts"
        self._database = database
        self._usage = usage
        self._life_s = life_s
        self._clock = clock
        try:
            remove_left_drafts(self._drafts)
            for one in (self._media, self._drafts):
                one.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_orphans()
        except OSError as error:
            raise StoreError(f"the store cannot be used: {error}") from error
        usage.refresh()

    def _remove_orphans(self) -> None:
        known = {str(row["name"]) for row in self._database.rows("SELECT name FROM files")}
        # Files of jobs that never reached their end: no client has received them.
        query = (
            "SELECT name FROM files JOIN jobs ON jobs.id = files.job "
            "WHERE jobs.status != 'succeeded'"
        )
        wanted = known - {str(row["name"]) for row in self._database.rows(query)}
        there = set()
        for group in self._media.iterdir():
            if not group.is_dir() or group.is_symlink():
                continue
            with os.scandir(group) as entries:
                for one in entries:
                    if one.name in wanted and one.is_file(follow_symlinks=False):
                        there.add(one.name)
                    elif _is_of_media(group / one.name):
                        (group / one.name).unlink()
        with self._database.transaction():
            for name in known - there:
                self._database.execute("DELETE FROM files WHERE name = ?", (name,))

    @property
    def used_bytes(self) -> int:
        """Size of all files, plus the space reserved for drafts."""
        return self._usage.file_bytes

    def draft(self, expected_bytes: int = 0) -> TempFile:
        """Create a draft on the file system of the store.

        Args:
            expected_bytes: Expected size, which is reserved. Default: 0.

        Raises:
            InternalServerError: Not enough space (code ``storage_full``).
        """
        made = TempFile(self._usage, self._drafts / secrets.token_hex(_NAME_BYTES))
        made.reserve(expected_bytes)
        return made

    def adopt(
        self,
        draft: TempFile,
        *,
        job: str,
        owner: str,
        sha256: str,
        size_bytes: int,
        content_type: str,
        file_name: str,
        metadata: str = "{}",
    ) -> StoredFile:
        """Move a sealed draft into the store under a new random name.

        Raises:
            InternalServerError: The disk is full, or the API key's part of the store for an
                uploaded file (code ``storage_full``).
            StoreError: It cannot be moved or stored in the database.
        """
        if not job:
            self._usage.check_key(owner, size_bytes)
        extension = _EXTENSIONS.get(content_type, ".bin")
        name = f"{secrets.token_hex(_NAME_BYTES)}{extension}"
        now = self._clock()
        made = StoredFile(
            name, job, owner, sha256, size_bytes, content_type, file_name, now,
            now + self._life_s, metadata,
        )  # fmt: skip
        target = self._path(name)
        try:
            with reported("cannot move a file into the store"):
                if not target.parent.exists():
                    target.parent.mkdir(mode=0o700, exist_ok=True)
                    _sync_folder(self._media)
                draft.path.rename(target)
                _sync_folder(target.parent)
            marks = ", ".join("?" * len(made))
            self._database.execute(f"INSERT INTO files VALUES ({marks})", made)  # noqa: S608
        except BaseException:
            target.unlink(missing_ok=True)
            with suppress(StoreError, InternalServerError):
                # A failed sync after the commit is an error, too.
                self._database.execute("DELETE FROM files WHERE name = ?", (name,))
            raise
        self._usage.refresh()
        draft.discard()
        return made

    def _path(self, name: str) -> Path:
        return self._media / name[:2] / name

    def find(self, name: str) -> StoredFile | None:
        """Return the file with this name, or None if unknown or expired."""
        row = self._database.row("SELECT * FROM files WHERE name = ?", (name,))
        if row is None or row["expires_at"] <= self._clock():
            return None
        return StoredFile(*row)

    def open(self, file: StoredFile) -> int:
        """Open a file for reading; the descriptor stays valid if the file is removed.

        Raises:
            FileNotFoundError: It no longer exists.
            OSError: It cannot be read.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        return os.open(self._path(file.name), flags)

    def path_of(self, file: StoredFile) -> Path:
        return self._path(file.name)

    def of_job(self, job: str) -> list[StoredFile]:
        return self._files("job = ? ORDER BY created_at, name", job)

    def _files(self, condition: str, *values: Any) -> list[StoredFile]:
        query = f"SELECT * FROM files WHERE {condition}"  # noqa: S608
        return [StoredFile(*row) for row in self._database.rows(query, values)]

    def sent_by(self, owner: str, most: int = 1000) -> list[StoredFile]:
        """Return files uploaded with an API key, newest first."""
        condition = (
            "owner = ? AND job = '' AND expires_at > ? ORDER BY created_at DESC, name LIMIT ?"
        )
        return self._files(condition, owner, self._clock(), most)

    def remove(self, *files: StoredFile, also: Callable[[], object] | None = None) -> None:
        """Remove files; readers that have opened one can finish reading.

        Args:
            also: Further database changes in the same transaction. Default: none.

        Raises:
            InternalServerError: The disk is full even without these files (code ``storage_full``).
                The database is unchanged, but the files are deleted.
        """
        try:
            self._forget(files, also)
        except InternalServerError as error:
            if error.code != "storage_full" or not files:
                raise
            # Deleting rows needs space for SQLite's journal: delete the files first.
            self._unlink(files)
            self._forget(files, also)
        self._unlink(files)

    def _forget(self, files: tuple[StoredFile, ...], also: Callable[[], object] | None) -> None:
        with self._database.transaction():
            for file in files:
                self._database.execute("DELETE FROM files WHERE name = ?", (file.name,))
            if also is not None:
                also()
        self._usage.refresh()

    def _unlink(self, files: tuple[StoredFile, ...]) -> None:
        for file in files:
            # A file that cannot be removed now is removed at the next start.
            with suppress(OSError):
                self._path(file.name).unlink()

    def sweep(self, most: int = 500) -> int:
        """Remove expired files; returns the number.

        Args:
            most: Maximum number per call, to keep the thread available. Default: 500.
        """
        over = self._files("expires_at <= ? ORDER BY expires_at LIMIT ?", self._clock(), most)
        if over:
            self.remove(*over)
        return len(over)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
