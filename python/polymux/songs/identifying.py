"""From what the index finds to the song that is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.media.inputs import native_source
from polymux.media.options import native_limits
from polymux.songs.results import Match, RunnerUp

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.media.inputs import Source
    from polymux.media.options import Limits
    from polymux.songs.index import CatalogueIndex
    from polymux.songs.results import CatalogueSong
    from polymux.songs.table import SongTable

#: Recordings that are removed while they are found.
_MAX_TRIES = 5


def query_of(source: Source, limits: Limits | None) -> bytes:
    """What a piece of sound is asked for by.

    Raises:
        PolymuxError: It cannot be opened.
    """
    native, checked = native_source(source), native_limits(limits)
    from polymux._native.media import media

    found: bytes = media.song_query(native, checked)["query"]
    return found


def identify_query(
    index: CatalogueIndex,
    table: SongTable,
    query: bytes,
    go_on: Callable[[], object] | None = None,
    min_confidence: float | None = None,
) -> Match | None:
    """Names the song that described sound is of; None where the catalogue has none.

    Args:
        index: Is asked.
        table: Of its songs.
        query: What the native ``song_query`` has made.
        go_on: Called now and then meanwhile; what it raises ends the search. Default: none.
        min_confidence: Of the song that is named. Default: the core's own.
    """
    gone: list[int] = []
    for _ in range(_MAX_TRIES):
        found = index.current().identify(query, gone, go_on, min_confidence)
        if found is None:
            return None
        song = _song(table, found["song_id"])
        if song is not None:
            return _match(table, found, song)
        gone.append(found["song_id"])
    return None


def _song(table: SongTable, recording: int) -> CatalogueSong | None:
    """The song of a recording's group that is known longest.

    Which of several files of one recording a noisy snippet is most like is chance; the song that is
    named shall be the same each time.
    """
    row = table.first_like(recording)
    return None if row is None else row.song()


def _runner_up(
    table: SongTable, others: list[dict[str, Any]], song: CatalogueSong
) -> RunnerUp | None:
    """The best of what is no other file of the same recording."""
    for found in others:
        other = _song(table, found["song_id"])
        if other is not None and other.group_id != song.group_id:
            return RunnerUp(other, found["confidence"])
    return None


def _match(table: SongTable, found: dict[str, Any], song: CatalogueSong) -> Match:
    return Match(
        song,
        found["offset_s"],
        found["tempo"] if found["change"] == "speed" else 1.0,
        found["tempo"],
        found["pitch"],
        found["confidence"],
        _runner_up(table, found["others"], song),
    )
