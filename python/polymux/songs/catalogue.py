"""`polymux.Catalogue`: one's own music, found by its sound and by its names."""

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
from polymux.songs.index import CatalogueIndex
from polymux.songs.indexer import Addition, is_there
from polymux.songs.results import CatalogueSong, CatalogueStatistics, CheckReport, Match, RunnerUp
from polymux.songs.scanner import absolute_path, files_of, named_path, several
from polymux.songs.settings import catalogue_folder, checked_confidence, made_folder
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

#: Recordings that are removed while they are found.
_MAX_TRIES = 5


class Catalogue:
    """Songs on this machine: names the one that a few seconds of sound are of, and finds by name.

    A folder with a database, which is the truth, and an index made of it. Any number of threads and
    processes may search and identify while one adds; they see what it has added at their next call.
    After a fork a child opens a catalogue of its own.

    Args:
        path: The folder; made where there is none. Default: ``POLYMUX_CATALOGUE``, else
            ``catalogue`` in ``[songs]`` of the configuration file, else ``polymux/songs`` in the
            XDG folder for data.
        min_confidence: From which confidence on `identify` names a song, 0.5 to 0.99: higher,
            and fewer songs are named, wrongly or rightly. Default: 0.85.

    Raises:
        CatalogueError: It cannot be opened or made, is damaged, or of a newer polymux.
        InvalidRequestError: The configuration file is wrong, or the confidence out of its range.

    Example:
        >>> import polymux
        >>> with polymux.Catalogue("songs") as catalogue:
        ...     report = catalogue.add("song.flac")
        ...     [song.title for song in catalogue.search("sogn")]
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
        #: The folder.
        self.path: Path = made_folder(catalogue_folder(path))
        self._writing = WritingLock(self.path / "lock")
        self._database = Database(self.path / "songs.sqlite3")
        self._table = SongTable(self._database)
        self._index = CatalogueIndex(self.path / "segments", self._database, self._writing)

    def add(
        self,
        sources: FilePath | Iterable[FilePath],
        *,
        workers: int | None = None,
        on_progress: Callable[[AddProgress], object] | None = None,
        cancel: threading.Event | None = None,
    ) -> AddReport:
        """Adds files, and what is in folders at any depth.

        The content decides what is music, never the name; but in folders, hidden files and those
        whose names say that they are pictures or texts are left out. A bad file stops nothing, nor
        does a folder that cannot be read: the report has its error. Files that are there already
        are known by size and time, then by their content; one that was moved or renamed keeps its
        number. A pass that is interrupted or killed loses no file that it was done with, and the
        next one goes on from there.

        Args:
            sources: A path, or several.
            workers: Files at a time. Default: as many as there are cores.
            on_progress: Called in this thread with a `polymux.songs.results.AddProgress` for each
                file. What it raises ends the pass. Default: None.
            cancel: Ends the pass once it is set. Default: None.

        Returns:
            What became of the files.

        Raises:
            InputNotFoundError: A source does not exist.
            InputUnreadableError: A source cannot be looked at.
            InvalidRequestError: A source is an empty text.
            CatalogueError: Another process adds, the disk is full, or the database is damaged.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.Catalogue("music") as catalogue:
            ...     catalogue.add(["song.flac", "talk.mp4"]).added
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
        """Looks at all songs and at the folders that were added: what is new, changed, or gone?

        Songs whose files are gone stay, for they may lie on a disk that is not there now; the
        report names them, and `remove` removes them. A folder that is gone is no failure, for what
        was in it is named. Songs that another release of polymux has
        listened to are listened to again, where this one does it in another way.

        Args:
            workers: As for `add`.
            on_progress: As for `add`.
            cancel: As for `add`.

        Returns:
            What became of the files.

        Raises:
            CatalogueError: As for `add`.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.Catalogue("music") as catalogue:
            ...     catalogue.rescan().failed
            ()
        """
        self._check_process()
        with self._writing.held():
            roots = (path for path in self._table.roots() if is_there(path))
            paths = [*roots, *(row.path for row in self._table.every())]
            begun = Addition(self._database, self._table, self._index, workers, on_progress, cancel)
            return begun.run(*files_of(paths, self.path))

    def remove(self, song: int | CatalogueSong | FilePath) -> int:
        """Removes a song, or all songs of a folder; files stay where they are.

        Args:
            song: Its number, itself, its file's path, or the path of a folder.

        Returns:
            How many songs were removed; 0 where there is none of that number or path.

        Raises:
            InvalidRequestError: An empty text, which is no path.
            CatalogueError: Another process adds, the disk is full, or the database is damaged.

        Example:
            >>> import polymux
            >>> with polymux.Catalogue("songs") as catalogue:
            ...     _ = catalogue.add("song.flac")
            ...     catalogue.remove("song.flac"), catalogue.remove("song.flac")
            (1, 0)
        """
        self._check_process()
        with self._writing.held(), self._database.transaction():
            if not isinstance(song, (int, CatalogueSong)):
                return self._table.remove_path(absolute_path(song))
            row = self._table.get(song if isinstance(song, int) else song.id)
            if row is not None:
                self._table.remove(row)
            return int(row is not None)

    def get(self, number: int) -> CatalogueSong | None:
        """A song by its number; None where there is none."""
        self._check_process()
        row = self._table.get(integer("number", number))
        return None if row is None else row.song()

    def songs(self) -> Iterator[CatalogueSong]:
        """All songs by their numbers, read as they are asked for."""
        self._check_process()
        return (row.song() for row in self._table.every())

    @renamed_arguments(least_confidence="min_confidence")
    def identify(
        self,
        source: Source,
        *,
        limits: Limits | None = None,
        min_confidence: float | None = None,
    ) -> Match | None:
        """Names the song that a piece of sound is of.

        A few seconds are enough, from anywhere in the song, with noise, at another speed. Of long
        sound the first ten minutes are opened, and of those the loudest 30 seconds are used: music
        that begins later is not heard.

        Args:
            source: A path, a bytes-like object or a binary file object: any audio or video file.
            limits: What the input may cost. Default: `polymux.Limits()`.
            min_confidence: Of the song that is named. Default: the catalogue's own.

        Returns:
            None where no song of the catalogue is like it, and where there is less than a second
            of sound.

        Raises:
            InputNotFoundError: There is no such file.
            InputUnreadableError: A folder, pipe or device, no permission, or a read failed.
            UnsupportedMediaError: Not one of the accepted containers or codecs.
            UndecodableError: Broken.
            NoAudioError: No audio stream.
            EncryptedMediaError: Protected.
            LimitExceededError: A limit was passed.
            InvalidRequestError: The confidence is out of its range.
            CatalogueError: The catalogue cannot be read.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.Catalogue("nothing") as catalogue:
            ...     catalogue.identify("song.flac") is None
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
        """What `identify` does, of sound that was described before, maybe by another process.

        Args:
            query: The member ``query`` of what the native ``song_query`` gives.
            go_on: Called in this thread now and then; what it raises ends the search. Default:
                none.
            min_confidence: As for `identify`.

        Raises:
            CatalogueError: The catalogue cannot be read.
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

    def _song(self, recording: int) -> CatalogueSong | None:
        """The song of a recording's group that is known longest.

        Which of several files of one recording a noisy snippet is most like is chance; the song
        that is named shall be the same each time.
        """
        row = self._table.first_like(recording)
        return None if row is None else row.song()

    def _runner_up(self, others: list[dict[str, Any]], song: CatalogueSong) -> RunnerUp | None:
        """The best of what is no other file of the same recording."""
        for found in others:
            other = self._song(found["song_id"])
            if other is not None and other.group_id != song.group_id:
                return RunnerUp(other, found["confidence"])
        return None

    def search(self, text: str, limit: int = 5) -> list[CatalogueSong]:
        """Finds songs by title, artist, or both, in any order and with errors of typing.

        Args:
            text: What to look for, of 300 characters at most.
            limit: Most songs, 1 to 50. Default: 5.

        Returns:
            The best first; of copies of one file only the first.

        Raises:
            InvalidRequestError: The text is blank or too long, or the limit out of its range.
            CatalogueError: The catalogue cannot be read.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.Catalogue("songs") as catalogue:
            ...     _ = catalogue.add("song.flac")
            ...     len(catalogue.search("song")), catalogue.search("Beethoven")
            (1, [])
        """
        self._check_process()
        return text_search.songs_like(self._database.reader, self._table, text, limit)

    def check(self) -> CheckReport:
        """Looks whether all is whole: database, index, files. Reads all of the database.

        Returns:
            What is wrong. Segments of the index that were damaged are made anew by this.

        Raises:
            CatalogueError: The database is so damaged that it cannot be read.
            MissingDependencyError: This installation has no media support.

        Example:
            >>> import polymux
            >>> with polymux.Catalogue("songs") as catalogue:
            ...     catalogue.check().is_whole
            True
        """
        self._check_process()
        problems = self._database.problems()
        damaged = self._index.verify()
        missing = [row.song() for row in self._table.every() if not is_there(row.path)]
        stale = [row.song() for row in self._table.stale(media.parameters_hash())]
        return CheckReport(tuple(problems), tuple(damaged), tuple(missing), tuple(stale))

    def count(self) -> int:
        """How many songs it has.

        Raises:
            CatalogueError: The catalogue cannot be read.

        Example:
            >>> import polymux
            >>> with polymux.Catalogue("nothing") as catalogue:
            ...     catalogue.count()
            0
        """
        self._check_process()
        return self._table.count()

    def stats(self) -> CatalogueStatistics:
        """How much it holds.

        Example:
            >>> import polymux
            >>> with polymux.Catalogue("nothing") as catalogue:
            ...     catalogue.stats().songs
            0
        """
        self._check_process()
        songs, recordings, groups, duration_s = self._table.counts()
        files = (self.path / f"songs.sqlite3{end}" for end in ("", "-wal"))
        taken = sum(one.stat().st_size for one in files if one.exists())
        index = self._index.statistics()
        return CatalogueStatistics(songs, recordings, groups, duration_s, taken, library(), index)

    def export(
        self,
        file: str | os.PathLike[str],
        format: Literal["json", "csv"] = "json",  # noqa: A002 - as every library calls it
        *,
        overwrite: bool = True,
    ) -> None:
        r"""Writes what is known of all songs to a file.

        Args:
            file: Where. It appears when it is whole.
            format: ``"json"``, an array, or ``"csv"`` with a line of names first. Default: JSON.
            overwrite: Replace a file that is there. Default: True.

        Raises:
            InvalidRequestError: There is no such format.
            OutputExistsError: The file is there, and `overwrite` is False.
            OutputRefusedError: It is a symlink or a folder.
            OutputFailedError: It cannot be written.

        Example:
            >>> import polymux
            >>> from pathlib import Path
            >>> with polymux.Catalogue("nothing") as catalogue:
            ...     catalogue.export("songs.json")
            >>> Path("songs.json").read_text()
            '[]\n'
        """
        export(self.songs(), file, format, overwrite=flag("overwrite", overwrite))

    def close(self) -> None:
        """Closes the database. Any number of times."""
        if os.getpid() == self._process:
            self._database.close()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise InvalidRequestError(
                "this Catalogue was opened before a fork: open one in the child, too"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
