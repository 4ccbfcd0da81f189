"""Tables of what a recogniser said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.song import scorer
from benchmarks.song.conditions import BY_NAME, CONDITIONS
from benchmarks.song.scorer import Cell, Row
from benchmarks.song.snippets import LENGTHS_S

TABLE = {one.name for one in CONDITIONS}
Thresholds = Mapping[float, float]  # by length; empty leaves the decision to the recogniser


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
