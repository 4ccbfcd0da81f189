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
    """Writes `data` to a temporary file beside `path`, syncs it, and renames it.

    The rules are those of the native core's own output files: see `MediaFile.save`.
    """
    pending = PendingFile(path, overwrite=overwrite)
    try:
        pending.write(data)
        pending.commit()
    finally:
        pending.discard()


def write_private(path: Path, text: str) -> None:
    """Writes a file that nobody but its owner can read, whole or not at all; makes its folder.

    A process that is killed meanwhile leaves a file that `remove_private_drafts` finds.

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
    """Removes what processes that were killed in `write_private` have left; nobody writes now."""
    for one in path.parent.glob(f".{path.name}.*.part"):
        one.unlink(missing_ok=True)


class PendingFile:
    """A file that is being written and has no name of its own yet.

    Args:
        path: Where it shall be.
        overwrite: Replace a file that is there.

    Raises:
        OutputError: Something at `path` is in the way, or nothing can be written there.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self._path = path
        self._overwrite = overwrite
        with reported(path):
            mode = _mode_of_replaced(path, overwrite=overwrite)
            temporary = path.with_name(f".{path.name[:32]}.polymux-{secrets.token_hex(4)}.part")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            #: Open for writing until `commit` or `discard`.
            self.descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600)
            self._temporary: Path | None = temporary
            try:
                if mode is not None:
                    os.fchmod(self.descriptor, mode)
            except BaseException:
                self.discard()
                raise

    def write(self, data: bytes) -> int:
        """Writes all of it, as a binary file does.

        Raises:
            OutputFailedError: The disk takes no more.
        """
        view = memoryview(data)
        size = len(view)
        with reported(self._path):
            while view:
                view = view[os.write(self.descriptor, view) :]
        return size

    def commit(self) -> None:
        """Syncs what was written and gives it its name."""
        assert self._temporary is not None  # noqa: S101 - a second commit is a defect of the caller
        with reported(self._path):
            os.fsync(self.descriptor)
            try:
                move_into_place(self._temporary, self._path, overwrite=self._overwrite)
            except FileExistsError:
                raise _exists(self._path) from None
            self._temporary = None
            sync_folder(self._path.parent)

    def discard(self) -> None:
        """Removes what was not committed, and closes the descriptor. Any number of times."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.unlink()
            self._temporary = None


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Failures of the disk as ours, which name the file that was to be written."""
    try:
        yield
    except PolymuxError:
        raise  # Some are OSErrors as well.
    except ValueError as error:  # a zero byte in the path, or no name at all
        raise OutputRefusedError(f"cannot write {_quoted(path)}: {error}") from error
    except OSError as error:
        raise OutputFailedError(
            f"cannot write {_quoted(path)}: {error.strerror or error}", errno=error.errno
        ) from error


def _quoted(path: Path) -> str:
    return f"'{display_name(os.fspath(path))}'"


def _mode_of_replaced(path: Path, *, overwrite: bool) -> int | None:
    """Permissions of the regular file at `path`; None when there is nothing."""
    try:
        existing = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(existing.st_mode):
        raise OutputRefusedError(
            f"cannot write {_quoted(path)}: it is a {_kind(existing.st_mode)}; "
            "give the path of a file"
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
        return "folder"
    return "pipe, socket or device"


def _exists(path: Path) -> OutputExistsError:
    return OutputExistsError(
        f"cannot write {_quoted(path)}: it exists already; allow overwriting or choose another "
        "name",
        errno=errno.EEXIST,
    )


def move_into_place(temporary: Path, path: Path, *, overwrite: bool) -> None:
    """Gives a file its name.

    Raises:
        FileExistsError: The name has come into use.
    """
    if overwrite:
        temporary.replace(path)
        return
    try:
        path.hardlink_to(temporary)  # Unlike a rename, fails when the name has come into use.
    except FileExistsError:
        raise
    except OSError:  # A file system without hard links; the name was free a moment ago.
        temporary.replace(path)
        return
    temporary.unlink()


def sync_folder(folder: Path) -> None:
    """Has the names in a folder on the disk before it returns."""
    # A folder that cannot be opened or synced keeps its entry as well as its file system can.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
