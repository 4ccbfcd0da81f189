"""Accuracy of the decision on your own library: snippets of its files, some of them held out."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import polymux

from benchmarks.song import confidences, media, report, scorer, signals
from benchmarks.song.recognizers import core
from benchmarks.song.signals import RATE_HZ, Sound
from benchmarks.song.snippets import LENGTHS_S, Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from polymux._native._media import SongIndex

HELD_OUT = 0.25
MIN_S = 1.5 * max(LENGTHS_S)
# The same names and changes as in the generated sets, but rooms have no sound before the snippet.
CHANGES: dict[str, Callable[[Any, Sound], Sound]] = {
    "clean": lambda _, sound: sound,
    "pink +5 dB": lambda random, sound: noisy(random, sound, 3.0, 5.0),
    "pink 0 dB": lambda random, sound: noisy(random, sound, 3.0, 0.0),
    "white 0 dB": lambda random, sound: noisy(random, sound, 0.0, 0.0),
    "MP3 64k": lambda _, sound: media.recoded(sound, "mp3", "-c:a", "libmp3lame", "-b:a", "64k"),
    "reverberation 0.8 s": lambda random, sound: signals.room(random, sound, 0.8, -2.0),
}


def noisy(random: Any, sound: Sound, slope_db: float, ratio_db: float) -> Sound:
    """Add noise with this spectral slope."""
    return signals.mixed_at(sound, signals.noise(random, len(sound), slope_db), ratio_db)


@dataclass(frozen=True)
class Recording:
    """A file of the library.

    Attributes:
        name: Path below the folder.
        path: The file.
        duration_s: Decoded duration.
        parts: Fingerprint for `SongIndex.add`, without the song's number.
        group: Name of the first file that contains the same recording.
        style: Unknown.
    """

    name: str
    path: Path
    duration_s: float
    parts: Sequence[Any]
    group: str = ""
    style: str = ""


class Settings(NamedTuple):
    """Size and seed of the test.

    Attributes:
        files: Maximum number of files, drawn by the seed.
        each: Snippets per file and length; consecutive snippets get different kinds of damage.
        seed: Decides the files, which ones are held out, and where snippets start.
    """

    files: int = 200
    each: int = 2
    seed: int = 1


class Library:
    """A folder of music with some recordings held out of the song index.

    Args:
        folder: Folder that is searched for music files of 15 s or more.
        settings: Size and seed.

    Raises:
        ValueError: There are fewer than two recordings, so none can be held out.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.seed = settings.seed
        files = sorted(one for one in folder.rglob("*") if one.is_file())
        random = signals.generator(settings.seed, "files")
        chosen = [files[place] for place in random.permutation(len(files))[: settings.files]]
        with ThreadPoolExecutor(2) as pool:
            heard = pool.map(lambda path: listened(path, str(path.relative_to(folder))), chosen)
            self.recordings = grouped([one for one in heard if one is not None])
        self.by_name = {one.name: one for one in self.recordings}
        groups = list(dict.fromkeys(one.group for one in self.recordings))
        if len(groups) < 2:
            raise ValueError(f"{folder} has {len(groups)} recordings of {MIN_S:g} s or more; "
                             "two are needed, one of them held out of the index")  # fmt: skip
        count = max(1, round(HELD_OUT * len(groups)))
        self.held_out = {groups[place] for place in random.permutation(len(groups))[:count]}

    @property
    def songs(self) -> Library:
        """The source of the snippets."""
        return self

    def index(self) -> tuple[SongIndex, list[str]]:
        """Return the index of all recordings that are not held out, and the names of its songs."""
        known = [one for one in self.recordings if one.group not in self.held_out]
        return indexed(known), [one.name for one in known]

    def cases(self, each: int) -> Iterator[Case]:
        """Yield the snippets."""
        conditions = list(CHANGES)
        number = 0
        for one in self.recordings:
            kind = "other songs" if one.group in self.held_out else "inside"
            for seconds in LENGTHS_S:
                for _ in range(each):
                    yield Case(
                        kind, conditions[number % len(conditions)], seconds, number, one.name
                    )
                    number += 1

    def content(self, case: Case) -> bytes:
        """Return a changed piece of the file as a WAV."""
        known = self.by_name[case.track]
        random = signals.generator(self.seed, "snippet", case.track, case.number)
        begin_s = random.uniform(0.0, known.duration_s - case.seconds - 0.5)
        raw = media.ffmpeg(
            "-ss", f"{begin_s:.3f}", "-t", f"{case.seconds + 0.25}", "-i", known.path, "-vn",
            "-ar", str(RATE_HZ), "-ac", "1", "-f", "s16le", "pipe:1",
        )  # fmt: skip
        changed = CHANGES[case.condition](random, media.decoded_samples(raw))
        exact = signals.fitted(changed, round(case.seconds * RATE_HZ))
        return signals.wav_bytes(signals.to_int16(signals.unclipped(exact)))


def listened(path: Path, name: str) -> Recording | None:
    """Return a file's recording, or None if it is not music or too short to cut."""
    from polymux._native._media import Limits, fingerprint_song

    try:
        made = fingerprint_song(("path", os.fsencode(path), path.name), None, Limits(), None)
    except polymux.PolymuxError as error:
        print(f"left out: {error}", file=sys.stderr)
        return None
    if made["duration_s"] < MIN_S:
        print(f"left out: {name} is only {made['duration_s']:.1f} s long", file=sys.stderr)
        return None
    return Recording(name, path, made["duration_s"], made["parts"])


def indexed(recordings: Sequence[Recording]) -> SongIndex:
    """Return an index in memory, with the first recording as song 1."""
    from polymux._native._media import SongIndex

    index = SongIndex("")
    for number, one in enumerate(recordings, 1):
        index.add([(number, first, *rest) for first, *rest in one.parts], number)
    return index


def grouped(recordings: Sequence[Recording]) -> list[Recording]:
    """Set the groups: copies of the same recording must be held out together or not at all."""
    index = indexed(recordings)
    groups: dict[str, str] = {}
    for one in recordings:
        _, frames, *peaks = one.parts[0]
        same = [recordings[number - 1].name for number in index.same_recordings(frames, *peaks)]
        known = [groups[name] for name in same if name in groups]
        groups[one.name] = known[0] if known else one.name
    return [
        Recording(one.name, one.path, one.duration_s, one.parts, groups[one.name])
        for one in recordings
    ]


def run(folder: Path, settings: Settings, kept: Path) -> str:
    """Recognize the library's snippets, save the rows, and return the accuracy of the
    confidences."""
    library = Library(folder, settings)
    index, names = library.index()
    rows = scorer.score(library, core(index, names), list(library.cases(settings.each)), kept)
    held = len(library.recordings) - len(names)
    return "\n".join([
        f"{len(names)} files in the index, {held} held out, {len(rows)} snippets:\n",
        *report.by_condition(rows, {})[:-1],
        "",
        *confidences.bins(rows),
        "",
        *confidences.choices(rows),
    ])  # fmt: skip
