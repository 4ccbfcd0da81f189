"""Files of the store that are not whole yet."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import re
import shutil
import stat
from contextlib import contextmanager, suppress
from io import FileIO
from typing import TYPE_CHECKING

from polymux.service.errors import StoreError, storage_full

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import ExitStack
    from pathlib import Path
    from typing import Self

    from polymux.service.media_store import MediaStore, StoredFile

_log = logging.getLogger("polymux.service")
_PIECE_BYTES = 1 << 20
#: Of a name, in that of a file that is not whole yet; 128 random bits.
_MAX_NAME_PREFIX_CHARACTERS = 32
#: A draft, and what becomes one in the hands of the core or of `atomic_file.PendingFile`.
_OF_DRAFTS = re.compile(r"[0-9a-f]{40}|\.[0-9a-f]{32}\.polymux-[0-9a-z]{8}\.part")
#: A folder of `tempfile.mkdtemp`, which a download writes to.
_OF_DOWNLOADS = re.compile(r"tmp[0-9a-z_]{8}")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class TempFile:
    """A file that is being written; `seal` it, and let the store `adopt` it.

    As a context manager it is gone at the end, unless it was adopted.
    """

    def __init__(self, store: MediaStore, path: Path) -> None:
        self._store = store
        self._reserved_bytes = 0
        #: Where to write. Whoever does makes the file new, and follows no link.
        self.path = path

    def reserve(self, total_bytes: int) -> None:
        """Makes sure of room for so many bytes in all.

        Raises:
            InternalServerError: There is none (code ``storage_full``).
        """
        more = total_bytes - self._reserved_bytes
        if more:
            self._store.change_reserved(more)
            self._reserved_bytes = total_bytes

    def create(self) -> FileIO:
        """The new file, open for writing, unbuffered.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: It cannot be made.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with reported("the file cannot be written"):
            return FileIO(os.open(self.path, flags, 0o600), "wb")

    @staticmethod
    def write_to(file: FileIO, data: bytes) -> None:
        """Writes all of it.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: It cannot be written.
        """
        view = memoryview(data)
        with reported("the file cannot be written"):
            while view:
                view = view[file.write(view) or 0 :]

    def seal(self) -> tuple[str, int]:
        """Syncs what was written; gives its SHA-256 and its size in bytes. Blocks: on any thread.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: Nothing was written, or it cannot be read back.
        """
        digest = hashlib.sha256()
        size_bytes = 0
        with reported("the file cannot be kept"):
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    digest.update(piece)
                    size_bytes += len(piece)
                os.fsync(file.fileno())
            self.path.chmod(0o600)
        self.reserve(size_bytes)
        return digest.hexdigest(), size_bytes

    def discard(self, *, beside: bool = False) -> None:
        """Removes it, and gives its room back. Any number of times.

        What cannot be removed is told of and stays until the next start: whoever discards has an
        end of their own to come to.

        Args:
            beside: Also what a process that was killed may have begun under its name, or under the
                first of its letters: it writes to ``.NAME.*`` first. Default: False.
        """
        try:
            self.path.unlink(missing_ok=True)
            if beside:
                for one in self.path.parent.glob(
                    f".{self.path.name[:_MAX_NAME_PREFIX_CHARACTERS]}*"
                ):
                    one.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("the draft %s cannot be removed: %s", self.path.name, error.strerror)
        self.reserve(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


async def written(media: MediaStore, data: bytes, files: ExitStack) -> TempFile:
    """A draft that holds `data`; `files` discards it.

    Raises:
        InternalServerError: There is no room (code ``storage_full``).
        StoreError: It cannot be written.
    """

    def write(draft: TempFile) -> None:
        with draft.create() as file:
            draft.write_to(file, data)

    return await _drafted(media, len(data), files, write)


async def copied(media: MediaStore, kept: StoredFile, files: ExitStack) -> TempFile:
    """A draft that holds what a file of the store does; `files` discards it.

    Engines open drafts and may write them, and no other file of the store; that may also go
    meanwhile.

    Raises:
        FileNotFoundError: It has gone.
        InternalServerError: There is no room (code ``storage_full``).
        StoreError: It cannot be written.
    """

    def write(draft: TempFile) -> None:
        with os.fdopen(media.open(kept), "rb") as source, draft.create() as file:
            while piece := source.read(_PIECE_BYTES):
                draft.write_to(file, piece)

    return await _drafted(media, kept.size_bytes, files, write)


async def _drafted(
    media: MediaStore, size_bytes: int, files: ExitStack, write: Callable[[TempFile], None]
) -> TempFile:
    """A draft that was written on another thread."""
    draft = media.draft(size_bytes)
    files.callback(draft.discard)
    writing = asyncio.ensure_future(asyncio.to_thread(write, draft))
    try:
        await asyncio.shield(writing)
    except BaseException:
        with suppress(Exception):
            await writing  # What is discarded must not come back.
        raise
    return draft


def is_of_drafts(path: Path) -> bool:
    """Whether something in a store's folder of drafts is the store's own, by its name and kind."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return bool(_OF_DOWNLOADS.fullmatch(path.name)) and mode & 0o777 == 0o700
    return bool(_OF_DRAFTS.fullmatch(path.name))


def remove_left_drafts(folder: Path) -> None:
    """Removes what a process that was killed has left there.

    What is not the store's own is left alone. What cannot be removed stays until the next start.
    """
    with suppress(OSError):
        for one in list(folder.iterdir()):
            with suppress(OSError):
                if not is_of_drafts(one):
                    continue
                if one.is_dir() and not one.is_symlink():
                    shutil.rmtree(one, ignore_errors=True)
                else:
                    one.unlink()


@contextmanager
def reported(what: str) -> Iterator[None]:
    """Makes errors of the file system those of the store.

    Raises:
        InternalServerError: The disk is full (code ``storage_full``).
        StoreError: Anything else.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise storage_full("the server's disk is full") from error
        raise StoreError(f"{what}: {error.strerror or error}") from error
