"""The results as Markdown: goals, then ratios, then seconds, then how it was measured."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.measure import Spread, spread
from benchmarks.mp3 import clips
from benchmarks.mp3.conversions import OURS, REFERENCE
from benchmarks.mp3.peers.base import Peer

CPU_GOAL = 1.03
CLIPS_GOAL = 7.0
MEMORY_GOAL_MB = 60.0
#: Encoders differ by a frame or two in how they pad the end; more is another piece of audio.
TOLERATED_FRAMES = 2
BEGIN = "<!-- measured by scripts/bench mp3: begin -->"
END = "<!-- measured by scripts/bench mp3: end -->"

Rounds = Sequence[Mapping[str, Any]]


def ratios(ours: Iterable[float], theirs: Iterable[float]) -> Spread:
    """Round by round, so that a slow minute of the machine touches both sides of a ratio."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def column(rounds: Rounds, key: str, part: str | None = None) -> list[float]:
    """One figure of every round, from the whole process or from its own account (`part`)."""
    return [float((one[part] if part and part in one else one)[key]) for one in rounds]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    rule = ["---", *["---:" for _ in header[1:]]]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def objection(entry: Mapping[str, Any]) -> str | None:
    """Why a converter's figures do not count: an error, or audio of another length."""
    if entry["error"]:
        return f"not measured: {entry['error']}"
    outcome = entry["identity"]
    if "problem" in outcome:
        return f"not counted: its file cannot be parsed: {outcome['problem']}"
    if abs(outcome["frames"] - outcome["expected"]) > TOLERATED_FRAMES:
        return f"not counted: {outcome['frames']:,} frames instead of {outcome['expected']:,}"
    return None


def frames_cell(entry: Mapping[str, Any]) -> str:
    """How a file's frames compare with ffmpeg's."""
    outcome = entry["identity"]
    if outcome["equal"]:
        return f"all {outcome['frames']:,}"
    return f"{outcome['same']:,} of {outcome['frames']:,}"


def conversion_table(entries: Mapping[str, Any]) -> list[str]:
    """One case of `conversions.measure`."""
    reference = entries[REFERENCE]["rounds"]
    rows = []
    for name, entry in entries.items():
        if problem := objection(entry):
            rows.append([name, problem, "", "", "", ""])
            continue
        rounds = entry["rounds"]
        rows.append(
            [
                name,
                str(ratios(column(rounds, "cpu_s"), column(reference, "cpu_s"))),
                str(ratios(column(rounds, "cpu_s", "inside"), column(reference, "cpu_s"))),
                str(ratios(column(rounds, "wall_s"), column(reference, "wall_s"))),
                f"{spread(column(rounds, 'cpu_s')).median:.2f}",
                frames_cell(entry),
            ]
        )
    header = (
        "converter",
        "CPU ÷ ffmpeg's, whole process",
        "CPU ÷ ffmpeg's, without start and imports",
        "time ÷ ffmpeg's, whole process",
        "CPU seconds",
        "frames equal to ffmpeg's",
    )
    return table(header, rows)


def clips_table(entries: Mapping[str, Any]) -> list[str]:
    """One kind of `clips.measure`."""
    reference = entries[clips.IN_TURN]["rounds"]
    parallel = entries[clips.TWO_AT_A_TIME]["rounds"]
    rows = []
    for name, entry in entries.items():
        if entry["error"]:
            rows.append([name, f"not measured: {entry['error']}", "", "", ""])
            continue
        rounds = entry["rounds"]
        wall_s = column(rounds, "wall_s")
        rows.append(
            [
                name,
                str(ratios(column(reference, "wall_s"), wall_s)),
                str(ratios(column(parallel, "wall_s"), wall_s)),
                str(ratios(column(rounds, "cpu_s"), column(reference, "cpu_s"))),
                f"{spread(wall_s).median:.2f}",
            ]
        )
    header = (
        "way",
        "times as fast as one ffmpeg each",
        "times as fast as two ffmpegs at a time",
        "CPU ÷ one ffmpeg each",
        "seconds",
    )
    return table(header, rows)


def megabytes(number: float) -> str:
    """Bytes as MB of 10^6."""
    return f"{number / 1e6:.1f}"


def memory_tables(memory: Mapping[str, Any]) -> list[str]:
    """Peaks, and where polymux's go."""
    names = list(dict.fromkeys(name for entries in memory.values() for name in entries))
    rows = []
    for title, entries in memory.items():
        cells = [entries.get(name, {}) for name in names]
        shown = [
            megabytes(cell["peak_rss_bytes"]) if "peak_rss_bytes" in cell else cell.get("error", "")
            for cell in cells
        ]
        rows.append([title, *shown])
    lines = table(("peak resident MB", *names), rows)
    breakdown = []
    for title, entries in memory.items():
        stages = entries.get(OURS, {}).get("stages")
        if stages:
            start, loaded, done = (stages[key] for key in ("start", "loaded", "done"))
            breakdown.append(
                [
                    title,
                    megabytes(start["peak"]),
                    megabytes(loaded["peak"] - start["peak"]),
                    megabytes(done["peak"] - loaded["peak"]),
                    f"{megabytes(done['anonymous'])} + {megabytes(done['file'])}",
                ]
            )
    header = (
        "polymux in Python, MB",
        "interpreter",
        "loading the module and its libraries",
        "converting",
        "at the end: own + mapped from files",
    )
    return [*lines, "", *table(header, breakdown)]


