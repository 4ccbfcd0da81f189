"""What a catalogue gives: songs, matches, and reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polymux._util.html_repr import (
    MAX_ROWS,
    HtmlReprMixin,
    escaped,
    image,
    is_address,
    key_values,
    link,
    table,
)
from polymux._util.text import clock, printable, size
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.media.results import Cover

_COVER_PX = 160


@dataclass(frozen=True, slots=True)
class CatalogueSong:
    """A song of the catalogue: one file.

    Attributes:
        id: Its number; never given to another song.
        path: Where its file was when it was last looked at.
        title: By its tags, else by the file's name.
        artist: Empty where nothing says it; so is the next one.
        album: The album's title.
        year: Of the release; None where nothing says it.
        duration_s: Length in seconds.
        mbid: Id of the recording at MusicBrainz; empty where the tags have none.
        cover: ``"embedded"`` for a picture in the file itself, else the path of a picture beside
            it; None where there is neither. `read_cover` gives the picture.
        group_id: The same number for files of the same recording.

    Example:
        >>> import polymux
        >>> with polymux.Catalogue("songs") as catalogue:
        ...     _ = catalogue.add("song.flac")
        ...     song = catalogue.search("song")[0]
        >>> song.name, round(song.duration_s), song.cover
        ('Song', 2, None)
    """

    id: int
    path: Path
    title: str
    artist: str
    album: str
    year: int | None
    duration_s: float
    mbid: str
    cover: str | None
    group_id: int

    @property
    def name(self) -> str:
        """Title and artist, as in ``Title - Artist``; the title alone where no artist is known."""
        return f"{self.title} - {self.artist}" if self.artist else self.title

    @property
    def url(self) -> str:
        """The recording's page at MusicBrainz; else the file's own address, ``file:...``."""
        if self.mbid:
            return f"https://musicbrainz.org/recording/{self.mbid}"
        return self.path.absolute().as_uri()

    def read_cover(self) -> Cover | None:
        """The cover as it is now.

        Returns:
            None where there is none, or where the picture has over 10 MiB.

        Raises:
            InputError: The file cannot be read, or is gone.
            MediaError: It is no longer a recording.
        """
        from polymux.songs.tags import read_cover

        return read_cover(self)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON-able values; what no text can hold of a path is escaped."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["path"] = printable(str(self.path))
        if self.cover is not None:
            plain["cover"] = printable(self.cover)
        return plain

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        try:
            picture = self.read_cover()
        except PolymuxError:
            picture = None  # The file is gone; what is known of it is not.
        shown = "" if picture is None else image(picture.mime_type, picture.data, _COVER_PX)
        # The file's own address is not shown: no browser follows it, and it tells its folder.
        name = link(self.url, self.name) if is_address(self.url) else escaped(self.name)
        facts = [escaped(self.album)] if self.album else []
        facts += [str(self.year)] if self.year is not None else []
        facts.append(clock(self.duration_s))
        return f"<div>{shown}<div><b>{name}</b></div><div>{', '.join(facts)}</div></div>"


@dataclass(frozen=True, slots=True)
class RunnerUp(HtmlReprMixin):
    """The song that would have been named without the one that was.

    Attributes:
        song: It.
        confidence: From 0 to 1.
    """

    song: CatalogueSong
    confidence: float


@dataclass(frozen=True, slots=True)
class Match:
    """The song that a piece of sound is of.

    Attributes:
        song: It; of several files of one recording, the one that was added first.
        offset_s: Where in the song the sound begins, in seconds; in that file of the recording
            which is most like the sound.
        speed: How much faster than the song the sound is played, so that it is higher too: 1.02
            for two percent. 1.0 where only one of the next two has changed.
        tempo: How much faster it goes.
        pitch: How much higher it sounds, as a factor of frequencies.
        confidence: How sure this is, from 0 to 1.
        runner_up: The next best song that is no other file of the same; None where there is none
            among the twelve best recordings.
    """

    song: CatalogueSong
    offset_s: float
    speed: float
    tempo: float
    pitch: float
    confidence: float
    runner_up: RunnerUp | None = None

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON-able values."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["song"] = self.song.to_dict()
        if self.runner_up is not None:
            second = self.runner_up
            plain["runner_up"] = {"song": second.song.to_dict(), "confidence": second.confidence}
        return plain

    def _repr_html_(self) -> str:
        """The song's card for notebooks, and how sure this is."""
        facts = [("at", clock(self.offset_s)), ("confidence", f"{self.confidence:.0%}")]
        for name in ("speed", "tempo", "pitch"):
            factor = getattr(self, name)
            if factor != 1.0:
                facts.append((name, f"{factor:.3f} times"))
        if self.runner_up is not None:
            second = self.runner_up
            facts.append(("next best", f"{second.song.name} ({second.confidence:.0%})"))
        return f"<div>{self.song._repr_html_()}{key_values(facts)}</div>"


