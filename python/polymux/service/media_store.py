"""Files that jobs have made: named at random, whole or not there, gone when their time is over."""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import display_name
from polymux.errors import InternalServerError
from polymux.service.errors import StoreError, storage_full
from polymux.service.temporary_files import TempFile, is_of_drafts, remove_left_drafts, reported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from polymux.service.database import Database

_log = logging.getLogger("polymux.service")
_NAME_BYTES = 20
#: What a file of the store is called, in a folder of its first two letters.
_NAME = re.compile(r"[0-9a-f]{40}\.[0-9a-z]+")
_GROUP = re.compile(r"[0-9a-f]{2}")
#: In the store's folder: the database that knows jobs and files.
CATALOGUE = "catalogue.db"
#: Media, and what people's programs open them by.
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
    """Refuses a folder without a catalogue whose media or drafts are somebody else's files.

    A store would remove those, or move them away. Its own, whose catalogue is gone, it knows by
    their names.

    Raises:
        StoreError: It has such files.
        OSError: It cannot be looked into.
    """
    if _has_catalogue(folder):
        return
    for one in _files_of_others(folder):
        raise StoreError(
            f"{display_name(one.as_posix())} is no file of polymux, which keeps its own under "
            f"media and drafts of its store: give another folder than "
            f"{display_name(folder.as_posix())}, or move that away; nothing was changed"
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
    """Whether a file in one of the folders of media is the store's own, by its name and kind."""
    named = _NAME.fullmatch(path.name) and path.name.startswith(path.parent.name)
    return bool(named) and (path.is_symlink() or not path.is_dir())


def _has_catalogue(folder: Path) -> bool:
    catalogue = folder / CATALOGUE
    return catalogue.exists() and catalogue.stat().st_size > 0


def set_aside_files_of_none(folder: Path) -> None:
    """Puts files away whose catalogue is gone: nobody has a link to them, and they may be dear.

    Before a new catalogue is made. Of one that knows nothing they would be what a process that was
    killed has left, which is removed.

    Raises:
        OSError: They cannot be moved.
    """
    media = folder / "media"
    if _has_catalogue(folder):
        return
    if media.is_dir() and any(media.iterdir()):
        media.rename(folder / f"media.without-catalogue.{secrets.token_hex(4)}")


class StoredFile(NamedTuple):
    """A file of the store.

    Attributes:
        name: Random, 160 bits, with an extension; what links name.
        job: Id of the job that made it; empty where it was sent to be kept.
        owner: Id of the key that asked for the job, or sent it.
        sha256: Of its bytes, as 64 hexadecimal digits.
        size_bytes: Its size.
        content_type: Of what was made; of what was sent, what its sender calls it.
        file_name: What to save it as.
        created_at: Seconds since 1970.
        expires_at: The same; from then on it is gone.
        metadata: JSON that its sender keeps with it.
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
    """The folders ``media`` and ``drafts`` of a store, and what the catalogue says of them.

    What touches the catalogue (`adopt`, `find`, `remove`, `sweep`) belongs to the catalogue's
    thread; the rest may be called by any.

    Args:
        folder: The store's.
        database: The catalogue.
        cap_bytes: Most that all files, and those that are being written, may take.
        life_s: How long a file is kept.
        clock: Seconds since 1970.

    Raises:
        StoreError: A folder cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        *,
        cap_bytes: int,
        life_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._media = folder / "media"
        self._drafts = folder / "drafts"
        self._database = database
        self._cap_bytes = cap_bytes
        self._life_s = life_s
        self._clock = clock
        self._lock = threading.Lock()
        self._reserved_bytes = 0
        try:
            remove_left_drafts(self._drafts)
            for one in (self._media, self._drafts):
                one.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_orphans()
        except OSError as error:
            raise StoreError(f"the store cannot be used: {error}") from error
        row = database.row("SELECT COALESCE(SUM(size_bytes), 0) AS total FROM files")
        self._used_bytes = int(row["total"]) if row is not None else 0

    def _remove_orphans(self) -> None:
        known = {str(row["name"]) for row in self._database.rows("SELECT name FROM files")}
        # The process ended between a job's files and its end: nobody has been told of them.
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
        """What all files take, and what is reserved for those that are being written."""
        with self._lock:
            return self._used_bytes + self._reserved_bytes

    def draft(self, expected_bytes: int = 0) -> TempFile:
        """A place to write a new file to, in the store's own file system.

        Args:
            expected_bytes: How large it will be, about; so much is reserved. Default: 0.

        Raises:
            InternalServerError: There is no room for that (code ``storage_full``).
        """
        made = TempFile(self, self._drafts / secrets.token_hex(_NAME_BYTES))
        made.reserve(expected_bytes)
        return made

    def change_reserved(self, more_bytes: int) -> None:
        """Reserves more, or gives back where that is negative; `TempFile` calls it."""
        with self._lock:
            total = self._used_bytes + self._reserved_bytes + more_bytes
            if more_bytes > 0 and total > self._cap_bytes:
                raise storage_full(
                    f"the server keeps {self._cap_bytes} bytes of files at most, "
                    f"{total - more_bytes} are in use, and this takes {more_bytes} more: send "
                    "less, delete results that are not needed, or ask again when some have expired"
                )
            self._reserved_bytes += more_bytes

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
        """Gives a sealed draft its name; from then on it can be found.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: It cannot be moved or written down.
        """
        extension = _EXTENSIONS.get(content_type, ".bin")
        name = f"{secrets.token_hex(_NAME_BYTES)}{extension}"
        now = self._clock()
        made = StoredFile(
            name, job, owner, sha256, size_bytes, content_type, file_name, now,
            now + self._life_s, metadata,
        )  # fmt: skip
        target = self._path(name)
        try:
            with reported("the file cannot be kept"):
                if not target.parent.exists():
                    target.parent.mkdir(mode=0o700, exist_ok=True)
                    _sync_folder(self._media)
                draft.path.rename(target)
                _sync_folder(target.parent)
            marks = ", ".join("?" * len(made))
            self._database.execute(f"INSERT INTO files VALUES ({marks})", made)  # noqa: S608
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        with self._lock:
            self._used_bytes += size_bytes
        draft.discard()
        return made

    def _path(self, name: str) -> Path:
        return self._media / name[:2] / name

    def find(self, name: str) -> StoredFile | None:
        """The file of that name; None where there is none, or its time is over."""
        row = self._database.row("SELECT * FROM files WHERE name = ?", (name,))
        if row is None or row["expires_at"] <= self._clock():
            return None
        return StoredFile(*row)

    def open(self, file: StoredFile) -> int:
        """A descriptor to read it by, which outlives its removal.

        Raises:
            FileNotFoundError: It is gone.
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
        """The files that a key has sent to be kept, newest first, at most so many."""
        condition = (
            "owner = ? AND job = '' AND expires_at > ? ORDER BY created_at DESC, name LIMIT ?"
        )
        return self._files(condition, owner, self._clock(), most)

    def remove(self, *files: StoredFile, also: Callable[[], object] | None = None) -> None:
        """Removes them; whoever reads one reads on.

        Args:
            files: Any number.
            also: What is done to the catalogue with it: both, or neither. Default: nothing.

        Raises:
            InternalServerError: The disk is full, and stays so without them (code
                ``storage_full``). The catalogue is as it was; the files are gone.
        """
        try:
            self._forget(files, also)
        except InternalServerError as error:
            if error.code != "storage_full" or not files:
                raise
            # To forget takes room too, for SQLite's journal. There is no more need of theirs.
            self._unlink(files)
            self._forget(files, also)
        self._unlink(files)

    def _forget(self, files: tuple[StoredFile, ...], also: Callable[[], object] | None) -> None:
        freed_bytes = 0
        with self._database.transaction():
            for file in files:
                if self._database.execute("DELETE FROM files WHERE name = ?", (file.name,)):
                    freed_bytes += file.size_bytes
            if also is not None:
                also()
        with self._lock:
            self._used_bytes -= freed_bytes

    def _unlink(self, files: tuple[StoredFile, ...]) -> None:
        for file in files:
            # What cannot be removed now is nobody's, and is swept when a server starts.
            with suppress(OSError):
                self._path(file.name).unlink()

    def sweep(self, most: int = 500) -> int:
        """Removes files whose time is over; gives how many.

        Args:
            most: As many at once, so that others get their turn. Default: 500.
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
