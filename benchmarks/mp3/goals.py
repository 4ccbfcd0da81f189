"""The goals and whether the results meet them. An invalid result never meets a goal."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.measure import Spread
from benchmarks.mp3 import cases, clips
from benchmarks.mp3.cases import NEWEST_FFMPEG, REFERENCE, TWO_THREADS_RIVAL
from benchmarks.mp3.figures import objection, ratio, table, wrong
from benchmarks.mp3.memory import with_long_conversions
from benchmarks.mp3.peers.polymux import FAST, ONE_THREAD, OURS

#: Case to the minimum speed relative to ffmpeg.
SPEED = {
    cases.HOUR_CBR: 1.95,
    cases.WAV_CBR: 1.9,
    cases.MP4_CBR: 1.9,
    cases.WAV_V2: 1.8,
    cases.MP4_V2: 1.8,
}
FAST_SPEED = {cases.WAV_CBR: 3.8, cases.MP4_CBR: 3.8}
NEWEST_FFMPEG_SPEED = {
    cases.WAV_CBR: 1.6,
    cases.MP4_CBR: 1.6,
    cases.WAV_V2: 1.6,
    cases.MP4_V2: 1.6,
}
CLIPS_SPEED = {clips.OF_ONE_SECOND: 8.0, clips.OF_FIVE_SECONDS: 3.5}
LIBRARY_SPEED = 1.8
LIBRARIES = {
    "torchcodec": (cases.WAV_CBR,),
    "pydub": (cases.WAV_CBR, cases.WAV_V2),
    "pedalboard": (cases.WAV_CBR, cases.WAV_V2),
}
TWO_THREADS_RIVAL_TIME = 1.1
TWO_THREADS_RIVAL_SAVING_PERCENT = 8.0
#: CPU time on two threads relative to ffmpeg's.
PARALLEL_CPU = {cases.HOUR_CBR: 1.03, cases.TEN_MINUTES_CBR: 1.03, cases.TEN_MINUTES_V2: 1.05}
SEQUENTIAL_CPU = {
    cases.WAV_CBR: 1.0,
    cases.WAV_V2: 1.0,
    cases.MP4_CBR: 1.0,
    cases.MP4_V2: 1.0,
}
SEQUENTIAL_MEMORY_MB = 60.0
PARALLEL_MEMORY_MB = 250.0

Row = tuple[str, str, str, str]
Conversions = Mapping[str, Mapping[str, Any]]


def verdict(*, met: bool) -> str:
    """Return the last cell of a row."""
    return "yes" if met else "**no**"


def at_least(name: str, goal: float, than: str, found: Spread) -> Row:
    wanted = f"at least {goal:g}x as fast as {than}"
    return (name, wanted, f"{found}x", verdict(met=found.median >= goal))


def at_most(name: str, goal: float, what: str, found: Spread) -> Row:
    return (name, f"at most {goal:g}x {what}", f"{found}x", verdict(met=found.median <= goal))


def pair(
    conversions: Conversions, case: str, ours: str, theirs: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return two contenders of a case, or None if one was not measured."""
    entries = conversions.get(case, {})
    return (entries[ours], entries[theirs]) if ours in entries and theirs in entries else None


def against_ffmpeg(
    conversions: Conversions, goals: Mapping[str, float], ours: str, theirs: str
) -> Iterator[Row]:
    """Return rows for the speed of whole processes."""
    for case, goal in goals.items():
        if found := pair(conversions, case, ours, theirs):
            name = case if ours == OURS else f"{ours}, {case}"
            problem = wrong(found[0]) or objection(found[1])
            if problem:
                yield (name, f"at least {goal:g}x as fast as {theirs}", problem, verdict(met=False))
                continue
            times = ratio(found[1]["rounds"], found[0]["rounds"], "wall_s")
            yield at_least(name, goal, theirs, times)


def against_libraries(conversions: Conversions) -> Iterator[Row]:
    """Return rows for the speed of both without process start and imports."""
    for library, titles in LIBRARIES.items():
        for case in titles:
            if found := pair(conversions, case, OURS, library):
                than = f"{library}, without start and imports"
                if problem := wrong(found[0]) or objection(found[1]):
                    wanted = f"at least {LIBRARY_SPEED:g}x as fast as {than}"
                    yield (case, wanted, problem, verdict(met=False))
                    continue
                times = ratio(found[1]["rounds"], found[0]["rounds"], "wall_s", "inside", "inside")
                yield at_least(case, LIBRARY_SPEED, than, times)


