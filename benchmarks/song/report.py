"""Tables of what a recogniser said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.song import scorer
from benchmarks.song.conditions import BY_NAME, CONDITIONS
from benchmarks.song.scorer import Cell, Row
from benchmarks.song.snippets import LENGTHS_S

TABLE = {one.name for one in CONDITIONS}
Thresholds = Mapping[float, float]  # by length; empty leaves the decision to the recogniser
#: Damage that takes next to nothing away: what everybody expects to be recognised.
CLEAR = {
    *("MP3 64k", "MP3 32k", "Opus 16k", "AAC 48k", "telephone", "-50 dB, 16 bit"),
    *(f"speed {per_cent} %" for per_cent in ("-5", "-3", "-1", "+1", "+3", "+5")),
}
Z_95 = 1.959964  # standard deviations to each side that 95 % of a normal distribution lie within


class Line(NamedTuple):
    """A line of the summary.

    Attributes:
        name: As benchmarks/NOTES.md has it.
        parts: Conditions and lengths in seconds that each make one figure.
        goal: As issue and docs have it.
        first: Whether to count what stood first, named or not.
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
#: What must not be named: kinds of snippets, and the goal.
REFUSED = {
    "other songs": (("other songs",), "0"),
    "live versions": (("live",), "0"),
    "other songs over a shared loop": (("loop",), "0"),
    "junk and broken uploads": (("junk", "broken"), "0"),
    "siblings with shared drum samples": (("siblings",), "≤ 8 %"),
}


def percent(cell: Cell) -> str:
    """Accepted recall, and in brackets how many were first."""
    if not cell.asked:
        return ""
    wrong = f", {cell.wrong} wrong" if cell.wrong else ""
    return f"{cell.recall:.4g} ({cell.rank_1:.4g}){wrong}"


def cell(rows: Sequence[Row], thresholds: Thresholds) -> Cell:
    """Sums rows up, each length by its own threshold."""
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
    """A line for each condition, with a column for each length."""
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
    """A line for each style: recall of the table's conditions from 5 s on."""
    chosen = [row for row in rows if row.inside and row.seconds >= 5 and row.condition in TABLE]
    lines = ["| style | from 5 s |", "|---|---|"]
    for style in sorted({row.style for row in chosen}):
        of_it = [row for row in chosen if row.style == style]
        lines.append(f"| {style} | {percent(cell(of_it, thresholds))} |")
    return lines


def wrongs(rows: Sequence[Row], thresholds: Thresholds) -> list[str]:
    """A line for each class that must not match, and one for wrong songs."""
    lines = ["| must not match | accepted | of |", "|---|---|---|"]
    for kind in (*scorer.MUST_NOT_MATCH, "broken"):
        chosen = [row for row in rows if row.kind == kind]
        accepted = sum(row.accepted(thresholds.get(row.seconds)) for row in chosen)
        lines.append(f"| {kind} | {accepted} | {len(chosen)} |")
    inside = cell([row for row in rows if row.inside], thresholds)
    return [
        *lines,
        f"| wrong song for a snippet of the catalogue | {inside.wrong} | {inside.asked} |",
    ]


def sweep(rows: Sequence[Row], thresholds: Sequence[float]) -> list[str]:
    """A line for each threshold: recall at 2, 5 and 10 s, and what is accepted that must not be."""
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
    """All tables, errors, and the CPU time of an answer."""
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
    """Per cent that the true rate hardly exceeds: the upper end of Wilson's 95 % interval.

    Args:
        wrong: How many were.
        asked: Of how many; 100 % of none.
    """
    if not asked:
        return 100.0
    share, spread = wrong / asked, Z_95**2 / asked
    reach = Z_95 * math.sqrt(share * (1 - share) / asked + spread / (4 * asked))
    return 100.0 * (share + spread / 2 + reach) / (1 + spread)


def figures(rows: Sequence[Row], line: Line, thresholds: Thresholds) -> list[float]:
    """Per cent of each part of a line; not a number where nothing of it was asked."""
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
    """How many of these kinds were named, and how many there are; no kinds: the wrong song."""
    if not kinds:
        inside = cell([row for row in rows if row.inside], thresholds)
        return inside.wrong, inside.asked
    chosen = [row for row in rows if row.kind in kinds]
    return sum(row.accepted(thresholds.get(row.seconds)) for row in chosen), len(chosen)


def shown(found: Sequence[float]) -> str:
    """Per cents with commas between; a dash for what was not asked."""
    return ", ".join("-" if math.isnan(one) else f"{one:.1f}".removesuffix(".0") for one in found)


def summary(
    rows: Mapping[str, Sequence[Row]], thresholds: Mapping[str, Thresholds] | None = None
) -> str:
    """The two tables of benchmarks/NOTES.md: what was and was wrongly named.

    Args:
        rows: Names of columns, such as `seed 7`, to the rows of each.
        thresholds: Names of columns to thresholds in place of the recogniser's own decision.

    Returns:
        Two tables. The first has a column for each name, the mean over all rows, the worst of the
        columns, and the goal; the second the sum, what the true rate hardly exceeds (the upper end
        of Wilson's 95 % interval, in per cent), and the goal.
    """
    by_name = thresholds or {}
    every = [row for some in rows.values() for row in some]
    lines = [heading("snippets of the catalogue, %", [*rows, "mean", "worst", "goal"])]
    for line in LINES:
        each = [figures(some, line, by_name.get(name, {})) for name, some in rows.items()]
        asked = [[one for one in part if not math.isnan(one)] for part in zip(*each, strict=True)]
        # Each column has as many snippets of a condition: the mean of columns is that of rows.
        means = [sum(part) / len(part) if part else math.nan for part in asked]
        worst = [min(part, default=math.nan) for part in asked]
        cells = [shown(one) for one in (*each, means, worst)]
        lines.append(f"| {line.name} | {' | '.join([*cells, line.goal])} |")
    lines += ["", heading("must not be named", [*rows, "together", "at most, 95 %", "goal"])]
    wrong_song = {"another song for a snippet of the catalogue": ((), "0")}
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
    """The first two lines of a table."""
    return f"| {first} | {' | '.join(others)} |\n|---|{'---|' * len(others)}"
