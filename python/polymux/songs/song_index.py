"""`polymux.SongIndex`: the index over a music library, searched by sound and by name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from polymux._native import media
from polymux._util.deprecation import renamed_arguments
from polymux._util.sqlite import library
from polymux.errors import InvalidRequestError
from polymux.media.inputs import native_source
from polymux.media.options import flag, integer, native_limits
from polymux.songs import text_search
from polymux.songs.database import Database
from polymux.songs.export import export
from polymux.songs.fingerprint_index import FingerprintIndex
from polymux.songs.indexer import Addition, is_there
from polymux.songs.results import CheckReport, IndexedSong, Match, RunnerUp, SongIndexStatistics
from polymux.songs.scanner import absolute_path, files_of, named_path, several
from polymux.songs.settings import checked_confidence, index_folder, made_folder
from polymux.songs.table import SongTable
from polymux.songs.write_lock import WritingLock

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Self, TypeAlias

    from polymux.media.inputs import Source
    from polymux.media.options import Limits
    from polymux.songs.results import AddProgress, AddReport

    FilePath: TypeAlias = str | os.PathLike[str] | os.PathLike[bytes]

#: Retries if a matching song is removed during identification.
_MAX_TRIES = 5


class SongIndex:
    """The index over a music library, which identifies recordings and finds songs by name.

    The index is a directory with a database, which is the source of truth, and files for the search
    by sound, which are made from it. Any number of threads and processes can search and identify
    while one process adds songs; they see the new songs at their next call. After a fork, open a
    new `SongIndex` in the child process.

    Args:
        path: Directory of the index; created if it does not exist. Default: ``POLYMUX_SONG_INDEX``,
            else ``index_dir`` in ``[songs]`` of the configuration file, else ``polymux/songs`` in
            the XDG data directory.
        min_confidence: Minimum confidence of a match in `identify`, 0.5 to 0.99. A higher value
            gives fewer wrong matches, but also fewer correct ones. Default: 0.85.

    Raises:
        SongIndexError: The index cannot be opened or created, is damaged, or was made by a newer
            polymux.
        InvalidRequestError: The configuration file is invalid, or the confidence is out of range.

    Example:
        >>> import polymux
        >>> with polymux.SongIndex("songs") as index:
        ...     report = index.add("song.flac")
        ...     [song.title for song in index.search("sogn")]
        ['Song']
    """

    @renamed_arguments(least_confidence="min_confidence")
    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        min_confidence: float | None = None,
    ) -> None:
        self._process = os.getpid()
        self._min_confidence = checked_confidence(min_confidence)
        #: Directory of the index.
        self.path: Path = made_folder(index_folder(path))
        self._writing = WritingLock(self.path / "lock")
        self._database = Database(self.path / "songs.sqlite3")
        self._table = SongTable(self._database)
        self._index = FingerprintIndex(self.path / "segments", self._database, self._writing)

    def add(
        self,
        sources: FilePath | Iterable[FilePath],
        *,
        workers: int | None = None,
        on_progress: Callable[[AddProgress], object] | None = None,
        cancel: threading.Event | None = None,
    ) -> AddReport:
        """Add files, and the files in directories at any depth.

        Files are recognized as music by their content, not by their names. In directories, hidden
        files and files with the extension of an image or text file are skipped. A file or directory
        that cannot be read does not stop the operation: the report has its error. Known files are
        recognized by size and time, then by content; a moved or renamed file keeps its ID. If the
        operation is interrupted or killed, all finished files are kept, and the next call continues
        from there.

        Args:
            sources: One path or several.
            workers: Number of files processed in parallel. Default: the number of cores.
            on_progress: Called with a `polymux.songs.results.AddProgress` for each file, in the
                calling thread. An exception in it ends the operation. Default: None.
            cancel: Event that ends the operation when it is set. Default: None.

        Returns:
            A report on all files.

        Raises:
            InputNotFoundError: A source does not exist.
            InputUnreadableError: A source cannot be read.
            InvalidRequestError: A source is an empty string.
            SongIndexError: Another process is adding songs, the disk is full, or the database is
                damaged.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.SongIndex("music") as index:
            ...     index.add(["song.flac", "talk.mp4"]).added
            2
        """
        self._check_process()
        paths = [named_path(one) for one in several(sources)]
        with self._writing.held():
            with self._database.transaction():
                for one in filter(os.path.isdir, paths):
                    self._table.add_root(one)
            begun = Addition(self._database, self._table, self._index, workers, on_progress, cancel)
            return begun.run(*files_of(paths, self.path))

    def rescan(
        self,
        *,
        workers: int | None = None,
        on_progress: Callable[[AddProgress], object] | None = None,
        cancel: threading.Event | None = None,
    ) -> AddReport:
        """Check all songs and all added directories for new, changed and missing files.

        Songs with missing files are kept, because their disk may only be unmounted. The report
        lists them, and `remove` removes them. A missing directory is not reported as a failure,
        because its songs are listed as missing. Songs are fingerprinted again if a version of
        polymux with another fingerprint method has added them.

        Args:
            workers: As for `add`.
            on_progress: As for `add`.
            cancel: As for `add`.

        Returns:
            A report on all files.

        Raises:
            SongIndexError: As for `add`.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.SongIndex("music") as index:
            ...     index.rescan().failed
            ()
        """
        self._check_process()
        with self._writing.held():
            roots = (path for path in self._table.roots() if is_there(path))
            paths = [*roots, *(row.path for row in self._table.every())]
            begun = Addition(self._database, self._table, self._index, workers, on_progress, cancel)
            return begun.run(*files_of(paths, self.path))

    def remove(self, song: int | IndexedSong | FilePath) -> int:
        """Remove a song, or all songs of a directory, from the index. Files are not deleted.

        Args:
            song: ID of the song, the song itself, the path of its file, or the path of a directory.

        Returns:
            The number of removed songs; 0 if the ID or path is not in the index.

        Raises:
            InvalidRequestError: The path is an empty string.
            SongIndexError: Another process is adding songs, the disk is full, or the database is
                damaged.

        Example:
            >>> import polymux
            >>> with polymux.SongIndex("songs") as index:
            ...     _ = index.add("song.flac")
            ...     index.remove("song.flac"), index.remove("song.flac")
            (1, 0)
        """
        self._check_process()
        with self._writing.held(), self._database.transaction():
            if not isinstance(song, (int, IndexedSong)):
                return self._table.remove_path(absolute_path(song))
            row = self._table.get(song if isinstance(song, int) else song.id)
            if row is not None:
                self._table.remove(row)
            return int(row is not None)

    def get(self, number: int) -> IndexedSong | None:
        """Return a song by its ID, or None if it does not exist."""
        self._check_process()
        row = self._table.get(integer("number", number))
        return None if row is None else row.song()

    def songs(self, *, after: int = 0) -> Iterator[IndexedSong]:
        """Iterate over songs in the order of their IDs. Songs are read lazily.

        Args:
            after: Only songs with a higher ID. Default: all songs.
        """
        self._check_process()
        return (row.song() for row in self._table.every(integer("after", after)))

    @renamed_arguments(least_confidence="min_confidence")
    def identify(
        self,
        source: Source,
        *,
        limits: Limits | None = None,
        min_confidence: float | None = None,
    ) -> Match | None:
        """Identify the song that a recording is of.

        A few seconds from any part of the song are enough, even with noise or at another speed.
        Only the first ten minutes of a long recording are opened, and only the loudest 30 seconds
        of them are used. Music that begins later is not found.

        Args:
            source: A path, a bytes-like object or a binary file object with any audio or video
                file.
            limits: Limits on the input. Default: `polymux.Limits()`.
            min_confidence: Minimum confidence of the match. Default: that of this `SongIndex`.

        Returns:
            The match, or None if no song matches or if the recording is shorter than a second.

        Raises:
            InputNotFoundError: The file does not exist.
            InputUnreadableError: The input is a directory, pipe or device, permission was denied,
                or reading failed.
            UnsupportedMediaError: The container or codec is not supported.
            UndecodableError: The input is broken.
            NoAudioError: The input has no audio.
            EncryptedMediaError: The input is protected by DRM or encryption.
            LimitExceededError: The input exceeds a limit.
            InvalidRequestError: The confidence is out of range.
            SongIndexError: The index cannot be read.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.SongIndex("nothing") as index:
            ...     index.identify("song.flac") is None
            True
        """
        self._check_process()
        least = checked_confidence(min_confidence)
        query: bytes = media.song_query(native_source(source), native_limits(limits))["query"]
        return self.identify_query(query, min_confidence=least)

    def identify_query(
        self,
        query: bytes,
        go_on: Callable[[], object] | None = None,
        *,
        min_confidence: float | None = None,
    ) -> Match | None:
        """Identify a song by a fingerprint that may come from another process.

        Args:
            query: The value of ``query`` in the result of the native ``song_query``.
            go_on: Called repeatedly in this thread; an exception in it ends the search. Default:
                None.
            min_confidence: As for `identify`.

        Raises:
            SongIndexError: The index cannot be read.
        """
        self._check_process()
        least = self._min_confidence if min_confidence is None else min_confidence
        gone: list[int] = []
        for _ in range(_MAX_TRIES):
            found = self._index.current().identify(query, gone, go_on, least)
            if found is None:
                return None
            song = self._song(found["song_id"])
            if song is not None:
                return Match(
                    song,
                    found["offset_s"],
                    found["tempo"] if found["change"] == "speed" else 1.0,
                    found["tempo"],
                    found["pitch"],
                    found["confidence"],
                    self._runner_up(found["others"], song),
                )
            gone.append(found["song_id"])
        return None

    def _song(self, recording: int) -> IndexedSong | None:
        """Return the oldest song in the group of a recording.

        A noisy recording may match any of several files of the same song. This always returns the
        same one of them.
        """
        row = self._table.first_like(recording)
        return None if row is None else row.song()

    def _runner_up(self, others: list[dict[str, Any]], song: IndexedSong) -> RunnerUp | None:
        """Return the best match that is not another file of the same recording."""
        for found in others:
            other = self._song(found["song_id"])
            if other is not None and other.group_id != song.group_id:
                return RunnerUp(other, found["confidence"])
        return None

    def search(self, text: str, limit: int = 5) -> list[IndexedSong]:
        """Find songs by title, artist, or both, in any order and with typing errors.

        Args:
            text: Search text of at most 300 characters.
            limit: Maximum number of songs, 1 to 50. Default: 5.

        Returns:
            Songs, best match first, with only the first of several copies of a file.

        Raises:
            InvalidRequestError: The text is blank or too long, or the limit is out of range.
            SongIndexError: The index cannot be read.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.SongIndex("songs") as index:
            ...     _ = index.add("song.flac")
            ...     len(index.search("song")), index.search("Beethoven")
            (1, [])
        """
        self._check_process()
        return text_search.songs_like(self._database.reader, self._table, text, limit)

    def check(self) -> CheckReport:
        """Check the database, the index files and the songs. This reads the complete database.

        Returns:
            The problems. Damaged index segments are rebuilt by this call.

        Raises:
            SongIndexError: The database is too damaged to be read.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.SongIndex("songs") as index:
            ...     index.check().is_whole
            True
        """
        self._check_process()
        problems = self._database.problems()
        damaged = self._index.verify()
        missing = [row.song() for row in self._table.every() if not is_there(row.path)]
        stale = [row.song() for row in self._table.stale(media.parameters_hash())]
        return CheckReport(tuple(problems), tuple(damaged), tuple(missing), tuple(stale))

    def count(self) -> int:
        """Return the number of songs.

        Raises:
            SongIndexError: The index cannot be read.

        Example:
            >>> import polymux
            >>> with polymux.SongIndex("nothing") as index:
            ...     index.count()
            0
        """
        self._check_process()
        return self._table.count()

    def stats(self) -> SongIndexStatistics:
        """Return statistics on songs, recordings, the database and the index files.

        Example:
            >>> import polymux
            >>> with polymux.SongIndex("nothing") as index:
            ...     index.stats().songs
            0
        """
        self._check_process()
        songs, recordings, groups, duration_s = self._table.counts()
        files = (self.path / f"songs.sqlite3{end}" for end in ("", "-wal"))
        taken = sum(one.stat().st_size for one in files if one.exists())
        index = self._index.statistics()
        return SongIndexStatistics(songs, recordings, groups, duration_s, taken, library(), index)

    def export(
        self,
        file: str | os.PathLike[str],
        format: Literal["json", "csv"] = "json",  # noqa: A002 - the usual name in libraries
        *,
        overwrite: bool = True,
    ) -> None:
        r"""Export the metadata of all songs to a file.

        Args:
            file: Output path. The file appears only when it is complete.
            format: ``"json"`` for an array, or ``"csv"`` with a header line. Default: ``"json"``.
            overwrite: Replace an existing file. Default: True.

        Raises:
            InvalidRequestError: The format is unknown.
            OutputExistsError: The file exists and `overwrite` is False.
            OutputRefusedError: The path is a symlink or a directory.
            OutputFailedError: The file cannot be written.

        Example:
            >>> import polymux
            >>> from pathlib import Path
            >>> with polymux.SongIndex("nothing") as index:
            ...     index.export("songs.json")
            >>> Path("songs.json").read_text()
            '[]\n'
        """
        export(self.songs(), file, format, overwrite=flag("overwrite", overwrite))

    def close(self) -> None:
        """Close the database. You can call this more than once."""
        if os.getpid() == self._process:
            self._database.close()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise InvalidRequestError(
                "this SongIndex was opened before a fork. Open a new one in the child process"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
