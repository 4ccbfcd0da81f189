"""The recognizers: each has the index of a set, and identifies the bytes of an upload."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.song import chromaprint
from benchmarks.song.basis import Basis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux._native._media import SongIndex

    from benchmarks.song.song_set import SongSet


class Answer(NamedTuple):
    """The answer of a recognizer.

    Attributes:
        song: Name of the track that it reports, or None.
        score: Confidence in `first`: higher is more certain; the unit depends on the recognizer.
        first: The best candidate, reported or not, or None.
        basis: Inputs of the decision about `first`, if the recognizer reports them.
    """

    song: str | None
    score: float
    first: str | None
    basis: Basis | None = None


Recognize = Callable[[bytes], Answer]


def chromaprint_peer(songs: SongSet) -> Recognize:
    """Create Chromaprint's recognizer, which always names the position with the fewest bit
    errors."""
    index = chromaprint.Index({one.name: songs.folder / one.encoded for one in songs.indexed})

    def recognize(content: bytes) -> Answer:
        name, errors = index.nearest(content)
        return Answer(name, 1.0 - errors, name)

    return recognize


def ours(songs: SongSet) -> Recognize:
    """Create polymux's recognizer, with all tracks in memory and one track per song."""
    from polymux._native._media import Limits, SongIndex, fingerprint_song

    limits = Limits()
    names = [one.name for one in songs.indexed]
    index = SongIndex("")
    for number, one in enumerate(songs.indexed, 1):
        path = songs.folder / one.encoded
        made = fingerprint_song(("path", os.fsencode(path), path.name), None, limits, None)
        tracks = [(number, first, *rest) for first, *rest in made["parts"]]
        index.add(tracks, number)

    return core(index, names)


def core(index: SongIndex, names: Sequence[str]) -> Recognize:
    """Create the core's recognizer; the first name belongs to song 1 of the index, and so on."""
    from polymux._native._media import Limits, song_query

    limits = Limits()

    def recognize(content: bytes) -> Answer:
        asked = song_query(("bytes", content, "snippet"), limits)
        found = index.candidates(asked["query"])
        if not found:
            return Answer(None, -100.0, None)
        best = found[0]
        first = names[best["song_id"] - 1]
        basis = Basis.of(best, asked["duration_s"])
        return Answer(first if best["accepted"] else None, best["strength"], first, basis)

    return recognize


# Each is created once, before the worker processes start, and several processes use it at once.
RECOGNIZERS: dict[str, Callable[[SongSet], Recognize]] = {
    "chromaprint": chromaprint_peer,
    "polymux": ours,
}
