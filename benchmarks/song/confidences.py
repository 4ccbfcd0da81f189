"""Accuracy of the confidences: how often they were right, and the result of each minimum
confidence."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from benchmarks.song import report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.song.scorer import Row

MIN_HITS = 6  # `Decision::least_hits`: a song with fewer found peaks is not named
EDGES = (0.0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
MIN_CONFIDENCES = (0.5, 0.7, 0.8, 0.82, 0.85, 0.9, 0.95, 0.98)


def decided(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose first candidate is decided by the confidence."""
    return [row for row in rows if row.basis and row.basis.windows[0].hits >= MIN_HITS]


def confidence(row: Row) -> float:
    """Return the confidence of the first candidate; 0 if there is no candidate that could be
    named."""
    return row.basis.confidence if decided([row]) and row.basis else 0.0


def bins(rows: Sequence[Row]) -> list[str]:
    """Return a line for each bin of confidences: the number of snippets, and how many were
    right."""
    lines = [report.heading("confidence", ["snippets", "right", "%"])]
    known = decided(rows)
    for low, high in itertools.pairwise(EDGES):
        end = math.nextafter(high, math.inf) if high == EDGES[-1] else high
        chosen = [row for row in known if low <= confidence(row) < end]
        right = sum(row.right for row in chosen)
        share = f"{100 * right / len(chosen):.1f}" if chosen else "-"
        lines.append(f"| {low:g} to {high:g} | {len(chosen)} | {right} | {share} |")
    return lines


def choices(rows: Sequence[Row]) -> list[str]:
    """Return a line for each minimum confidence: right and wrong names."""
    inside = [row for row in rows if row.inside]
    outside = [row for row in rows if not row.inside]
    lines = [
        report.heading(
            "least confidence",
            ["named rightly, %", "another song", "named, not being there", "at most, 95 %"],
        )
    ]
    for least in MIN_CONFIDENCES:
        named = [row for row in inside if confidence(row) >= least]
        right = sum(row.right for row in named)
        wrong = sum(confidence(row) >= least for row in outside)
        recall = f"{100 * right / len(inside):.1f}" if inside else "-"
        cells = [
            recall, f"{len(named) - right} of {len(inside):,}", f"{wrong} of {len(outside):,}",
            f"{report.at_most(wrong, len(outside)):.2f} %",
        ]  # fmt: skip
        lines.append(f"| {least:g} | {' | '.join(cells)} |")
    return lines
