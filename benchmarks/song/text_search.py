"""Search by name among many titles: the share of queries that find their song, and the time they
take.

``python -m benchmarks.song.text_search [TITLES [QUERIES [SEED]]]``
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
from polymux.songs.database import Database
from polymux.songs.table import FileState, SongTable
from polymux.songs.tags import SongTags

from benchmarks.song import names, text_queries

if TYPE_CHECKING:
    from collections.abc import Sequence


def fill(folder: Path, songs: Sequence[text_queries.Song]) -> None:
    """Fill a song index with names only, without audio."""
    folder.mkdir(parents=True)
    database = Database(folder / "songs.sqlite3")
    table = SongTable(database)
    try:
        with database.transaction():
            recording = table.add_recording([], 0.0, 0)
            for song in songs:
                tags = SongTags(song.title, song.artist, "", None, "", None)
                path = os.fsencode(f"/music/{song.key}")
                table.add(path, FileState(0, 0), b"", tags, recording, None)
    finally:
        database.close()


def run(titles: int, count: int, seed: int) -> dict[str, Any]:
    """Create a song index, run the queries, and return the figures."""
    tags = names.tags(seed, titles)
    songs = [text_queries.Song(str(n), one.title, one.artist) for n, one in enumerate(tags)]
    missed: list[dict[str, Any]] = []
    taken_ms: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "index"
        fill(home, songs)
        with polymux.SongIndex(home) as index:
            index.search("warm")
            for query in text_queries.queries(seed, songs, count):
                began = time.thread_time()
                found = index.search(query.text, text_queries.FOUND_WITHIN)
                taken_ms[query.kind].append(1000 * (time.thread_time() - began))
                if not query.expected & {one.path.name for one in found}:
                    wanted = songs[int(min(query.expected, key=int))]
                    first = [one.name for one in found[:3]]
                    missed.append({"text": query.text, "kind": query.kind,
                                   "wanted": f"{wanted.title} - {wanted.artist}",
                                   "found": first})  # fmt: skip
            for text in text_queries.HOSTILE:
                try:
                    index.search(text)
                except polymux.InvalidRequestError as error:
                    print("refused:", str(error)[:60], file=sys.stderr)
    every = sorted(one for some in taken_ms.values() for one in some)
    return {
        "titles": titles, "queries": count, "found": count - len(missed), "missed": missed,
        "median_ms": statistics.median(every), "p95_ms": every[int(0.95 * len(every))],
        "worst_ms": every[-1],
        "median_ms_by_kind": {kind: statistics.median(some) for kind, some in taken_ms.items()},
    }  # fmt: skip


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]] + [100_000, 480, 1][len(sys.argv) - 1 :]
    print(json.dumps(run(*given), indent=2, ensure_ascii=False))
