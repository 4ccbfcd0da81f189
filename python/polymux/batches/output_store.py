"""Files of a batch on their way to their names, in an order that a kill at any moment leaves clear.

A file is written under a name of its own in the staging folder and synced; the manifest is told
which name it shall have; it gets that name, and its folder is synced; the manifest is told that it
is done. Whoever finds the manifest later knows from it which of these has happened.
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
    """The out folder of a batch, and the staging folder in it.

    Args:
        out: The out folder, absolute; made where there is none.
        own: What tells files of this manifest in the staging folder from those of others.

    Raises:
        OutputFailedError: A folder cannot be made.
    """

    def __init__(self, out: Path, own: str) -> None:
        self.out = out
        self._folder = out / STAGING
        self._own = own
        self._unsynced: set[Path] = set()
        #: For engines of this machine: what they make lies on the same file system.
        self.engines = self._folder / f"{own}-engines"
        with reported(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)

    def staged(self, item: int, number: int) -> Path:
        """Where a file of an item lies until it has its name."""
        return self._folder / f"{self._own}-{item}-{number}.part"

    def write(self, item: int, number: int, data: bytes, *, append: bool = False) -> None:
        """Stages bytes, as the whole file or behind those that are there.

        Raises:
            OutputFailedError: They cannot be written.
        """
        path = self.staged(item, number)
        with reported(path), path.open("ab" if append else "wb") as file:
            file.write(data)

    def copy(self, item: int, number: int, source: Path) -> None:
        """Stages a copy of a file.

        Raises:
            OutputFailedError: It cannot be read or written.
        """
        path = self.staged(item, number)
        with reported(path):
            shutil.copyfile(source, path)

    def sealed(self, item: int, number: int, ending: str) -> Staged:
        """Brings a staged file to the disk; what it is.

        Raises:
            OutputFailedError: It cannot be synced.
        """
        path = self.staged(item, number)
        with reported(path), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
            os.fsync(file.fileno())
            return Staged(ending, os.fstat(file.fileno()).st_size, digest)

    def publish(self, item: int, outputs: Sequence[Output]) -> None:
        """Gives staged files their names; `sync` brings those to the disk.

        Raises:
            OutputExistsError: Something has taken a name meanwhile.
            OutputFailedError: A folder or name cannot be made.
        """
        for number, one in enumerate(outputs):
            path = self.path_of(one)
            try:
                with reported(path):
                    self._make_folders(path.parent)
                    move_into_place(self.staged(item, one.number), path, overwrite=one.is_own)
            except OutputFailedError as error:
                # Of a result that cannot be whole nothing new is left.
                for before in outputs[:number]:
                    if not before.is_own:
                        self.path_of(before).unlink(missing_ok=True)
                if not isinstance(error.__cause__, FileExistsError):
                    raise
                raise OutputExistsError(
                    f"cannot write '{display_name(path.as_posix())}': something of that name "
                    "has come meanwhile",
                    errno=error.errno,
                ) from error
            self._unsynced.add(path.parent)

    def sync(self) -> None:
        """Brings the names that were given since the last time to the disk."""
        while self._unsynced:
            sync_folder(self._unsynced.pop())

    def path_of(self, output: Output) -> Path:
        """Where an output lies."""
        return self.out / os.fsdecode(output.name)

    def holds(self, output: Output) -> bool:
        """Whether an output lies there as it was made: by size, then by hash."""
        return _is(self.path_of(output), output)

    def is_staged(self, item: int, output: Output) -> bool:
        """Whether an output is whole and has no name yet."""
        return _is(self.staged(item, output.number), output)

    def clear(self, item: int | None = None) -> None:
        """Removes what was staged, of one item or of all."""
        begin = self._own if item is None else f"{self._own}-{item}-"
        with suppress(OSError):
            for one in self._folder.iterdir():
                if one.name.startswith(begin) and one.name.endswith(".part"):
                    one.unlink(missing_ok=True)
        if item is None:
            shutil.rmtree(self.engines, ignore_errors=True)

    def leave(self) -> None:
        """Removes what was staged, and the folder when nothing of other batches is in it."""
        self.clear()
        with suppress(OSError):
            self._folder.rmdir()

    def _make_folders(self, folder: Path) -> None:
        """Folders down to this one, each entry on the disk before anything lies in it."""
        if folder.is_dir():
            return
        self._make_folders(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir()
        sync_folder(folder.parent)


def is_without_room(error: Exception) -> bool:
    """Whether a failure is of a disk that takes nothing more, from nobody."""
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
