"""The files of a batch, stored in an order that allows recovery after a kill at any moment.

A file is written to the staging directory and synced. The manifest records its final name. The file
is renamed and its directory synced. The manifest records that the item is done. The manifest
therefore shows which of these steps have happened.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from polymux._util.atomic_file import move_into_place, reported, sync_folder
from polymux._util.text import display_name
from polymux.batches.records import Output, Staged
from polymux.errors import OutputExistsError, OutputFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STAGING = ".polymux-batch"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class OutputStore:
    """The output directory of a batch with its staging directory.

    Args:
        out: Absolute path of the output directory, which is created if necessary.
        own: ID that distinguishes the staging files of this manifest from others.

    Raises:
        OutputFailedError: A directory cannot be created.
    """

    def __init__(self, out: Path, own: str) -> None:
        self.out = out
        self._folder = out / STAGING
        self._own = own
        self._unsynced: set[Path] = set()
        #: Data directory for local engines, on the same file system as the outputs.
        self.engines = self._folder / f"{own}-engines"
        with reported(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)

    def staged(self, item: int, number: int) -> Path:
        """Return the staging path of a file."""
        return self._folder / f"{self._own}-{item}-{number}.part"

    def write(self, item: int, number: int, data: bytes, *, append: bool = False) -> None:
        """Stage bytes, as a whole file or appended to it.

        Raises:
            OutputFailedError: The file cannot be written.
        """
        path = self.staged(item, number)
        with reported(path), path.open("ab" if append else "wb") as file:
            file.write(data)

    def copy(self, item: int, number: int, source: Path) -> None:
        """Stage a copy of a file.

        Raises:
            OutputFailedError: The file cannot be read or written.
        """
        path = self.staged(item, number)
        with reported(path):
            shutil.copyfile(source, path)

    def sealed(self, item: int, number: int, ending: str) -> Staged:
        """Sync a staged file to the disk. Return its size and hash.

        Raises:
            OutputFailedError: The file cannot be synced.
        """
        path = self.staged(item, number)
        with reported(path), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
            os.fsync(file.fileno())
            return Staged(ending, os.fstat(file.fileno()).st_size, digest)

    def publish(self, item: int, outputs: Sequence[Output]) -> None:
        """Rename staged files to their final names. Call `sync` to sync the directories.

        Raises:
            OutputExistsError: A file with the name was created in the meantime.
            OutputFailedError: A directory or file cannot be created.
        """
        for number, one in enumerate(outputs):
            path = self.path_of(one)
            try:
                with reported(path):
                    self._make_folders(path.parent)
                    move_into_place(self.staged(item, one.number), path, overwrite=one.is_own)
            except OutputFailedError as error:
                # Remove the new files of a result that cannot be completed.
                for before in outputs[:number]:
                    if not before.is_own:
                        self.path_of(before).unlink(missing_ok=True)
                if not isinstance(error.__cause__, FileExistsError):
                    raise
                raise OutputExistsError(
                    f"cannot write '{display_name(path.as_posix())}': already exists: another "
                    "program created it in the meantime",
                    errno=error.errno,
                ) from error
            self._unsynced.add(path.parent)

    def sync(self) -> None:
        """Sync the directories of all files renamed since the last call."""
        while self._unsynced:
            sync_folder(self._unsynced.pop())

    def path_of(self, output: Output) -> Path:
        return self.out / os.fsdecode(output.name)

    def holds(self, output: Output) -> bool:
        """Return whether an output exists unchanged, by size and hash."""
        return _is(self.path_of(output), output)

    def is_staged(self, item: int, output: Output) -> bool:
        """Return whether an output is complete in the staging directory."""
        return _is(self.staged(item, output.number), output)

    def clear(self, item: int | None = None) -> None:
        """Remove the staging files of one item or of all."""
        begin = self._own if item is None else f"{self._own}-{item}-"
        with suppress(OSError):
            for one in self._folder.iterdir():
                if one.name.startswith(begin) and one.name.endswith(".part"):
                    one.unlink(missing_ok=True)
        if item is None:
            shutil.rmtree(self.engines, ignore_errors=True)

    def leave(self) -> None:
        """Remove all staging files, and the staging directory if no other batch uses it."""
        self.clear()
        with suppress(OSError):
            self._folder.rmdir()

    def _make_folders(self, folder: Path) -> None:
        """Create a directory and its parents, and sync each entry before it is used."""
        if folder.is_dir():
            return
        self._make_folders(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir()
        sync_folder(folder.parent)


def is_without_room(error: Exception) -> bool:
    """Return whether the error means that the disk is full or read-only."""
    is_full = isinstance(error, OutputFailedError) and error.errno in _NO_ROOM
    return is_full or getattr(error, "code", "") == "storage_full"


def _is(path: Path, output: Output) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            if os.fstat(descriptor).st_size != output.size_bytes:
                return False
            return hashlib.file_digest(file, "sha256").digest() == output.sha256
    except OSError:
        return False
