"""Who is asked: each knows a set's catalogue, and answers for the bytes of an upload."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.song import chromaprint
from benchmarks.song.basis import Basis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux._native._media import SongIndex

    from benchmarks.song.catalogue import SongSet


class Answer(NamedTuple):
    """What a recogniser says.

    Attributes:
        song: The name of the track that it stands for, or None.
        score: How sure it is of `first`: more is surer, of no particular unit.
        first: The track that it would name if it had to, or None.
        basis: What the decision about `first` was made of, where that can be told.
    """

    song: str | None
    score: float
    first: str | None
    basis: Basis | None = None


Recognise = Callable[[bytes], Answer]


def chromaprint_peer(songs: SongSet) -> Recognise:
    """Chromaprint: the catalogue's place with the least bit errors. It names one always."""
    index = chromaprint.Index({one.name: songs.folder / one.encoded for one in songs.catalogue})

    def recognise(content: bytes) -> Answer:
        name, errors = index.nearest(content)
        return Answer(name, 1.0 - errors, name)

    return recognise


def ours(songs: SongSet) -> Recognise:
    """Polymux: all tracks in memory, one track a song."""
    from polymux._native._media import Limits, SongIndex, fingerprint_song

    limits = Limits()
    names = [one.name for one in songs.catalogue]
    index = SongIndex("")
    for number, one in enumerate(songs.catalogue, 1):
        path = songs.folder / one.encoded
        made = fingerprint_song(("path", os.fsencode(path), path.name), None, limits, None)
        tracks = [(number, first, *rest) for first, *rest in made["parts"]]
        index.add(tracks, number)

    return core(index, names)


def core(index: SongIndex, names: Sequence[str]) -> Recognise:
    """The core: song 1 of the index has the first name, and so on."""
    from polymux._native._media import Limits, song_query

    limits = Limits()

    def recognise(content: bytes) -> Answer:
        asked = song_query(("bytes", content, "snippet"), limits)
        found = index.candidates(asked["query"])
        if not found:
            return Answer(None, -100.0, None)
        best = found[0]
        first = names[best["song_id"] - 1]
        basis = Basis.of(best, asked["duration_s"])
        return Answer(first if best["accepted"] else None, best["strength"], first, basis)

    return recognise


# Each is made once, before the processes that ask it, and is asked in several at once.
RECOGNISERS: dict[str, Callable[[SongSet], Recognise]] = {
    "chromaprint": chromaprint_peer,
    "polymux": ours,
}
