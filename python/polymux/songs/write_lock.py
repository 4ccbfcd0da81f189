"""The lock that allows one writer at a time among all processes and threads."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from polymux._util.sqlite import is_busy
from polymux._util.text import display_name
from polymux.errors import SongIndexError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class WritingLock:
    """The lock file of a song index. The lock ends with the process that holds it.

    The lock is reentrant. Threads of one process wait for each other; other processes get an error.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.RLock()
        self._depth = 0
        self._descriptor = -1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock while writing.

        Raises:
            SongIndexError: Another process is writing (code ``song_index_busy``).
        """
        with self._threads:
            if not self._acquired():
                raise is_busy(display_name(self._path.parent.as_posix()), self._holder())
            try:
                yield
            finally:
                self._give_back()

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free and the lock file is writable, without waiting."""
        if not self._threads.acquire(blocking=False):
            return False
        with suppress(SongIndexError):
            if self._acquired():
                return True
        self._threads.release()
        return False

    def release(self) -> None:
        """Release the lock after a successful `try_acquire`."""
        self._give_back()
        self._threads.release()

    def _give_back(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _acquired(self) -> bool:
        if self._depth == 0 and not self._locked():
            return False
        self._depth += 1
        return True

    def _locked(self) -> bool:
        name = display_name(self._path.as_posix())
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise SongIndexError(
                f"song index: cannot lock {name}: {error.strerror}", errno=error.errno
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        self._sign()
        return True

    def _sign(self) -> None:
        """Write the process ID for error messages. A full disk must not prevent locking."""
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            return

    def _holder(self) -> str:
        try:
            words = self._path.read_text("ascii", "replace").strip()
        except OSError:
            words = ""
        return f"process {words}" if words.isdigit() else "an unknown process"
