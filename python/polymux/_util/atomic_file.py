"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from polymux._util.text import display_name
from polymux.errors import OutputExistsError, OutputFailedError, OutputRefusedError, PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write_atomically(path: Path, data: bytes, *, overwrite: bool) -> None:
    """Write `data` to a temporary file next to `path`, sync it, and rename it.

    It follows the rules of the native core's output files; see `MediaFile.save`.
    """
    pending = PendingFile(path, overwrite=overwrite)
    try:
        pending.write(data)
        pending.commit()
    finally:
        pending.discard()


def write_private(path: Path, text: str) -> None:
    """Write a file atomically that only its owner can read. Creates its directory.

    If the process is killed, a draft remains, which `remove_private_drafts` removes.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_private_drafts(path: Path) -> None:
    """Remove drafts of killed processes. Call it only when no process writes the file."""
    for one in path.parent.glob(f".{path.name}.*.part"):
        one.unlink(missing_ok=True)


class PendingFile:
    """A file that gets its final name when it is complete.

    Args:
        path: Final path.
        overwrite: Replace an existing file.

    Raises:
        OutputError: The path already exists, is not a regular file, or is not writable.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self._path = path
        self._overwrite = overwrite
        with reported(path):
            mode = _mode_of_replaced(path, overwrite=overwrite)
            temporary = path.with_name(f".{path.name[:32]}.polymux-{secrets.token_hex(4)}.part")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            #: File descriptor, open for writing until `commit` or `discard`.
            self.descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600)
            self._temporary: Path | None = temporary
            try:
                if mode is not None:
                    os.fchmod(self.descriptor, mode)
            except BaseException:
                self.discard()
                raise

    def write(self, data: bytes) -> int:
        """Write all of the data.

        Raises:
            OutputFailedError: Writing failed, for example because the disk is full.
        """
        view = memoryview(data)
        size = len(view)
        with reported(self._path):
            while view:
                view = view[os.write(self.descriptor, view) :]
        return size

    def commit(self) -> None:
        """Sync the file and rename it to its final name."""
        assert self._temporary is not None  # noqa: S101 - a second commit is a caller's bug
        with reported(self._path):
            os.fsync(self.descriptor)
            try:
                move_into_place(self._temporary, self._path, overwrite=self._overwrite)
            except FileExistsError:
                raise _exists(self._path) from None
            self._temporary = None
            sync_folder(self._path.parent)

    def discard(self) -> None:
        """Remove the file unless it was committed, and close the descriptor. Idempotent."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.unlink()
            self._temporary = None


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Convert errors of the file system to exceptions that name the output file."""
    try:
        yield
    except PolymuxError:
        raise  # PolymuxError subclasses may also be OSErrors.
    except ValueError as error:  # a null byte in the path, or an empty name
        raise OutputRefusedError(f"cannot write {_quoted(path)}: {error}") from error
    except OSError as error:
        raise OutputFailedError(
            f"cannot write {_quoted(path)}: {error.strerror or error}", errno=error.errno
        ) from error


def _quoted(path: Path) -> str:
    return f"'{display_name(os.fspath(path))}'"


def _mode_of_replaced(path: Path, *, overwrite: bool) -> int | None:
    """Return the permissions of an existing regular file; None if there is no file."""
    try:
        existing = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(existing.st_mode):
        raise OutputRefusedError(
            f"cannot write {_quoted(path)}: it is a {_kind(existing.st_mode)}. "
            "Pass the path of a file"
        )
    if not overwrite:
        raise _exists(path)
    if not os.access(path, os.W_OK) or not existing.st_mode & 0o222:
        raise PermissionError(errno.EACCES, "the existing file is read-only")
    return stat.S_IMODE(existing.st_mode) & 0o777


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symbolic link"
    if stat.S_ISDIR(mode):
        return "directory"
    return "pipe, socket or device"


def _exists(path: Path) -> OutputExistsError:
    return OutputExistsError(
        f"cannot write {_quoted(path)}: already exists. Allow overwriting or use another name",
        errno=errno.EEXIST,
    )


def move_into_place(temporary: Path, path: Path, *, overwrite: bool) -> None:
    """Rename a file to its final name.

    Raises:
        FileExistsError: The path exists.
    """
    if overwrite:
        temporary.replace(path)
        return
    try:
        path.hardlink_to(temporary)  # Unlike a rename, it fails if the path exists.
    except FileExistsError:
        raise
    except OSError:  # No support for hard links. The path did not exist a moment ago.
        temporary.replace(path)
        return
    temporary.unlink()


def sync_folder(folder: Path) -> None:
    """Sync the entries of a directory to the disk."""
    # If a directory cannot be opened or synced, rely on its file system.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
