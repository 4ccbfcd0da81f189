"""A catalogue that is asked and never written, by a process that lives long."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from polymux.errors import CatalogueError, PolymuxError
from polymux.songs.catalogue import Catalogue
from polymux.songs.index import CatalogueIndex
from polymux.songs.settings import DATABASE, REMEDY, served_folder, told
from polymux.songs.write_lock import WritingLock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux._native._media import SongIndex
    from polymux.songs.database import Database

_log = logging.getLogger("polymux.songs")
Result = TypeVar("Result")

#: Whoever asks once and ends shall not read all of the index; who lives long reads it again, for
#: files may be damaged at any time, and others write new ones.
VERIFIED_AFTER_S = 10.0
VERIFIED_EVERY_S = 24 * 3600.0
#: An index that is being made anew by then is made to its end, and used by nobody.
_MAX_SHUTDOWN_S = 2.0
#: Of 19, which is the least of all; what is asked meanwhile comes first.
_GENTLE = 10


class ReadCatalogue(Catalogue):
    """A catalogue whose songs others change.

    What another process adds is found at the next question. Nobody who adds ever waits for this
    one: it takes the lock of writers for nothing, not even to spare the next reader work. So an
    index that is missing or damaged is made in memory, and stays there until another process
    writes one: by adding, or by `Catalogue.check`.

    The files of the index are read in the background some seconds after the first question, and
    once a day from then on, for what is damaged inside of them shows nowhere else.
    """

    def __init__(self, path: Path, *, min_confidence: float | None = None) -> None:
        super().__init__(path, min_confidence=min_confidence)
        never = _NeverWriting(self.path / "lock")
        self._index: _VerifiedIndex = _VerifiedIndex(self.path / "segments", self._database, never)

    def close(self) -> None:
        """Closes the database, and ends what is done in the background."""
        self._index.stop()
        super().close()


class _Stopped(Exception):  # noqa: N818 - no error
    """The catalogue is closed."""


class _VerifiedIndex(CatalogueIndex):
    """An index whose files are read whole now and then, once somebody has asked it."""

    def __init__(self, folder: Path, database: Database, writing: WritingLock) -> None:
        super().__init__(folder, database, writing)
        self._begun = threading.Lock()
        self._stop = threading.Event()
        #: Reads the files until it is stopped.
        self.verification: threading.Thread | None = None
        #: How many times all of them were read.
        self.verified = 0

    def current(self) -> SongIndex:
        native = super().current()
        if self.verification is None and self._begun.acquire(blocking=False):
            self.verification = threading.Thread(
                target=self._verify_now_and_then, name="polymux-songs-verify", daemon=True
            )
            self.verification.start()
        return native

    def stop(self) -> None:
        """Ends the reading, but for the file that is being read. Any number of times."""
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
            # By this thread, so that whoever asks next may find it made.
            if damaged and not self._stop.is_set():
                _log.warning("it stays in memory until 'polymux songs check' writes it")
                self.current()
        except _Stopped:
            return
        except PolymuxError as error:
            if not self._stop.is_set():
                _log.warning("the index of songs could not be verified: %s", error)

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise _Stopped


def _gently(act: Callable[[], Result]) -> Result:
    """Has a thread of low priority do it, and those that it starts.

    No thread may take its priority back, so it is not that of the caller, who has more to do.
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
    """A lock that others have."""

    def try_acquire(self) -> bool:
        """Never."""
        return False


class Library:
    """The catalogue of a folder whenever it is asked for: also where it comes, goes or is replaced.

    Any number of threads may use it.

    Args:
        folder: The folder; nothing needs to be in it.
        own: One that is open already, to be asked in its place. It is left open. Default: none.
        min_confidence: As for `Catalogue`, of what is opened here. Default: the catalogue's own.
    """

    def __init__(
        self, folder: Path, own: Catalogue | None = None, *, min_confidence: float | None = None
    ) -> None:
        self.folder = folder
        self._min_confidence = min_confidence
        self._own = own
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, int], ReadCatalogue] | None = None

    def catalogue(self) -> Catalogue | None:
        """The catalogue as it is now; None where there is none.

        Raises:
            CatalogueError: It cannot be opened.
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
                # The old one is closed when the last thread is done with it.
                least = self._min_confidence
                self._opened = (file, ReadCatalogue(self.folder, min_confidence=least))
            return self._opened[1]

    def count(self) -> int:
        """How many songs it has; 0 where there is no catalogue."""
        found = self.catalogue()
        return 0 if found is None else found.count()

    def close(self) -> None:
        """Closes what was opened here."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()


def health(wanted: Path | None = None) -> dict[str, Any]:
    """What `polymux doctor` says of the catalogue: whether there is one, and how many songs it has.

    Returns:
        ``ok``, ``songs``, ``folder`` (None where there is no catalogue), ``problem`` (why it cannot
        be read, else None) and ``remedy``.
    """
    folder = served_folder(wanted)
    count, problem = 0, None
    if folder is not None:
        library = Library(folder)
        try:
            count = library.count()
        except CatalogueError as error:
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
    """The same for people."""
    if found["problem"] is not None:
        return [f"missing  the catalogue of songs: {found['problem']}"]
    if not found["ok"]:
        return [f"absent   songs by their sound and name ({found['remedy']})"]
    return [f"ok       songs by their sound and name: {told(found['songs'])} in the catalogue"]
