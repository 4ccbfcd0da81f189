"""Tables of a recognizer's answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.song import scorer
from benchmarks.song.conditions import BY_NAME, CONDITIONS
from benchmarks.song.scorer import Cell, Row
from benchmarks.song.snippets import LENGTHS_S

TABLE = {one.name for one in CONDITIONS}
Thresholds = Mapping[float, float]  # by length; empty leaves the decision to the recognizer
#: Slight damage, with which everybody expects recognition to work.
CLEAR = {
    *("MP3 64k", "MP3 32k", "Opus 16k", "AAC 48k", "telephone", "-50 dB, 16 bit"),
    *(f"speed {per_cent} %" for per_cent in ("-5", "-3", "-1", "+1", "+3", "+5")),
}
Z_95 = 1.959964  # standard deviations on each side that contain 95 % of a normal distribution


class Line(NamedTuple):
    """A line of the summary.

    Attributes:
        name: Name in benchmarks/NOTES.md.
        parts: Conditions and lengths in seconds, one figure each.
        goal: Goal in the issue and the docs.
        first: Whether to count the first candidate even if it was not reported.
    """

    name: str
    parts: Sequence[tuple[set[str], tuple[float, ...]]]
    goal: str = ""
    first: bool = False


CONTAINER = {"container"}  # the kind, which stands for all of its conditions
LINES = (
    Line(f"all {len(TABLE)} conditions, 2, 5, 10 s", [(TABLE, (s,)) for s in LENGTHS_S],
         "90, 96.5, 98.5"),
    Line("stood first, named or not", [(TABLE, (s,)) for s in LENGTHS_S], first=True),
    Line("codecs, telephone, ±1 to ±5 % speed, -50 dB", [(CLEAR, (s,)) for s in LENGTHS_S], "100"),
    Line("white, pink, babble noise, 0 dB, 5 s",
         [({f"{one} 0 dB"}, (5.0,)) for one in ("white", "pink", "babble")], "100, 92, 98"),
    Line("±4 % tempo, 5 s", [({f"tempo {one}4 %, same pitch" for one in "+-"}, (5.0,))], "97"),
    Line("±1 semitone, 5 s",
         [({f"pitch {one}1 semitone, same tempo" for one in "+-"}, (5.0,))], "97"),
    Line("microphone far away, 2, 5, 10 s",
         [({"microphone far"}, (s,)) for s in LENGTHS_S], "70, 95, 99"),
    Line("ten containers, 5 and 10 s", [(CONTAINER, (5.0, 10.0))], "100"),
)  # fmt: skip
#: Kinds of snippets that must not be named, and the goal.
REFUSED = {
    "other songs": (("other songs",), "0"),
    "live versions": (("live",), "0"),
    "other songs over a shared loop": (("loop",), "0"),
    "junk and broken uploads": (("junk", "broken"), "0"),
    "siblings with shared drum samples": (("siblings",), "≤ 8 %"),
}


def percent(cell: Cell) -> str:
    """Format the accepted recall, with the share of right first candidates in parentheses."""
    if not cell.asked:
        return ""
    wrong = f", {cell.wrong} wrong" if cell.wrong else ""
    return f"{cell.recall:.4g} ({cell.rank_1:.4g}){wrong}"


def cell(rows: Sequence[Row], thresholds: Thresholds) -> Cell:
    """Sum up rows, with a threshold for each length."""
    parts = [
        scorer.summed([row for row in rows if row.seconds == seconds], thresholds.get(seconds))
        for seconds in {row.seconds for row in rows}
    ]
    return Cell(
        sum(one.asked for one in parts),
        sum(one.accepted for one in parts),
        sum(one.first for one in parts),
        sum(one.wrong for one in parts),
    )


def by_condition(rows: Sequence[Row], thresholds: Thresholds) -> list[str]:
    """Return a line for each condition, with a column for each length."""
    inside = [row for row in rows if row.inside]
    lengths = sorted({row.seconds for row in inside})
    lines = [
        "| condition | " + " | ".join(f"{seconds:g} s" for seconds in lengths) + " |",
        "|---|" + "---|" * len(lengths),
    ]
    order = [*BY_NAME, *dict.fromkeys(row.condition for row in inside if row.kind == "container")]
    for condition in order:
        of_it = [row for row in inside if row.condition == condition]
        if of_it:
            cells = [
                percent(cell([row for row in of_it if row.seconds == seconds], thresholds))
                for seconds in lengths
            ]
            lines.append(f"| {condition} | " + " | ".join(cells) + " |")
    totals = []
    for seconds in lengths:
        chosen = [row for row in inside if row.seconds == seconds and row.condition in TABLE]
        totals.append(percent(cell(chosen, thresholds)) if seconds in LENGTHS_S else "")
    return [*lines, "| **all of the table** | " + " | ".join(totals) + " |"]


def by_style(rows: Sequence[Row], thresholds: Thresholds) -> list[str]:
    """Return a line for each style: recall for the table's conditions at 5 s and longer."""
    chosen = [row for row in rows if row.inside and row.seconds >= 5 and row.condition in TABLE]
    lines = ["| style | from 5 s |", "|---|---|"]
    for style in sorted({row.style for row in chosen}):
        of_it = [row for row in chosen if row.style == style]
        lines.append(f"| {style} | {percent(cell(of_it, thresholds))} |")
    return lines


