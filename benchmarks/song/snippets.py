"""The snippets of a set: their list, and the bytes of each, the same in every run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.song import containers
from benchmarks.song.conditions import (
    AFTER_S,
    BEFORE,
    BY_NAME,
    COMBINED,
    CONDITIONS,
    Studio,
)
from benchmarks.song.signals import (
    RATE_HZ,
    Sound,
    fitted,
    from_int16,
    generator,
    power,
    to_int16,
    unclipped,
    wav_bytes,
)
from benchmarks.song.song_set import SongSet, Track, cut
from benchmarks.song.tracks import edited

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LENGTHS_S = (2.0, 5.0, 10.0)
OTHER_LENGTHS_S = (1.5, 3.0, 7.0, 20.0, 45.0)
AT_OTHER_LENGTHS = ("clean", "pink 0 dB", "babble 0 dB", "microphone near", "speed +3 %")
OUTSIDE = {"other songs": "song", "live": "live", "loop": "loop", "siblings": "sibling"}
# Conditions for snippets from outside the index: matching a clean one is as wrong as matching a
# noisy one.
OUTSIDE_CONDITIONS = ("clean", "MP3 64k", "pink +5 dB", "microphone near")


@dataclass(frozen=True)
class Case:
    """A snippet.

    Attributes:
        kind: `inside`, `container`, a key of OUTSIDE, `junk` or `broken`.
        condition: Row of the table; for junk and broken uploads their name.
        seconds: Length.
        number: Distinguishes snippets that are otherwise equal.
        track: Track that it is cut from, or empty.
    """

    kind: str
    condition: str
    seconds: float
    number: int
    track: str

    @property
    def name(self) -> str:
        """Unique name within the set, usable as a file name."""
        words = f"{self.kind} {self.condition} {self.seconds:g}s {self.number}"
        return "".join(c if c.isalnum() or c in "+-." else "_" for c in words)


def cells(
    songs: SongSet, kind: str, conditions: Sequence[str], lengths_s: Sequence[float], count: int
) -> Iterator[Case]:
    """Yield `count` snippets of the index for each condition and length."""
    for condition in conditions:
        for seconds in lengths_s:
            needed = (seconds * 1.06 + 2.5) if condition != "edit" else (seconds + 2.5) / 0.6
            long_enough = [one for one in songs.indexed if one.seconds > needed]
            if condition == "edit":
                long_enough = [one for one in long_enough if one.relation != "edit"]
            for number in range(count if long_enough else 0):
                random = generator(songs.seed, "track", kind, condition, repr(seconds), number)
                chosen = long_enough[int(random.integers(len(long_enough)))]
                yield Case(kind, condition, seconds, number, chosen.name)


def outside(songs: SongSet, kind: str, lengths_s: Sequence[float], each: int) -> Iterator[Case]:
    """Yield `each` snippets of every track of a kind outside the index."""
    for place, track in enumerate(songs.outside(OUTSIDE[kind])):
        for seconds in lengths_s:
            for number in range(each):
                condition = OUTSIDE_CONDITIONS[number % len(OUTSIDE_CONDITIONS)]
                yield Case(kind, condition, seconds, place * each + number, track.name)


def full(songs: SongSet, each: int = 40) -> list[Case]:
    """Return the full list: all conditions at 2, 5 and 10 s, other lengths, containers, and
    snippets that must not match.

    Args:
        songs: The set.
        each: Snippets per condition and length; half of that for conditions outside the table.
    """
    table = [one.name for one in CONDITIONS]
    beside = [one.name for one in COMBINED]
    found = list(cells(songs, "inside", table, LENGTHS_S, each))
    found += cells(songs, "inside", beside, LENGTHS_S, each // 2)
    found += cells(songs, "inside", AT_OTHER_LENGTHS, OTHER_LENGTHS_S, each // 2)
    found += cells(songs, "container", list(containers.CONTAINERS), (5.0, 10.0), each // 4)
    for kind in OUTSIDE:
        found += outside(songs, kind, LENGTHS_S, 4)
    return found + junk(LENGTHS_S, 2) + broken()


def reduced(songs: SongSet, each: int = 8) -> list[Case]:
    """Return the core conditions at 2, 5 and 10 s, a container of each kind, and snippets that
    must not match."""
    core = [one.name for one in CONDITIONS if one.core]
    found = list(cells(songs, "inside", core, LENGTHS_S, each))
    found += cells(songs, "container", list(containers.CONTAINERS), (5.0,), 1)
    for kind in OUTSIDE:
        found += outside(songs, kind, LENGTHS_S, 2 if kind == "other songs" else 4)
    return found + junk((5.0,), 1) + broken()


def junk(lengths_s: Sequence[float], each: int) -> list[Case]:
    """Return sounds that are not music."""
    return [
        Case("junk", name, seconds, number, "")
        for name in containers.JUNK
        for seconds in lengths_s
        for number in range(each)
    ]


def broken() -> list[Case]:
    """Return uploads without sound."""
    return [Case("broken", name, 0.0, 0, "") for name in containers.BROKEN]


class Snippets:
    """Makes the snippets of a set.

    Args:
        songs: The set.
        kept: Folder that caches the snippets between runs; None makes them each time.
    """

    def __init__(self, songs: SongSet, kept: Path | None = None) -> None:
        self.songs = songs
        self.kept = kept
        if kept is not None:
            kept.mkdir(parents=True, exist_ok=True)

    def content(self, case: Case) -> bytes:
        """Return the bytes of the upload: a WAV, except for containers and broken uploads."""
        if self.kept is None:
            return self.packed(case)[0]
        path = self.kept / case.name
        if not path.exists():
            partly = path.with_name(f"{path.name}.{os.getpid()}.partly")
            partly.write_bytes(self.packed(case)[0])
            partly.replace(path)
        return path.read_bytes()

    def write(self, case: Case, folder: Path) -> Path:
        """Write the upload to a folder, with a matching extension, and return its path."""
        content, ending = self.packed(case)
        path = folder / f"{case.name}.{ending}"
        path.write_bytes(content)
        return path

    def packed(self, case: Case) -> containers.Packed:
        """Return the bytes of the upload and its extension."""
        parts = (case.kind, case.condition, repr(case.seconds), case.number)
        random = generator(self.songs.seed, "snippet", *parts)
        if case.kind == "junk":
            return containers.junk_bytes(random, case.condition, case.seconds), "wav"
        if case.kind == "broken":
            return containers.BROKEN[case.condition](random, np.zeros((2000, 2), np.int16))
        if case.kind == "container":
            return containers.CONTAINERS[case.condition](random, self.stereo(random, case))
        return wav_bytes(to_int16(self.sound(random, case))), "wav"

    def stereo(self, random: np.random.Generator, case: Case) -> containers.Samples:
        """Return an unchanged stereo piece of the master."""
        track = self.songs.by_name[case.track]
        frames = round(case.seconds * RATE_HZ)
        start = self.start(random, track, 0, frames)
        piece = np.asarray(self.songs.master(track)[start : start + frames])
        return np.ascontiguousarray(piece if piece.shape[1] == 2 else piece.repeat(2, axis=1))

    def sound(self, random: np.random.Generator, case: Case) -> Sound:
        """Return a piece of the master with the condition's changes."""
        track = self.songs.by_name[case.track]
        condition = BY_NAME[case.condition]
        frames = round((case.seconds * condition.stretch + AFTER_S) * RATE_HZ)
        if condition.family == "edit":
            whole = edited(random, from_int16(np.asarray(self.songs.master(track))))
            first = int(random.integers(BEFORE, len(whole) - frames - RATE_HZ))
            piece = whole[first - BEFORE : first + frames]
        else:
            first = self.start(random, track, BEFORE, frames)
            piece = cut(self.songs, track, first - BEFORE, BEFORE + frames)
        changed = condition.change(Studio(self.songs, random), piece)
        return unclipped(fitted(changed, round(case.seconds * RATE_HZ)))

    def start(self, random: np.random.Generator, track: Track, before: int, frames: int) -> int:
        """Return the start of a snippet, at a random place that is not nearly silent."""
        last = int(track.seconds * RATE_HZ) - frames - RATE_HZ
        best, most = before, -1.0
        for _ in range(12):
            first = int(random.integers(before, last))
            heard = share_heard(cut(self.songs, track, first, frames))
            if heard > 0.6:
                return first
            if heard > most:
                best, most = first, heard
        return best


def share_heard(sound: Sound) -> float:
    """Return the share of tenths of a second that are louder than -50 dB."""
    tenth = RATE_HZ // 10
    blocks = sound[: len(sound) // tenth * tenth].reshape(-1, tenth)
    levels = np.sqrt(np.mean(np.square(blocks), axis=1))
    return float(np.mean(levels > 0.003)) if power(sound) else 0.0
