"""The search for sound that is made of a catalogue's database, and follows it."""

from __future__ import annotations

import errno
import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux._native import media
from polymux._util.sqlite import is_full
from polymux._util.text import display_name
from polymux.errors import CatalogueError, MissingDependencyError, PolymuxError
from polymux.songs.table import signed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux._native._media import SongIndex
    from polymux.songs.database import Database
    from polymux.songs.write_lock import WritingLock

_log = logging.getLogger("polymux.songs")

#: What new songs may take in memory before they are made a segment on disk.
_LARGEST_DELTA_BYTES = 64 << 20
#: A reader that finds so much which no segment has makes one, where nobody writes.
_WORTH_A_SEGMENT_BYTES = 8 << 20
_CHANGES_AT_ONCE = 200
#: A disk on which each new segment is damaged at once is none to go on with.
_MAX_REBUILDS = 3
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class CatalogueIndex:
    """The native index of a catalogue, brought up to date whenever it is asked for.

    The segments on disk are a copy of what the database has up to some change; changes since then,
    by whatever process, are read from the database into memory. Segments that are missing, damaged,
    of another catalogue or of other parameters are made anew from the database.

    Any number of threads may use it. Whatever the core or the system refuses comes out of it as a
    `CatalogueError`.

    Args:
        folder: Where the segments are.
        database: The truth.
        writing: The lock under which segments are written.
    """

    def __init__(self, folder: Path, database: Database, writing: WritingLock) -> None:
        self._folder = folder
        self._database = database
        self._writing = writing
        self._lock = threading.Lock()
        self._native: SongIndex | None = None
        self._parameters = 0
        self._seen: Any = None
        self._covered = 0
        self._delta_bytes = 0
        self._must_publish = False
        self._anew: SongIndex | None = None
        #: Files that could not be used, as they were found.
        self.damaged: list[str] = []

    def current(self) -> SongIndex:
        """The native index, with all that the database has at this moment."""
        with self._lock, self._reported():
            try:
                return self._brought_up()
            except BaseException:
                # Half of a change may be in it: the next one who asks opens it again.
                self._native = self._anew = None
                raise

    def _brought_up(self) -> SongIndex:
        native = self._native
        if native is None or self._has_news(native):
            native = self._opened()
        for _ in range(_MAX_REBUILDS):
            if self._anew is not None:
                native, self._anew = self._anew, None
                self._covered, self._seen = 0, None
                self._delta_bytes, self._must_publish = 0, True
            version = self._database.version()
            if version != self._seen:
                self._caught_up(native)
                self._seen = version
            if self._must_publish or self._delta_bytes >= _WORTH_A_SEGMENT_BYTES:
                self._publish_if_free(native)
            if self._anew is None:
                break
        # Whoever asked before keeps what was whole; nobody gets one that is only being made.
        self._native = native
        return native

    def _has_news(self, native: SongIndex) -> bool:
        """Whether another process has published; what keeps that from being read keeps nobody."""
        try:
            return native.refresh()
        except PolymuxError as error:
            _log.warning("the index of songs goes on as it was: %s", error)
            return False

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (CatalogueError, MissingDependencyError):
            raise
        except (PolymuxError, OSError) as error:
            name = display_name(self._folder.parent.as_posix())
            words = error if isinstance(error, PolymuxError) else error.strerror
            raise CatalogueError(
                f"the index of the catalogue {name} cannot be used: {words}",
                errno=getattr(error, "errno", None),
            ) from error

    def publish(self) -> None:
        """Makes segments of all that is in memory alone. By whoever holds the lock."""
        for _ in range(_MAX_REBUILDS):
            native = self.current()
            with self._lock, self._reported():
                if self._delta_bytes == 0 and not self._must_publish:
                    return
                self._publish(native)
                if self._anew is None:
                    return

    def verify(self) -> list[str]:
        """Reads all segments; makes them anew where one is damaged. Gives what was."""
        native = self.current()
        with self._reported():
            # Without the lock: it takes long, and nobody who asks shall wait for it.
            damaged = native.verify()
        self.leave(damaged)
        with self._lock:
            found, self.damaged = self.damaged, []
        self.current()
        return found

    def leave(self, damaged: list[tuple[str, str]]) -> None:
        """Has the next `current` make the index anew, where ``verify`` found something damaged."""
        if damaged:
            with self._lock, self._reported():
                self._begin_anew(damaged)

    def statistics(self) -> dict[str, int]:
        return dict(self.current().statistics())

    def _opened(self) -> SongIndex:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            # Where nothing can be written, the index is made in memory.
            if error.errno not in _UNWRITABLE:
                raise
        native = media.SongIndex(str(self._folder))
        self._parameters = media.parameters_hash()
        self._covered = native.covered_sequence
        self._delta_bytes = 0
        self._must_publish = False
        first, last = self._database.span()
        # Numbers that this database has not given are those of another one, or of a lost one.
        is_foreign = self._covered != 0 and not first <= self._covered <= last
        damaged = native.damaged()
        # Parts without a number are what a writer left that found one of them damaged.
        is_in_parts = self._covered == 0 and native.statistics()["segments"] > 0
        if damaged or is_foreign or is_in_parts:
            self._begin_anew(damaged)
        elif self._covered == 0 and last > first:
            self._must_publish = True
        self._seen = None
        return native

    def _begin_anew(self, damaged: list[tuple[str, str]]) -> None:
        """Another native index is made of the whole database; the old one still answers."""
        for name, why in damaged:
            _log.warning("the index of songs is made anew: %s: %s", name, why)
            self.damaged.append(f"{name}: {why}")
        self._anew = media.SongIndex(str(self._folder))
        self._anew.reset()

    def _caught_up(self, native: SongIndex) -> None:
        while True:
            changes = self._database.reader.rows(
                "SELECT sequence, removed FROM changes WHERE sequence > ? ORDER BY sequence "
                "LIMIT ?",
                (self._covered, _CHANGES_AT_ONCE),
            )
            if not changes:
                return
            first, last = changes[0][0], changes[-1][0]
            removed = [number for _, number in changes if number is not None]
            if removed:
                native.remove(removed, last)
                # So small that only many of them are worth a new manifest.
                self._delta_bytes += len(removed)
            self._add(native, first, last)
            self._covered = last
            if self._delta_bytes >= _LARGEST_DELTA_BYTES:
                self._publish_if_free(native)
                if self._anew is not None:
                    return

    def _add(self, native: SongIndex, first: int, last: int) -> None:
        """The recordings that came by some changes, but for those that are gone since."""
        tracks = self._database.reader.rows(
            "SELECT recording, first_frame, frames, peaks_1, peaks_2 FROM fingerprints "
            "JOIN recordings ON recordings.id = recording "
            "WHERE recording BETWEEN ? AND ? AND parameters = ? ORDER BY recording, part",
            (first, last, signed(self._parameters)),
        )
        if tracks:
            native.add(tracks, last)
            self._delta_bytes += sum(len(one[3]) + len(one[4]) for one in tracks)

    def _publish_if_free(self, native: SongIndex) -> None:
        """Spares the next process the reading; what fails here keeps nobody from searching."""
        if self._writing.try_acquire():
            try:
                self._publish(native)
            except (PolymuxError, OSError) as error:
                _log.warning("the index of songs stays in memory alone: %s", error)
                self._delta_bytes = 0
                self._must_publish = False
            finally:
                self._writing.release()

    def _publish(self, native: SongIndex) -> None:
        try:
            native.publish(self._covered)
        except (PolymuxError, OSError) as error:
            if getattr(error, "errno", None) == errno.ENOSPC:
                raise is_full(display_name(self._folder.parent.as_posix())) from error
            raise
        self._delta_bytes = 0
        self._must_publish = False
        damaged = native.damaged()
        if damaged:
            # Found out by merging.
            self._begin_anew(damaged)
