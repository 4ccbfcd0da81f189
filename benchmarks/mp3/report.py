"""The results as Markdown: goals, ratios, seconds, and the conditions of the measurement."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measure import spread
from benchmarks.mp3 import clips
from benchmarks.mp3.cases import HOUR_CBR, REFERENCE
from benchmarks.mp3.conversions import SOME_ROUNDS
from benchmarks.mp3.figures import column, frames_cell, objection, ratio, table
from benchmarks.mp3.goals import goals_table
from benchmarks.mp3.memory import with_long_conversions
from benchmarks.mp3.peers.base import Peer
from benchmarks.mp3.peers.polymux import ONE_THREAD, OURS


def conversion_table(entries: Mapping[str, Any]) -> list[str]:
    """Return the table of one case of `conversions.measure`."""
    reference = entries[REFERENCE]["rounds"]
    rows = []
    for name, entry in entries.items():
        if problem := objection(entry):
            rows.append([name, problem, "", "", "", "", ""])
            continue
        rounds = entry["rounds"]
        rows.append(
            [
                name,
                str(ratio(reference, rounds, "wall_s")),
                str(ratio(reference, rounds, "wall_s", below_part="inside")),
                str(ratio(rounds, reference, "cpu_s")),
                str(ratio(rounds, reference, "cpu_s", "inside")),
                str(spread(column(rounds, "wall_s"))),
                frames_cell(entry),
            ]
        )
    header = (
        "converter",
        "times as fast as ffmpeg, whole process",
        "times as fast, without start and imports",
        "CPU ÷ ffmpeg's, whole process",
        "CPU ÷ ffmpeg's, without start and imports",
        "seconds",
        "frames equal to ffmpeg's",
    )
    return table(header, rows)


def clips_table(entries: Mapping[str, Any]) -> list[str]:
    """Return the table of one kind of clip of `clips.measure`."""
    reference = entries[clips.IN_TURN]["rounds"]
    rows = []
    for name, entry in entries.items():
        if entry["error"]:
            rows.append([name, f"not measured: {entry['error']}", "", ""])
            continue
        rounds = entry["rounds"]
        rows.append(
            [
                name,
                str(ratio(reference, rounds, "wall_s")),
                str(ratio(rounds, reference, "cpu_s")),
                str(spread(column(rounds, "wall_s"))),
            ]
        )
    header = ("way", "times as fast as one ffmpeg each", "CPU ÷ one ffmpeg each", "seconds")
    return table(header, rows)


def megabytes(number: float) -> str:
    """Return bytes as MB of 10^6."""
    return f"{number / 1e6:.1f}"


def memory_tables(results: Mapping[str, Any]) -> list[str]:
    """Return the tables of peaks and of polymux's memory by stage."""
    hour = results.get("long", {}).get(HOUR_CBR, {})
    memory = with_long_conversions(results["memory"], hour)
    names = list(dict.fromkeys(name for entries in memory.values() for name in entries))
    rows = []
    for title, entries in memory.items():
        cells = [entries.get(name, {}) for name in names]
        shown = [
            megabytes(cell["peak_rss_bytes"]) if "peak_rss_bytes" in cell else cell.get("error", "")
            for cell in cells
        ]
        rows.append([title, *shown])
    heads = [f"{OURS}, two threads" if name == OURS else name for name in names]
    return [*table(("peak resident MB", *heads), rows), "", *memory_stages(memory)]


def memory_stages(memory: Mapping[str, Any]) -> list[str]:
    """Return the memory of each stage of polymux in Python, on one thread and on two."""
    breakdown = []
    for title, entries in memory.items():
        for name in (ONE_THREAD, OURS):
            stages = entries.get(name, {}).get("stages")
            if not stages:
                continue
            start, loaded, done = (stages[key] for key in ("start", "loaded", "done"))
            breakdown.append(
                [
                    title if name == ONE_THREAD else f"{title}, two threads",
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
    return table(header, breakdown)


def instructions_table(counts: Mapping[str, Any]) -> list[str]:
    """Return a row per input of `instructions.measure`."""
    rows = []
    for title, entries in counts.items():
        ffmpeg, ours = entries["ffmpeg"], entries["polymux from C++"]
        if "error" in ffmpeg or "error" in ours:
            rows.append([title, str(ffmpeg.get("error") or ours.get("error")), "", ""])
            continue
        pair = (ffmpeg["instructions"], ours["instructions"])
        rows.append([title, f"{pair[1] / pair[0]:.3f}", *(f"{count / 1e6:.1f}" for count in pair)])
    return table(("input", "polymux ÷ ffmpeg", "ffmpeg, millions", "polymux, millions"), rows)


def circumstances(results: Mapping[str, Any], peers: Sequence[Peer]) -> list[str]:
    """Return machine, build, versions and settings."""
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
        f" {rounds} rounds at {priority} priority; {SOME_ROUNDS} of what no goal names."
        " Load average before and after: "
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


def facts(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a published results file other than its tables."""
    versions = {"LAME of polymux, ffmpeg and lame": results["build"]["lame"].removeprefix("LAME ")}
    for name, text in results["versions"].items():
        found = re.search(r"^ffmpeg version (\S+)", text)
        version = found[1] if found else text.removeprefix(f"{name} ")
        # Names of variants begin with the name of the converter.
        if version and name != "lame" and not any(name.startswith(one) for one in versions):
            versions[name] = version
    priority = "raised" if results["priority_raised"] else "normal"
    load = "; ".join(
        f"{name} {one[0]:.1f} to {one[1]:.1f}" for name, one in results["load"].items()
    )
    return {
        "command": "scripts/bench mp3",
        "date": results["date"],
        "rounds": results["rounds"],
        "machine": results["machine"],
        "versions": versions,
        "notes": [
            f"{priority} priority; load before and after: {load}",
            f"{SOME_ROUNDS} rounds of converters without a goal in the table",
        ],
    }


def render(results: Mapping[str, Any], peers: Sequence[Peer]) -> str:
    """Return all tables: goals, conversions, clips, memory, instructions, conditions."""
    lines = ["### Goals", "", *goals_table(results), ""]
    for title, entries in {**results.get("conversions", {}), **results.get("long", {})}.items():
        lines += [f"### {title}", "", *conversion_table(entries), ""]
    for title, entries in results.get("clips", {}).items():
        lines += [f"### 200 clips {title} to CBR 128, on two cores", ""]
        lines += [*clips_table(entries), ""]
    if "memory" in results:
        lines += ["### Memory, CBR 128", "", *memory_tables(results), ""]
    if "instructions" in results:
        lines += ["### Instructions of the whole process, CBR 128", ""]
        lines += [*instructions_table(results["instructions"]), ""]
    lines += ["### Circumstances", "", *circumstances(results, peers)]
    return "\n".join(lines) + "\n"
