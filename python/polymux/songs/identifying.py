"""From what the index finds to the song that is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.songs.results import Match, RunnerUp

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.songs.index import CatalogueIndex
    from polymux.songs.results import CatalogueSong
    from polymux.songs.table import SongTable

#: Recordings that are removed while they are found.
_MOST_TRIES = 5


def identify_query(
    index: CatalogueIndex,
    table: SongTable,
    query: bytes,
    go_on: Callable[[], object] | None = None,
) -> Match | None:
    """Names the song that described sound is of; None where the catalogue has none.

    Args:
        index: Is asked.
        table: Of its songs.
        query: What the native ``song_query`` has made.
        go_on: Called now and then meanwhile; what it raises ends the search. Default: none.
    """
    gone: list[int] = []
    for _ in range(_MOST_TRIES):
        found = index.current().identify(query, gone, go_on)
        if found is None:
            return None
        song = _song(table, found["song_id"])
        if song is not None:
            return _match(table, found, song)
        gone.append(found["song_id"])
    return None


def _song(table: SongTable, recording: int) -> CatalogueSong | None:
    """The song of a recording that is known longest: the same at each time it is found."""
    rows = table.of_recording(recording)
    return rows[0].song() if rows else None


def _match(table: SongTable, found: dict[str, Any], song: CatalogueSong) -> Match:
    second = found["runner_up"]
    runner_up = None
    if second is not None:
        other = _song(table, second["song_id"])
        if other is not None and other.group_id != song.group_id:
            runner_up = RunnerUp(other, second["confidence"])
    return Match(
        song,
        found["offset_s"],
        found["tempo"] if found["change"] == "speed" else 1.0,
        found["tempo"],
        found["pitch"],
        found["confidence"],
        runner_up,
    )