def wrongs(rows: Sequence[Row], thresholds: Thresholds) -> list[str]:
    """Return a line for each class that must not match, and one for wrong songs."""
    lines = ["| must not match | accepted | of |", "|---|---|---|"]
    for kind in (*scorer.MUST_NOT_MATCH, "broken"):
        chosen = [row for row in rows if row.kind == kind]
        accepted = sum(row.accepted(thresholds.get(row.seconds)) for row in chosen)
        lines.append(f"| {kind} | {accepted} | {len(chosen)} |")
    inside = cell([row for row in rows if row.inside], thresholds)
    return [
        *lines,
        f"| wrong song for a snippet of the index | {inside.wrong} | {inside.asked} |",
    ]


def sweep(rows: Sequence[Row], thresholds: Sequence[float]) -> list[str]:
    """Return a line for each threshold: recall at 2, 5 and 10 s, and wrongly accepted snippets."""
    kinds = scorer.MUST_NOT_MATCH
    lines = [
        f"| threshold | recall 2 / 5 / 10 s | wrong song | {' | '.join(kinds)} |",
        "|---|---|---|" + "---|" * len(kinds),
    ]
    table = [row for row in rows if row.inside and row.condition in TABLE]
    for least in thresholds:
        recalls = [
            f"{scorer.summed([row for row in table if row.seconds == seconds], least).recall:.1f}"
            for seconds in LENGTHS_S
        ]
        wrong = scorer.summed([row for row in rows if row.inside], least).wrong
        counts = scorer.false_positives(rows, least)
        false = " | ".join(str(counts[kind][0]) for kind in kinds)
        lines.append(f"| {least:g} | {' / '.join(recalls)} | {wrong} | {false} |")
    return lines


def whole(rows: Sequence[Row], thresholds: Thresholds) -> str:
    """Return all tables, errors, and the CPU time of an answer."""
    lines = [
        *by_condition(rows, thresholds),
        "",
        *by_style(rows, thresholds),
        "",
        *wrongs(rows, thresholds),
    ]
    failed = [row for row in rows if row.error and row.kind != "broken"]
    if failed:
        lines += [
            "",
            f"{len(failed)} snippets that are not broken raised; the first: {failed[0].error}",
        ]
    lines += ["", "| CPU of an answer, median | found | not found |", "|---|---|---|"]
    for seconds in LENGTHS_S:
        times = [
            sorted(
                row.cpu_s
                for row in rows
                if row.seconds == seconds and (row.song is not None) is found
            )
            for found in (True, False)
        ]
        shown = [f"{1000 * some[len(some) // 2]:.1f} ms" if some else "" for some in times]
        lines.append(f"| {seconds:g} s | {' | '.join(shown)} |")
    return "\n".join(lines)


