"""Drafts: files of the store that are still being written."""

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
    from polymux.service.usage import Usage

_log = logging.getLogger("polymux.service")
_PIECE_BYTES = 1 << 20
#: Length of a draft's name inside the names of its partial files; 128 random bits.
_MAX_NAME_PREFIX_CHARACTERS = 32
#: A draft, or a partial file of the native core or of `atomic_file.PendingFile`.
_OF_DRAFTS = re.compile(r"[0-9a-f]{40}|\.[0-9a-f]{32}\.polymux-[0-9a-z]{8}\.part")
#: A download's folder, made by `tempfile.mkdtemp`.
_OF_DOWNLOADS = re.compile(r"tmp[0-9a-z_]{8}")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class TempFile:
    """A draft: write to it, `seal` it, and let the store `adopt` it.

    As a context manager it is discarded at the end unless it was adopted.
    """

    def __init__(self, usage: Usage, path: Path) -> None:
        self._usage = usage
        self._reserved_bytes = 0
        #: Where to write. Writers must create the file exclusively and not follow links.
        self.path = path

    def reserve(self, total_bytes: int) -> None:
        """Reserve space for this total size.

        Raises:
            InternalServerError: Not enough space (code ``storage_full``).
        """
        more = total_bytes - self._reserved_bytes
        if more:
            self._usage.reserve(more)
            self._reserved_bytes = total_bytes

    def create(self) -> FileIO:
        """Create the file and open it for unbuffered writing.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: It cannot be created.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with reported("cannot write a temporary file in the store"):
            return FileIO(os.open(self.path, flags, 0o600), "wb")

    @staticmethod
    def write_to(file: FileIO, data: bytes) -> None:
        """Write all data.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: It cannot be written.
        """
        view = memoryview(data)
        with reported("cannot write a temporary file in the store"):
            while view:
                view = view[file.write(view) or 0 :]

    def seal(self) -> tuple[str, int]:
        """Sync the file and return its SHA-256 and size in bytes. Blocks; runs on any thread.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: Nothing was written, or it cannot be read back.
        """
        digest = hashlib.sha256()
        size_bytes = 0
        with reported("cannot write a file to the disk of the store"):
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
        """Remove the draft and release its space. May be called more than once.

        Logs a failure and leaves the file for the next start; callers continue.

        Args:
            beside: Also remove partial files of a killed process, named ``.NAME.*`` after the
                draft's name or its first characters. Default: False.
        """
        try:
            self.path.unlink(missing_ok=True)
            if beside:
                for one in self.path.parent.glob(
                    f".{self.path.name[:_MAX_NAME_PREFIX_CHARACTERS]}*"
                ):
                    one.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("cannot remove the temporary file %s: %s", self.path.name, error.strerror)
        self.reserve(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


async def written(media: MediaStore, data: bytes, files: ExitStack) -> TempFile:
    """Create a draft with this content; `files` discards it.

    Raises:
        InternalServerError: Not enough space (code ``storage_full``).
        StoreError: It cannot be written.
    """

    def write(draft: TempFile) -> None:
        with draft.create() as file:
            draft.write_to(file, data)

    return await _drafted(media, len(data), files, write)


async def copied(media: MediaStore, kept: StoredFile, files: ExitStack) -> TempFile:
    """Create a draft with the content of a stored file; `files` discards it.

    Engines may open and write only drafts, and the stored file may expire during the work.

    Raises:
        FileNotFoundError: It has expired.
        InternalServerError: Not enough space (code ``storage_full``).
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
    """Create a draft and write it on another thread."""
    draft = media.draft(size_bytes)
    files.callback(draft.discard)
    writing = asyncio.ensure_future(asyncio.to_thread(write, draft))
    try:
        await asyncio.shield(writing)
    except BaseException:
        with suppress(Exception):
            await writing  # Otherwise the write could recreate the discarded file.
        raise
    return draft


def is_of_drafts(path: Path) -> bool:
    """Check by name and type whether a path in the folder of drafts belongs to the store."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return bool(_OF_DOWNLOADS.fullmatch(path.name)) and mode & 0o777 == 0o700
    return bool(_OF_DRAFTS.fullmatch(path.name))


def remove_left_drafts(folder: Path) -> None:
    """Remove the drafts of killed processes.

    Ignores foreign files. Drafts that cannot be removed stay until the next start.
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
    """Convert errors of the file system to errors of the store.

    Raises:
        InternalServerError: The disk is full (code ``storage_full``).
        StoreError: Any other error.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise storage_full("the disk of the store is full") from error
        raise StoreError(f"{what}: {error.strerror or error}") from error
