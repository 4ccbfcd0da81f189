"""Measure the cost of recognition: the table in benchmarks/NOTES.md.

The sounds are from a generated set. If more music is needed, its fingerprints are reused with all
peaks shifted in frequency and time. This keeps the number of peaks per second but changes their
pairs. Each figure says so.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import measure
from benchmarks.song import signals, snippets, text_search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.song.song_set import SongSet, Track

RATE_HZ = 8000
QUESTION_S = 5.0
FREQUENCIES = 1 << 12
#: 100 to 3,800 Hz in units of a peak's frequency: the range of shifted peaks.
LOWEST, HIGHEST = 103, 3890
Part = tuple[int, int, bytes, bytes]


class Sizes(NamedTuple):
    """Size of the runs.

    Attributes:
        hours: Length of the index for the queries.
        many_hours: Length of the index that is opened.
        questions: Queries that match, and the same number that do not.
        titles: Titles for the search by name.
        searches: Searches by name.
    """

    hours: float = 7.0
    many_hours: float = 300.0
    questions: int = 40
    titles: int = 100_000
    searches: int = 480


REDUCED = Sizes(2.0, 10.0, 8, 5_000, 60)


def cpu_s(act: Callable[[], Any], min_s: float = 0.3) -> float:
    """Return the minimum CPU seconds of several runs, because other processes only add time."""
    taken: list[float] = []
    while len(taken) < 3 or sum(taken) < min_s:
        began = time.process_time()
        act()
        taken.append(time.process_time() - began)
    return min(taken)


def listening(songs: SongSet) -> dict[str, Any]:
    """Measure fingerprinting alone, and decoding with and without fingerprinting, by codec."""
    from polymux._native._media import Limits, decode_pcm, fingerprint_song

    limits = Limits()

    def decoded(source: tuple[str, bytes, str]) -> float:
        return cpu_s(
            lambda: decode_pcm(source, RATE_HZ, 2, None, None, None, strict=False, limits=limits)
        )

    def heard(source: tuple[str, bytes, str]) -> float:
        return cpu_s(lambda: fingerprint_song(source, None, limits, None))

    ratios: dict[str, list[tuple[float, float]]] = {}
    for track in one_of_each(songs):
        path = songs.folder / track.encoded
        source = ("bytes", path.read_bytes(), path.name)
        ratios.setdefault(track.codec.partition("-")[0], []).append(
            (decoded(source), heard(source))
        )
    spent = [one for some in ratios.values() for one in some]
    # This sound needs no decoding or resampling, so only fingerprinting is measured.
    sound = signals.at_speed(minute_of(songs), signals.RATE_HZ / RATE_HZ)
    plain = ("bytes", signals.wav_bytes(signals.to_int16(sound), RATE_HZ), "plain.wav")
    alone_s = heard(plain) - decoded(plain)
    return {
        "speed": len(sound) / RATE_HZ / alone_s,
        "ratio": sum(one for one, _ in spent) / sum(both for _, both in spent),
        "ratio_by_codec": {
            codec: sum(one for one, _ in some) / sum(both for _, both in some)
            for codec, some in ratios.items()
        },
    }


def one_of_each(songs: SongSet) -> Iterator[Track]:
    """Yield three tracks of each codec."""
    count: dict[str, int] = {}
    for track in songs.indexed:
        count[track.codec] = count.get(track.codec, 0) + 1
        if count[track.codec] <= 3:
            yield track


def minute_of(songs: SongSet) -> signals.Sound:
    """Return five minutes of several songs, mono."""
    parts = [signals.from_int16(np.asarray(songs.master(one))) for one in songs.indexed[:8]]
    return np.concatenate(parts)[: 300 * signals.RATE_HZ]


def moved(peaks: bytes, frames: int, units: int) -> bytes:
    """Shift peaks by frames and by frequency units.

    Peaks above the band wrap around to its lower end.
    """
    found = np.frombuffer(peaks, "<u4")
    at = (found // FREQUENCIES).astype(np.int64)
    frequency = (found % FREQUENCIES).astype(np.int64)
    width = HIGHEST - LOWEST + 1
    frequency = (frequency - LOWEST + units) % width + LOWEST
    places = (at + frames) % (at.max(initial=0) + 1)
    return np.sort((places * FREQUENCIES + frequency).astype("<u4")).tobytes()


def fingerprints(songs: SongSet) -> tuple[list[list[Part]], float]:
    """Return the fingerprints of all songs of the set, and their total hours."""
    from polymux._native._media import Limits, fingerprint_song

    parts, seconds = [], 0.0
    for track in songs.indexed:
        path = songs.folder / track.encoded
        made = fingerprint_song(("path", os.fsencode(path), path.name), None, Limits(), None)
        parts.append(list(made["parts"]))
        seconds += made["duration_s"]
    return parts, seconds / 3600


def build(folder: Path, known: Sequence[Sequence[Part]], known_h: float, hours: float) -> float:
    """Build an index of at least `hours` hours and return its hours."""
    from polymux._native._media import SongIndex

    index = SongIndex(str(folder))
    number = rounds = 0
    while rounds == 0 or rounds * known_h < hours:
        for parts in known:
            number += 1
            units, frames = 37 * rounds, 11 * rounds
            index.add(
                [
                    (number, first, length, *(moved(one, frames, units) for one in peaks))
                    if rounds
                    else (number, first, length, *peaks)
                    for first, length, *peaks in parts
                ],
                number,
            )
        rounds += 1
    index.publish(number)
    return rounds * known_h


def asking(songs: SongSet, folder: Path, count: int) -> dict[str, Any]:
    """Measure the CPU time of a query: its peaks and the search."""
    from polymux._native._media import Limits, SongIndex, song_query

    index, limits = SongIndex(str(folder)), Limits()
    made = snippets.Snippets(songs)
    each = -(-count // len(songs.outside("song")))
    chosen = {
        "found": list(snippets.cells(songs, "inside", ["clean"], (QUESTION_S,), count))[:count],
        "not_found": list(snippets.outside(songs, "other songs", (QUESTION_S,), each))[:count],
    }
    taken: dict[str, list[float]] = {}
    named: dict[str, int] = {}
    for kind, cases in chosen.items():
        answers: list[Any] = []
        for case in cases:
            source = ("bytes", made.content(case), "question")

            def ask(source: Any = source, answers: list[Any] = answers) -> None:
                answers.append(index.identify(song_query(source, limits)["query"]))

            taken.setdefault(kind, []).append(1000 * cpu_s(ask, 0.0))
        named[kind] = sum(one is not None for one in answers)
    return {
        f"{kind}_ms": statistics.median(some) for kind, some in taken.items()
    } | {f"{kind}_named": named[kind] for kind in named} | {"questions": count}  # fmt: skip


_OPENING = """
import json, os, sys, time
from polymux._native._media import SongIndex
def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
SongIndex(sys.argv[2])
before, began = resident_bytes(), time.perf_counter()
index = SongIndex(sys.argv[1])
taken_s = time.perf_counter() - began
print(json.dumps({"open_ms": 1000 * taken_s, "open_rss_bytes": resident_bytes() - before}))
"""


def opening(folder: Path, empty: Path) -> dict[str, float]:
    """Measure the time and memory that a new process needs to open an index."""
    runs = [
        json.loads(measure.run([sys.executable, "-c", _OPENING, str(folder), str(empty)]).stdout)
        for _ in range(5)
    ]
    return {name: statistics.median(one[name] for one in runs) for name in runs[0]}


def run(songs: SongSet, sizes: Sizes) -> dict[str, Any]:
    """Measure everything."""
    known, known_h = fingerprints(songs)
    found: dict[str, Any] = {"set": songs.folder.name, "set_hours": known_h}
    found["listening"] = listening(songs)
    with tempfile.TemporaryDirectory() as home:
        some, many, empty = (Path(home) / name for name in ("some", "many", "empty"))
        found["hours"] = build(some, known, known_h, sizes.hours)
        size = sum(one.stat().st_size for one in some.iterdir())
        found["index_mb_per_hour"] = size / 1e6 / found["hours"]
        found["asking"] = asking(songs, some, sizes.questions)
        found["many_hours"] = build(many, known, known_h, sizes.many_hours)
        found["opening"] = opening(many, empty)
    found["text"] = text_search.run(sizes.titles, sizes.searches, songs.seed)
    found["machine"] = measure.machine()
    found["load"] = measure.load_average()
    return found


def table(found: dict[str, Any]) -> str:
    """Return the table of benchmarks/NOTES.md."""
    listened, asked, text = found["listening"], found["asking"], found["text"]
    codecs = ", ".join(f"{name} {one:.2f}" for name, one in listened["ratio_by_codec"].items())
    opened = found["opening"]
    rows = [
        ("fingerprint alone, one core", f"{listened['speed']:,.0f} x real time", "1,500 x"),
        ("decoding to 8 kHz alone against decoding and fingerprint",
         f"{listened['ratio']:.2f} ({codecs})", "0.65"),
        (f"a question of 5 s in {found['hours']:.0f} h, found", f"{asked['found_ms']:.1f} ms CPU",
         "8 ms"),
        ("not found", f"{asked['not_found_ms']:.1f} ms CPU", "40 ms"),
        ("index of segments", f"{found['index_mb_per_hour']:.2f} MB/h", "1.5 MB/h"),
        (f"opening {found['many_hours']:.0f} h (fingerprints used again, moved)",
         f"{opened['open_ms']:.1f} ms, {opened['open_rss_bytes'] / 1e6:.1f} MB", "50 ms, 60 MB"),
        (f"search by name in {text['titles']:,} titles",
         f"{text['found']} of {text['queries']} found, {text['median_ms']:.1f} ms CPU, "
         f"95th percentile {text['p95_ms']:.1f}, worst {text['worst_ms']:.1f}", "all, 5 ms"),
    ]  # fmt: skip
    lines = ["| cost | measured | goal |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
