"""Adding of files to a music library: threads fingerprint them, one thread writes the database."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._native import media
from polymux._util.text import display_name
from polymux.errors import (
    InputChangedError,
    InputNotFoundError,
    InputUnreadableError,
    InvalidRequestError,
    PolymuxError,
)
from polymux.media.inputs import native_source
from polymux.media.options import integer, native_limits
from polymux.media.probe import probe
from polymux.songs.results import AddProgress, AddReport, FailedFile
from polymux.songs.table import FileState, SongRow, digest_of
from polymux.songs.tags import tags_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from polymux.songs.database import Database
    from polymux.songs.fingerprint_index import FingerprintIndex
    from polymux.songs.results import IndexedSong
    from polymux.songs.table import Part, SongTable
    from polymux.songs.tags import SongTags

_PIECE_BYTES = 1 << 20


@dataclass(slots=True)
class Examined:
    """The result of examining a file.

    Attributes:
        path: Path of the file.
        state: Size and time; None if the file does not exist.
        row: The song with this path, if any.
        content_hash: Hash of the content; empty if the file was not read.
        tags: Tags of the file; None if they were not read.
        parts: Fingerprint; None if it is already known.
        duration_s: Length of the fingerprinted audio in seconds.
        recording: Known recording with the same content.
        same: Recordings that sound the same.
    """

    path: bytes
    state: FileState | None = None
    row: SongRow | None = None
    content_hash: bytes = b""
    tags: SongTags | None = None
    parts: list[Part] | None = None
    duration_s: float = 0.0
    recording: int | None = None
    same: list[int] = field(default_factory=list)


class _Stopped(Exception):  # noqa: N818 - not an error
    """The operation was stopped."""


class Addition:
    """One operation that adds files. Use it from one thread; its own threads only read.

    Args:
        on_progress: Called for each file in the thread that calls `run`. An exception in it ends
            the operation.
        cancel: Event that ends the operation; written songs are kept.
    """

    def __init__(
        self,
        database: Database,
        table: SongTable,
        index: FingerprintIndex,
        workers: int | None,
        on_progress: Callable[[AddProgress], object] | None,
        cancel: threading.Event | None,
    ) -> None:
        self._parameters = media.parameters_hash()
        self._database = database
        self._table = table
        self._index = index
        self._workers = _checked_workers(workers)
        self._on_progress = on_progress
        self._cancel = cancel or threading.Event()
        self._stop = threading.Event()
        self._counts: Counter[str] = Counter()
        self._failed: list[FailedFile] = []
        self._missing: list[bytes] = []
        self._audio_s = 0.0

    def run(self, paths: list[bytes], unread: Sequence[tuple[bytes, OSError]] = ()) -> AddReport:
        """Examine all files and add the new ones. Paths in `unread` are reported as failed."""
        self._began = time.monotonic()
        self._total = len(paths) + len(unread)
        # Publish changes in memory and rebuild a damaged index before new changes are numbered.
        self._index.current()
        try:
            for path, reason in unread:
                self._note(path, "failed", _unreadable(path, reason))
            with closing(self._outcomes(paths)) as outcomes:
                for outcome in outcomes:
                    self._note(*outcome)
        except BaseException:
            # The original error is raised; the next operation writes the segment then.
            with suppress(PolymuxError):
                self._index.publish()
            raise
        self._index.publish()
        found = self._counts
        return AddReport(
            added=found["added"],
            updated=found["updated"],
            moved=found["moved"],
            duplicates=found["duplicate"],
            unchanged=found["unchanged"],
            missing=tuple(self._still_missing()),
            failed=tuple(self._failed),
            audio_s=self._audio_s,
            elapsed_s=time.monotonic() - self._began,
            cancelled=self._cancel.is_set(),
        )

    def _still_missing(self) -> list[IndexedSong]:
        """Songs with missing files, except those found at another path in the meantime."""
        rows = (self._table.at(path) for path in self._missing)
        return [row.song() for row in rows if row is not None]

    def _note(self, path: bytes, outcome: str, error: PolymuxError | None) -> None:
        where = Path(os.fsdecode(path))
        self._counts[outcome] += 1
        if error is not None:
            self._failed.append(FailedFile(where, error))
        if self._on_progress is not None:
            done, elapsed_s = self._counts.total(), time.monotonic() - self._began
            self._on_progress(
                AddProgress(where, outcome, error, done, self._total, self._audio_s, elapsed_s)
            )

    def _outcomes(
        self, paths: list[bytes]
    ) -> Generator[tuple[bytes, str, PolymuxError | None], None, None]:
        todo = iter(paths)
        running: dict[Future[Examined], bytes] = {}
        with ThreadPoolExecutor(self._workers, "polymux-songs") as pool:
            try:
                while not self._cancel.is_set():
                    while len(running) < 2 * self._workers and (path := next(todo, None)):
                        running[pool.submit(self.examine, path)] = path
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        path = running.pop(future)
                        if not isinstance(future.exception(), _Stopped):
                            yield self._outcome(path, future)
            finally:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _outcome(
        self, path: bytes, future: Future[Examined]
    ) -> tuple[bytes, str, PolymuxError | None]:
        try:
            found = future.result()
        except PolymuxError as error:
            return path, "failed", error
        return path, self._write(found), None

    # Called on the pool's threads:

    def examine(self, path: bytes) -> Examined:
        """Examine a file and read no more of it than needed.

        Raises:
            PolymuxError: The file cannot be read, or has no audio.
        """
        found = Examined(path, row=self._table.at(path))
        found.state = state = state_of(path)
        if state is None:
            if found.row is None:
                name = display_name(path)
                raise InputNotFoundError("file not found", input_name=name)
            return found
        row = found.row
        is_current = row is not None and self._is_current(row.recording)
        if row is not None and is_current and row.state == state:
            return found
        if row is None:
            # Check for audio first: a file without audio is recognized by its start. Hashing would
            # read a large file, such as a disk image, completely on every scan.
            found.tags = self._tags(path)
        found.content_hash = self._hash(path)
        if row is not None and is_current and row.content_hash == found.content_hash:
            return found
        known = (one.recording for one in self._table.with_content(found.content_hash))
        found.recording = next(filter(self._is_current, known), None)
        if found.recording is None:
            self._listen(found)
        found.tags = found.tags or self._tags(path)
        if state_of(path) != state:
            name = display_name(path)
            message = f"{name} changed while it was read. Add it again later"
            raise InputChangedError(message, input_name=name)
        return found

    def _listen(self, found: Examined) -> None:
        source = native_source(os.fsdecode(found.path))
        limits = native_limits(None)
        heard = media.fingerprint_song(source, None, limits, self._go_on)
        found.parts = list(heard["parts"])
        found.duration_s = heard["duration_s"]

    def _tags(self, path: bytes) -> SongTags:
        return tags_of(path, probe(os.fsdecode(path)))

    def _go_on(self, _: Any = None) -> None:
        if self._stop.is_set() or self._cancel.is_set():
            raise _Stopped

    def _hash(self, path: bytes) -> bytes:
        digest = hashlib.blake2b(digest_size=32)
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - byte for byte
                while piece := file.read(_PIECE_BYTES):
                    digest.update(piece)
                    self._go_on()
        except OSError as error:
            raise _unreadable(path, error) from error
        return digest.digest()

    # Called on the thread that calls `run`:

    def _write(self, found: Examined) -> str:
        if found.state is None:
            self._missing.append(found.path)
            return "missing"
        if found.tags is None:
            if found.row is not None and found.row.state != found.state:
                with self._database.transaction():
                    self._table.touch(found.row, found.state)
            return "unchanged"
        if not (self._is_current(found.recording) or found.parts is not None):
            # The last song of this recording was removed since `examine`. Fingerprint outside the
            # transaction: it takes long, and without a write-ahead log it would block readers.
            self._listen(found)
        found.same = self._same(found)
        with self._database.transaction():
            outcome = self._put(found, found.tags, found.state)
        self._audio_s += found.duration_s
        return outcome

    def _put(self, found: Examined, tags: SongTags, state: FileState) -> str:
        """Write a song with its recording, and return the outcome."""
        recording = self._recording(found)
        if found.row is not None:
            group = None
            if recording != found.row.recording:
                # The file now has another recording and leaves its group. IDs of recordings and
                # songs never overlap, which makes the recording's ID a valid new group ID.
                group = self._group_of(recording, found) or recording
            self._table.replace(
                found.row, found.path, state, found.content_hash, tags, recording, group
            )
            return "updated"
        same = self._table.with_content(found.content_hash)
        for row in same:
            if not os.path.lexists(row.path):
                self._table.replace(row, found.path, state, found.content_hash, tags, recording)
                return "moved"
        group = self._group_of(recording, found)
        self._table.add(found.path, state, found.content_hash, tags, recording, group)
        return "duplicate" if same else "added"

    def _is_current(self, recording: int | None) -> bool:
        return recording is not None and self._table.is_current(recording, self._parameters)

    def _recording(self, found: Examined) -> int:
        """Return the recording, or add one if no recording has the same fingerprint."""
        known = found.recording
        if known is not None and self._is_current(known):
            return known
        parts = found.parts or []
        like = self._table.recording_like(digest_of(parts), self._parameters)
        if like is not None:
            return like
        return self._table.add_recording(parts, found.duration_s, self._parameters)

    def _same(self, found: Examined) -> list[int]:
        """Return the recordings of the library that sound the same as a fingerprinted file."""
        if not found.parts:
            return []
        _, frames, first, second = found.parts[0]
        return self._index.current().same_recordings(frames, first, second)

    def _group_of(self, recording: int, found: Examined) -> int | None:
        """Return the group of songs that sound the same, or None if there is no such group."""
        for one in (recording, *found.same):
            songs = self._table.of_recording(one)
            if songs:
                return songs[0].group_id
        return None


def _checked_workers(workers: int | None) -> int:
    number = media.available_cores() if workers is None else integer("workers", workers)
    if number < 1:
        raise InvalidRequestError(f"workers: out of range (got {number}, allowed 1 or more)")
    return number


def state_of(path: bytes) -> FileState | None:
    """Size and time of a file; None if it does not exist. Only regular files are accepted."""
    try:
        status = os.stat(path)  # noqa: PTH116 - byte for byte
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        name = display_name(path)
        raise InputUnreadableError(f"{name} is not a regular file", input_name=name)
    return FileState(status.st_size, status.st_mtime_ns)


def is_there(path: bytes) -> bool:
    """Whether a path exists. True if this cannot be determined."""
    try:
        return state_of(path) is not None
    except InputUnreadableError:
        return True


def _unreadable(path: bytes, error: OSError) -> InputUnreadableError:
    name = display_name(path)
    return InputUnreadableError(
        f"cannot read {name}: {error.strerror}", input_name=name, errno=error.errno
    )