def instructions_table(counts: Mapping[str, Any]) -> list[str]:
    """One row per input of `instructions.measure`."""
    rows = []
    for title, entries in counts.items():
        ffmpeg, ours = entries["ffmpeg"], entries["polymux from C++"]
        if "error" in ffmpeg or "error" in ours:
            rows.append([title, str(ffmpeg.get("error") or ours.get("error")), "", ""])
            continue
        pair = (ffmpeg["instructions"], ours["instructions"])
        rows.append([title, f"{pair[1] / pair[0]:.3f}", *(f"{count / 1e6:.1f}" for count in pair)])
    return table(("input", "polymux ÷ ffmpeg", "ffmpeg, millions", "polymux, millions"), rows)


def goals_table(results: Mapping[str, Any]) -> list[str]:
    """Every goal with the worst of the figures it covers. A wrong answer never meets a goal."""
    rows = []
    for title, entries in results.get("conversions", {}).items():
        ours, theirs = entries[OURS], entries[REFERENCE]
        problem = objection(ours)
        if problem or not ours["identity"]["equal"]:
            reason = problem or f"only {frames_cell(ours)} frames equal"
            rows.append([f"{title}: CPU", f"at most {CPU_GOAL}x ffmpeg's", reason, "**no**"])
            continue
        found = ratios(column(ours["rounds"], "cpu_s"), column(theirs["rounds"], "cpu_s"))
        met = "yes" if found.median <= CPU_GOAL else "**no**"
        rows.append([f"{title}: CPU", f"at most {CPU_GOAL}x ffmpeg's", f"{found}x", met])
    for title, entries in results.get("clips", {}).items():
        name, ours, theirs = (
            f"200 clips of 1 s, {title}",
            entries[clips.MANY],
            entries[clips.IN_TURN],
        )
        goal = f"at least {CLIPS_GOAL:g}x as fast as one ffmpeg each"
        if ours["error"] or ours["differing"]:
            reason = ours["error"] or f"{ours['differing']} files differ"
            rows.append([name, goal, reason, "**no**"])
            continue
        found = ratios(column(theirs["rounds"], "wall_s"), column(ours["rounds"], "wall_s"))
        rows.append([name, goal, f"{found}x", "yes" if found.median >= CLIPS_GOAL else "**no**"])
    for title, entries in results.get("memory", {}).items():
        for name, cell in entries.items():
            if name != REFERENCE:
                peak_mb = cell.get("peak_rss_bytes", float("inf")) / 1e6
                met = "yes" if peak_mb <= MEMORY_GOAL_MB else "**no**"
                goal = f"at most {MEMORY_GOAL_MB:g} MB"
                rows.append([f"{name}, {title}: memory", goal, f"{peak_mb:.1f} MB", met])
    return table(("goal", "wanted", "measured", "met"), rows)


def circumstances(results: Mapping[str, Any], peers: Sequence[Peer]) -> list[str]:
    """Machine, build, versions, settings."""
    machine, build = results["machine"], results["build"]
    libraries = build.get("ffmpeg", {})
    facts = [
        f"version {build.get('version')}, {build.get('compiler')}",
        "private static FFmpeg and LAME" if build.get("private_deps") else "the system's libraries",
        f"FFmpeg {libraries.get('ffmpeg')} ({build.get('ffmpeg_license')})",
        *(f"{name} {version}" for name, version in libraries.items() if name != "ffmpeg"),
        str(build.get("lame")),
    ]
    rounds, priority = results["rounds"], "raised" if results["priority_raised"] else "normal"
    lines = [
        f"{results['date']}. {machine['processor']} ({machine['architecture']}), {machine['cores']}"
        f" cores, {machine['memory_gib']} GiB, {machine['kernel']}, Python {machine['python']}."
        f" {rounds} rounds at {priority} priority. Load average before and after: "
        + "; ".join(
            f"{section} {load[0]:.1f} and {load[1]:.1f}"
            for section, load in results["load"].items()
        )
        + ".",
        "",
        f"polymux as built: {', '.join(facts)}.",
        "",
    ]
    rows = [[peer.name, results["versions"].get(peer.name, ""), peer.settings] for peer in peers]
    header = ("converter", "version", "settings that make it comparable")
    return lines + [line.replace("---:", "---") for line in table(header, rows)]


def render(results: Mapping[str, Any], peers: Sequence[Peer]) -> str:
    """The whole measured part of docs/benchmarks.md."""
    lines = ["### Goals", "", *goals_table(results), ""]
    for title, entries in results.get("conversions", {}).items():
        lines += [f"### {title}", "", *conversion_table(entries), ""]
    for title, entries in results.get("clips", {}).items():
        lines += [f"### 200 clips of 1 s on two cores: {title} to CBR 128", ""]
        lines += [*clips_table(entries), ""]
    if "memory" in results:
        lines += ["### Memory, CBR 128", "", *memory_tables(results["memory"]), ""]
    if "instructions" in results:
        lines += ["### Instructions of the whole process, CBR 128", ""]
        lines += [*instructions_table(results["instructions"]), ""]
    lines += ["### Circumstances", "", *circumstances(results, peers)]
    return "\n".join(lines) + "\n"


def insert(document: str, measured: str) -> str:
    """The document with everything between its two marks replaced.

    Raises:
        ValueError: The marks are not there.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{measured}\n{END}{after}"
