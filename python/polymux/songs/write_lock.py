"""One writer at a time, among all processes and threads."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from polymux._util.sqlite import is_busy
from polymux._util.text import display_name
from polymux.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class WritingLock:
    """The lock file of a catalogue; the lock falls with the process that holds it.

    A thread that has it may take it again. Threads of one process wait for each other, processes
    do not.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.RLock()
        self._depth = 0
        self._descriptor = -1

    @contextmanager
    def held(self) -> Iterator[None]:
        """While the caller writes.

        Raises:
            CatalogueError: Another process writes (code ``catalogue_busy``).
        """
        with self._threads:
            if not self._acquired():
                raise is_busy(display_name(self._path.parent.as_posix()), self._holder())
            try:
                yield
            finally:
                self._give_back()

    def try_acquire(self) -> bool:
        """Takes it, where nobody else has it and it can be taken at all."""
        if not self._threads.acquire(blocking=False):
            return False
        with suppress(CatalogueError):
            if self._acquired():
                return True
        self._threads.release()
        return False

    def release(self) -> None:
        """Gives back what `try_acquire` took."""
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
            raise CatalogueError(
                f"the catalogue cannot be written: {name}: {error.strerror}", errno=error.errno
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
        """Says who holds it, for whoever finds it held; a full disk keeps nobody from the lock."""
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