def against_two_threads(conversions: Conversions) -> Iterator[Row]:
    """Return rows for size and time, without process start and imports, against the other
    converter with two threads."""
    case, rival = cases.WAV_V2, TWO_THREADS_RIVAL
    if not (found := pair(conversions, case, OURS, rival)):
        return
    ours, theirs = found
    wanted = (
        f"at least {TWO_THREADS_RIVAL_SAVING_PERCENT:g} % smaller than pedalboard's on two threads"
    )
    if problem := wrong(ours) or objection(theirs):
        yield (f"{case}: size", wanted, problem, verdict(met=False))
        return
    saving = 100 * (1 - ours["bytes"] / theirs["bytes"])
    met = verdict(met=saving >= TWO_THREADS_RIVAL_SAVING_PERCENT)
    yield (f"{case}: size", wanted, f"{saving:.1f} %", met)
    what = "pedalboard's time on two threads, without start and imports"
    times = ratio(ours["rounds"], theirs["rounds"], "wall_s", "inside", "inside")
    yield at_most(f"{case}: time", TWO_THREADS_RIVAL_TIME, what, times)


def cpu(conversions: Conversions, goals: Mapping[str, float], ours: str) -> Iterator[Row]:
    """Return rows for the CPU seconds of whole processes."""
    for case, goal in goals.items():
        if found := pair(conversions, case, ours, REFERENCE):
            name = f"{ours}, {case}: CPU"
            if problem := wrong(found[0]):
                yield (name, f"at most {goal:g}x ffmpeg's", problem, verdict(met=False))
                continue
            times = ratio(found[0]["rounds"], found[1]["rounds"], "cpu_s")
            yield at_most(name, goal, "ffmpeg's", times)


def many_clips(results: Mapping[str, Any]) -> Iterator[Row]:
    """Return rows for the clips, by kind and length."""
    for kind, entries in results.get("clips", {}).items():
        goal = CLIPS_SPEED.get(kind.partition(",")[0])
        if goal is None:
            continue
        ours, theirs = entries[clips.MANY], entries[clips.IN_TURN]
        name, than = f"200 clips {kind}", "one ffmpeg each"
        if ours["error"] or theirs["error"] or ours["differing"]:
            reason = ours["error"] or theirs["error"] or f"{ours['differing']} files differ"
            yield (name, f"at least {goal:g}x as fast as {than}", reason, verdict(met=False))
            continue
        yield at_least(name, goal, than, ratio(theirs["rounds"], ours["rounds"], "wall_s"))


def memory(results: Mapping[str, Any]) -> Iterator[Row]:
    """Return rows for peak memory, by number of threads."""
    hour = results.get("long", {}).get(cases.HOUR_CBR, {})
    peaks = with_long_conversions(results.get("memory", {}), hour)
    for title, entries in peaks.items():
        for name, cell in entries.items():
            if name == REFERENCE:
                continue
            goal_mb = PARALLEL_MEMORY_MB if name == OURS else SEQUENTIAL_MEMORY_MB
            shown = f"{OURS}, two threads" if name == OURS else name
            peak_mb = cell.get("peak_rss_bytes", float("inf")) / 1e6
            met = verdict(met=peak_mb <= goal_mb)
            measured = cell.get("error") or f"{peak_mb:.1f} MB"
            yield (f"{shown}, {title}: memory", f"at most {goal_mb:g} MB", measured, met)


def goals_table(results: Mapping[str, Any]) -> list[str]:
    """Return every goal whose part has been measured."""
    conversions = {**results.get("conversions", {}), **results.get("long", {})}
    rows = [
        *against_ffmpeg(conversions, SPEED, OURS, REFERENCE),
        *against_ffmpeg(conversions, FAST_SPEED, FAST, REFERENCE),
        *against_ffmpeg(conversions, NEWEST_FFMPEG_SPEED, OURS, NEWEST_FFMPEG),
        *against_libraries(conversions),
        *against_two_threads(conversions),
        *many_clips(results),
        *cpu(conversions, PARALLEL_CPU, OURS),
        *cpu(conversions, SEQUENTIAL_CPU, ONE_THREAD),
        *memory(results),
    ]
    return table(("goal", "wanted", "measured", "met"), rows)
