"""The index for the search by sound, which is derived from the database of a song index."""

from __future__ import annotations

import errno
import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux._native import media
from polymux._util.sqlite import is_full
from polymux._util.text import display_name
from polymux.errors import MissingDependencyError, PolymuxError, SongIndexError
from polymux.songs.table import signed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux._native._media import SongIndex as NativeIndex
    from polymux.songs.database import Database
    from polymux.songs.write_lock import WritingLock

_log = logging.getLogger("polymux.songs")

#: Maximum size of new songs in memory before they are written as a segment to disk.
_LARGEST_DELTA_BYTES = 64 << 20
#: From this size of unpublished changes, a reader writes a segment if no process is writing.
_WORTH_A_SEGMENT_BYTES = 8 << 20
_CHANGES_AT_ONCE = 200
#: Limit on rebuilding: on a faulty disk, every new segment may be damaged again.
_MAX_REBUILDS = 3
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class FingerprintIndex:
    """The native index of all fingerprints. Each use updates it from the database.

    The segments on disk contain the database up to some change. Later changes by any process are
    read from the database into memory. Segments are rebuilt from the database if they are missing
    or damaged, or if they belong to another song index or other parameters.

    Thread-safe. Errors of the native core and of the system are raised as `SongIndexError`.

    Args:
        folder: Directory of the segments.
        database: Database of the song index, the source of truth.
        writing: Lock that is held while segments are written.
    """

    def __init__(self, folder: Path, database: Database, writing: WritingLock) -> None:
        self._folder = folder
        self._database = database
        self._writing = writing
        self._lock = threading.Lock()
        self._native: NativeIndex | None = None
        self._parameters = 0
        self._seen: Any = None
        self._covered = 0
        self._delta_bytes = 0
        self._must_publish = False
        self._anew: NativeIndex | None = None
        #: Descriptions of damaged files since the last `verify`.
        self.damaged: list[str] = []

    def current(self) -> NativeIndex:
        """Return the native index, updated with all changes in the database."""
        with self._lock, self._reported():
            try:
                return self._brought_up()
            except BaseException:
                # A change may be half applied: the next call opens the index again.
                self._native = self._anew = None
                raise

    def _brought_up(self) -> NativeIndex:
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
        # Set only after success: concurrent users keep the old, complete index.
        self._native = native
        return native

    def _has_news(self, native: NativeIndex) -> bool:
        """Check whether another process has published. Read errors are only logged."""
        try:
            return native.refresh()
        except PolymuxError as error:
            _log.warning("cannot refresh the song index, using the old one: %s", error)
            return False

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (SongIndexError, MissingDependencyError):
            raise
        except (PolymuxError, OSError) as error:
            name = display_name(self._folder.parent.as_posix())
            words = error if isinstance(error, PolymuxError) else error.strerror
            raise SongIndexError(
                f"the song index {name} cannot be used: {words}",
                errno=getattr(error, "errno", None),
            ) from error

    def publish(self) -> None:
        """Write all changes in memory as segments. The caller must hold the write lock."""
        for _ in range(_MAX_REBUILDS):
            native = self.current()
            with self._lock, self._reported():
                if self._delta_bytes == 0 and not self._must_publish:
                    return
                self._publish(native)
                if self._anew is None:
                    return

    def verify(self) -> list[str]:
        """Verify all segments, rebuild the index if one is damaged, and return the damaged ones."""
        native = self.current()
        with self._reported():
            # Without the lock: this takes long and must not block searches.
            damaged = native.verify()
        self.leave(damaged)
        with self._lock:
            found, self.damaged = self.damaged, []
        self.current()
        return found

    def leave(self, damaged: list[tuple[str, str]]) -> None:
        """Make the next call of `current` rebuild the index if `verify` has found damage."""
        if damaged:
            with self._lock, self._reported():
                self._begin_anew(damaged)

    def statistics(self) -> dict[str, int]:
        return dict(self.current().statistics())

    def _opened(self) -> NativeIndex:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            # If the directory is not writable, the index is built in memory.
            if error.errno not in _UNWRITABLE:
                raise
        native = media.SongIndex(str(self._folder))
        self._parameters = media.parameters_hash()
        self._covered = native.covered_sequence
        self._delta_bytes = 0
        self._must_publish = False
        first, last = self._database.span()
        # Numbers outside this range come from another database or a lost one.
        is_foreign = self._covered != 0 and not first <= self._covered <= last
        damaged = native.damaged()
        # Segments without a number were left by a writer that found a damaged segment.
        is_in_parts = self._covered == 0 and native.statistics()["segments"] > 0
        if damaged or is_foreign or is_in_parts:
            self._begin_anew(damaged)
        elif self._covered == 0 and last > first:
            self._must_publish = True
        self._seen = None
        return native

    def _begin_anew(self, damaged: list[tuple[str, str]]) -> None:
        """Start a rebuild from the complete database. The old index stays in use meanwhile."""
        for name, why in damaged:
            _log.warning("rebuilding the song index: %s: %s", name, why)
            self.damaged.append(f"{name}: {why}")
        self._anew = media.SongIndex(str(self._folder))
        self._anew.reset()

    def _caught_up(self, native: NativeIndex) -> None:
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
                # One byte each: only many removals justify a new manifest.
                self._delta_bytes += len(removed)
            self._add(native, first, last)
            self._covered = last
            if self._delta_bytes >= _LARGEST_DELTA_BYTES:
                self._publish_if_free(native)
                if self._anew is not None:
                    return

    def _add(self, native: NativeIndex, first: int, last: int) -> None:
        """Add the recordings of a range of changes, except those removed since."""
        tracks = self._database.reader.rows(
            "SELECT recording, first_frame, frames, peaks_1, peaks_2 FROM fingerprints "
            "JOIN recordings ON recordings.id = recording "
            "WHERE recording BETWEEN ? AND ? AND parameters = ? ORDER BY recording, part",
            (first, last, signed(self._parameters)),
        )
        if tracks:
            native.add(tracks, last)
            self._delta_bytes += sum(len(one[3]) + len(one[4]) for one in tracks)

    def _publish_if_free(self, native: NativeIndex) -> None:
        """Write a segment, which saves later processes work. Errors do not affect searches."""
        if self._writing.try_acquire():
            try:
                self._publish(native)
            except (PolymuxError, OSError) as error:
                _log.warning("cannot write the song index, keeping it in memory: %s", error)
                self._delta_bytes = 0
                self._must_publish = False
            finally:
                self._writing.release()

    def _publish(self, native: NativeIndex) -> None:
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
            # Merging has found damage.
            self._begin_anew(damaged)