def at_most(wrong: int, asked: int) -> float:
    """Return the upper end of Wilson's 95 % interval for the true rate, in percent.

    Args:
        wrong: Number of wrong answers.
        asked: Number of all answers; 0 gives 100 %.
    """
    if not asked:
        return 100.0
    share, spread = wrong / asked, Z_95**2 / asked
    reach = Z_95 * math.sqrt(share * (1 - share) / asked + spread / (4 * asked))
    return 100.0 * (share + spread / 2 + reach) / (1 + spread)


def figures(rows: Sequence[Row], line: Line, thresholds: Thresholds) -> list[float]:
    """Return the percentage for each part of a line; NaN if a part has no rows."""
    found = []
    for conditions, lengths in line.parts:
        chosen = [
            row
            for row in rows
            if row.inside
            and row.seconds in lengths
            and (row.condition in conditions or row.kind in conditions & CONTAINER)
        ]
        summed = cell(chosen, thresholds)
        found.append(summed.rank_1 if line.first else summed.recall)
    return found


def named(rows: Sequence[Row], kinds: Sequence[str], thresholds: Thresholds) -> tuple[int, int]:
    """Return how many snippets of these kinds were named, and their total; without kinds, those
    named as the wrong song."""
    if not kinds:
        inside = cell([row for row in rows if row.inside], thresholds)
        return inside.wrong, inside.asked
    chosen = [row for row in rows if row.kind in kinds]
    return sum(row.accepted(thresholds.get(row.seconds)) for row in chosen), len(chosen)


def shown(found: Sequence[float]) -> str:
    """Format percentages with commas between them; a dash for missing ones."""
    return ", ".join("-" if math.isnan(one) else f"{one:.1f}".removesuffix(".0") for one in found)


def summary(
    rows: Mapping[str, Sequence[Row]], thresholds: Mapping[str, Thresholds] | None = None
) -> str:
    """Return the two tables of benchmarks/NOTES.md: right names and wrong names.

    Args:
        rows: Column name, such as `seed 7`, to its rows.
        thresholds: Column name to thresholds that replace the recognizer's decision.

    Returns:
        Two tables. The first has a column for each name, the mean over all rows, the worst column,
        and the goal. The second has the sum, the upper end of Wilson's 95 % interval in percent,
        and the goal.
    """
    by_name = thresholds or {}
    every = [row for some in rows.values() for row in some]
    lines = [heading("snippets of the index, %", [*rows, "mean", "worst", "goal"])]
    for line in LINES:
        each = [figures(some, line, by_name.get(name, {})) for name, some in rows.items()]
        asked = [[one for one in part if not math.isnan(one)] for part in zip(*each, strict=True)]
        # Each column has the same number of snippets per condition, so the mean of columns is that
        # of rows.
        means = [sum(part) / len(part) if part else math.nan for part in asked]
        worst = [min(part, default=math.nan) for part in asked]
        cells = [shown(one) for one in (*each, means, worst)]
        lines.append(f"| {line.name} | {' | '.join([*cells, line.goal])} |")
    lines += ["", heading("must not be named", [*rows, "together", "at most, 95 %", "goal"])]
    wrong_song = {"another song for a snippet of the index": ((), "0")}
    for kind, (kinds, goal) in {**REFUSED, **wrong_song}.items():
        counts = [named(some, kinds, by_name.get(name, {})) for name, some in rows.items()]
        wrong, asked_of = (sum(part) for part in zip(*counts, strict=True))
        cells = [f"{one} of {of:,}" for one, of in (*counts, (wrong, asked_of))]
        bound = f"{at_most(wrong, asked_of):.2f} %"
        lines.append(f"| {kind} | {' | '.join([*cells, bound, goal])} |")
    failed = [row for row in every if row.error and row.kind != "broken"]
    if failed:
        lines += ["", f"{len(failed)} snippets that are not broken raised: {failed[0].error}"]
    return "\n".join(lines)


def heading(first: str, others: Sequence[str]) -> str:
    """Return the first two lines of a table."""
    return f"| {first} | {' | '.join(others)} |\n|---|{'---|' * len(others)}"
