"""Read-only access to a song index in long-running processes."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from polymux.errors import PolymuxError, SongIndexError
from polymux.songs.fingerprint_index import FingerprintIndex
from polymux.songs.settings import DATABASE, REMEDY, count_text, served_folder
from polymux.songs.song_index import SongIndex
from polymux.songs.write_lock import WritingLock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux._native._media import SongIndex as NativeIndex
    from polymux.songs.database import Database

_log = logging.getLogger("polymux.songs")
Result = TypeVar("Result")

#: Delay before the first verification: processes that end after one search must not read the
#: complete index. It is repeated because files can be damaged or replaced at any time.
VERIFIED_AFTER_S = 10.0
VERIFIED_EVERY_S = 24 * 3600.0
#: Maximum wait at shutdown. A rebuild that takes longer continues, but its result is discarded.
_MAX_SHUTDOWN_S = 2.0
#: Niceness of background threads, out of 19 (the lowest priority). Requests come first.
_GENTLE = 10


class ReadOnlySongIndex(SongIndex):
    """A song index that other processes change.

    Each call sees the songs that other processes have added. This class never takes the write lock,
    so it never blocks a process that adds songs. Therefore, it rebuilds missing or damaged files in
    memory only, until another process writes them by adding songs or with `SongIndex.check`.

    A background thread verifies the index files some seconds after the first search, and then once
    a day, because damage inside them has no other symptoms.
    """

    def __init__(self, path: Path, *, min_confidence: float | None = None) -> None:
        super().__init__(path, min_confidence=min_confidence)
        never = _NeverWriting(self.path / "lock")
        self._index: _VerifiedIndex = _VerifiedIndex(self.path / "segments", self._database, never)

    def close(self) -> None:
        """Close the database and stop the verification."""
        self._index.stop()
        super().close()


class _Stopped(Exception):  # noqa: N818 - not an error
    """The index was closed."""


class _VerifiedIndex(FingerprintIndex):
    """An index whose files are verified periodically after its first use."""

    def __init__(self, folder: Path, database: Database, writing: WritingLock) -> None:
        super().__init__(folder, database, writing)
        self._begun = threading.Lock()
        self._stop = threading.Event()
        #: Verifies the files until `stop` is called.
        self.verification: threading.Thread | None = None
        #: Number of completed verifications.
        self.verified = 0

    def current(self) -> NativeIndex:
        native = super().current()
        if self.verification is None and self._begun.acquire(blocking=False):
            self.verification = threading.Thread(
                target=self._verify_now_and_then, name="polymux-songs-verify", daemon=True
            )
            self.verification.start()
        return native

    def stop(self) -> None:
        """Stop the verification after the file that is being read. May be called repeatedly."""
        self._stop.set()
        if self.verification is not None:
            self.verification.join(_MAX_SHUTDOWN_S)

    def _verify_now_and_then(self) -> None:
        wait_s = VERIFIED_AFTER_S
        while not self._stop.wait(wait_s):
            self._verify_once()
            self.verified += 1
            wait_s = VERIFIED_EVERY_S

    def _verify_once(self) -> None:
        try:
            native = self.current()
            damaged = _gently(lambda: native.verify(self._go_on))
            self.leave(damaged)
            # Rebuild on this thread to keep searches from waiting for it.
            if damaged and not self._stop.is_set():
                _log.warning("the new index stays in memory. Run 'polymux songs check' to write it")
                self.current()
        except _Stopped:
            return
        except PolymuxError as error:
            if not self._stop.is_set():
                _log.warning("cannot verify the song index: %s", error)

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise _Stopped


def _gently(act: Callable[[], Result]) -> Result:
    """Call a function on a thread of low priority and return its result.

    A thread cannot raise its priority again, so the caller's thread is not used.
    """
    done: Future[Result] = Future()

    def run() -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _GENTLE)
        try:
            done.set_result(act())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="polymux-songs-read", daemon=True).start()
    return done.result()


class _NeverWriting(WritingLock):
    """A lock that is never acquired, which prevents writing."""

    def try_acquire(self) -> bool:
        """Return False."""
        return False


class Library:
    """The song index in a directory. It may be created, replaced or deleted at any time.

    Thread-safe.

    Args:
        folder: Directory of the index; it may be empty or missing.
        own: An open `SongIndex` to use instead. `close` does not close it. Default: None.
        min_confidence: As for `SongIndex`; not used with `own`. Default: that of `SongIndex`.
    """

    def __init__(
        self, folder: Path, own: SongIndex | None = None, *, min_confidence: float | None = None
    ) -> None:
        self.folder = folder
        self._min_confidence = min_confidence
        self._own = own
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, int], ReadOnlySongIndex] | None = None

    def index(self) -> SongIndex | None:
        """Return the current song index, or None if it does not exist.

        Raises:
            SongIndexError: It cannot be opened.
        """
        if self._own is not None:
            return self._own
        with self._lock:
            try:
                status = os.stat(self.folder / DATABASE)  # noqa: PTH116 - with its number
            except OSError:
                self._opened = None
                return None
            file = (status.st_dev, status.st_ino)
            if self._opened is None or self._opened[0] != file:
                # Threads that use the old one keep it; it closes after the last of them.
                least = self._min_confidence
                self._opened = (file, ReadOnlySongIndex(self.folder, min_confidence=least))
            return self._opened[1]

    def count(self) -> int:
        """Return the number of songs; 0 if there is no song index."""
        found = self.index()
        return 0 if found is None else found.count()

    def close(self) -> None:
        """Close the index if it was opened here."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()


def health(wanted: Path | None = None) -> dict[str, Any]:
    """Return the state of the music library for `polymux doctor`.

    Returns:
        ``ok``, ``songs``, ``folder`` (None if there is no library), ``problem`` (why it cannot be
            read, else None) and ``remedy``.
    """
    folder = served_folder(wanted)
    count, problem = 0, None
    if folder is not None:
        library = Library(folder)
        try:
            count = library.count()
        except SongIndexError as error:
            problem = str(error)
        finally:
            library.close()
    return {
        "ok": count > 0,
        "songs": count,
        "folder": None if folder is None else folder.as_posix(),
        "problem": problem,
        "remedy": REMEDY,
    }


def health_lines(found: dict[str, Any]) -> list[str]:
    """Return the lines of `polymux doctor` for the result of `health`."""
    if found["problem"] is not None:
        return [f"missing  music library: {found['problem']}"]
    if not found["ok"]:
        return [f"absent   music library ({found['remedy']})"]
    return [f"ok       music library: {count_text(found['songs'])}"]