@dataclass(frozen=True, slots=True)
class AddProgress(HtmlReprMixin):
    """A file that was looked at.

    Attributes:
        path: Which.
        outcome: ``"added"``, ``"updated"`` (its sound or tags are others than before), ``"moved"``
            (known from another place, where it is no longer), ``"duplicate"`` (the same file is
            known from another place, too), ``"unchanged"``, ``"missing"`` (of `rescan`) or
            ``"failed"``.
        error: Why it failed; None for all else.
        done: Files looked at so far.
        total: Files in all.
        audio_s: Sound listened to so far, in seconds.
        elapsed_s: Seconds since the start.
    """

    path: Path
    outcome: str
    error: PolymuxError | None
    done: int
    total: int
    audio_s: float
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class FailedFile(HtmlReprMixin):
    """A file that is not in the catalogue.

    Attributes:
        path: Which.
        error: Why.
    """

    path: Path
    error: PolymuxError


@dataclass(frozen=True, slots=True)
class AddReport:
    """What became of the files that were to be added.

    Attributes:
        added: New songs.
        updated: Songs whose files have changed.
        moved: Songs whose files lie elsewhere now.
        duplicates: New songs whose files are copies of others.
        unchanged: Songs that are as they were.
        missing: Songs whose files are gone; only `rescan` looks for them, and keeps them.
        failed: Files that are no music or cannot be read, and folders that cannot be read.
        audio_s: Sound listened to, in seconds.
        elapsed_s: Time it took.
        cancelled: Whether it was ended before its end.
    """

    added: int = 0
    updated: int = 0
    moved: int = 0
    duplicates: int = 0
    unchanged: int = 0
    missing: tuple[CatalogueSong, ...] = ()
    failed: tuple[FailedFile, ...] = ()
    audio_s: float = 0.0
    elapsed_s: float = 0.0
    cancelled: bool = False

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        names = ("added", "updated", "moved", "duplicates", "unchanged")
        facts = [(name, str(getattr(self, name))) for name in names if getattr(self, name)]
        facts += [("missing", str(len(self.missing)))] if self.missing else []
        facts.append(("listened to", f"{clock(self.audio_s)} in {self.elapsed_s:.1f} s"))
        if self.cancelled:
            facts.append(("ended", "before its end"))
        failed = [(escaped(one.path.name), escaped(one.error)) for one in self.failed]
        return key_values(facts) + (table(failed, ("failed", "why")) if failed else "")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Whether a catalogue is whole.

    Attributes:
        problems: What is wrong with its database; empty where nothing is.
        damaged_segments: Files of the index that cannot be used. They were made anew.
        missing: Songs whose files are gone.
        stale: Songs that must be listened to again, by `rescan`: another release of polymux has
            described their sound.
    """

    problems: tuple[str, ...] = ()
    damaged_segments: tuple[str, ...] = ()
    missing: tuple[CatalogueSong, ...] = ()
    stale: tuple[CatalogueSong, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Nothing is wrong with what the catalogue keeps; files may be missing."""
        return not self.problems and not self.damaged_segments and not self.stale

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        told = "everything is as it should be" if self.is_whole else "something is wrong"
        rows = [("catalogue", told)]
        rows += [("problem", escaped(one)) for one in self.problems[:MAX_ROWS]]
        rows += [("index made anew", escaped(one)) for one in self.damaged_segments[:MAX_ROWS]]
        rows += _songs_html("missing", self.missing) + _songs_html(
            "to be listened to again", self.stale
        )
        return table(rows)


@dataclass(frozen=True, slots=True)
class CatalogueStatistics:
    """How much a catalogue holds.

    Attributes:
        songs: Files.
        recordings: Different recordings among them.
        groups: Groups of recordings that are the same to the ear.
        duration_s: Sound of all songs, in seconds.
        database_bytes: Size of the database.
        library: Which SQLite keeps it.
        index: Of the index: ``songs``, ``segments``, ``bytes``, ``memory_bytes``, ``postings``.
    """

    songs: int
    recordings: int
    groups: int
    duration_s: float
    database_bytes: int
    library: str
    index: dict[str, int] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return key_values(
            [
                ("songs", self.songs),
                ("recordings", self.recordings),
                ("groups", self.groups),
                ("length", clock(self.duration_s)),
                ("database", f"{size(self.database_bytes)}, {self.library}"),
                *((f"index, {name}", number) for name, number in self.index.items()),
            ]
        )


def _songs_html(words: str, songs: tuple[CatalogueSong, ...]) -> list[tuple[str, str]]:
    rows = [(words, escaped(one.name)) for one in songs[:MAX_ROWS]]
    if len(songs) > MAX_ROWS:
        rows.append((words, f"and {len(songs) - MAX_ROWS} more"))
    return rows
