"""Ratios of rounds, goals, and the tables of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Spread, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.contest import Case

_DISTINGUISHABLE = 0.006
#: Contender to the figures of each round.
Rounds = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Figure:
    """A column of a table, computed from the figures of one run."""

    title: str
    of: Callable[[Mapping[str, Any]], float | None]
    digits: int = 1


def each(key: str, scale: float = 1e6) -> Callable[[Mapping[str, Any]], float | None]:
    """Return a function for a figure per item; the default scale converts seconds to
    microseconds."""
    return lambda measured: scale * measured[key] / measured["count"] if key in measured else None


def plain(key: str, scale: float = 1.0) -> Callable[[Mapping[str, Any]], float | None]:
    """Return a function for an unchanged figure."""
    return lambda measured: scale * measured[key] if key in measured else None


CPU = Figure("CPU, µs each", each("cpu_s"))
USER = Figure("in user space", each("user_s"))
WALL = Figure("wall, µs each", each("wall_s"))
LOOP = Figure("CPU of the loop's thread", each("thread_s"))


@dataclass(frozen=True)
class Goal:
    """Goal for a ratio or for polymux's figure alone.

    Attributes:
        text: Description of the goal.
        wanted: Bound.
        other: Contender to compare with; None for polymux's figure alone.
        figure: Figure to compare.
        at_most: If true, polymux's figure divided by the other's must not exceed `wanted`.
            Otherwise the other's divided by polymux's must be at least `wanted`. Both use the worse
            quartile.
        ours: Contender that the goal applies to.
        other_figure: Figure of the other contender, if it differs.
    """

    text: str
    wanted: float
    other: str | None = None
    figure: Figure = CPU
    at_most: bool = False
    ours: str = "polymux"
    other_figure: Figure | None = None

    def found(self, rounds: Rounds) -> Spread | None:
        """Return the ratios of the rounds that both have; None if there are no such rounds."""
        own = values(rounds.get(self.ours, []), self.figure)
        if self.other is None:
            return spread(own) if own else None
        others = values(rounds.get(self.other, []), self.other_figure or self.figure)
        if self.at_most:
            own, others = others, own
        pairs = list(zip(others, own, strict=False))
        return spread([one / two for one, two in pairs]) if pairs else None

    def met(self, found: Spread) -> bool:
        """Return whether the worse quartile meets the goal."""
        return found.high <= self.wanted if self.at_most else found.low >= self.wanted


def values(measured: Sequence[Mapping[str, Any]], figure: Figure) -> list[float]:
    """Return a figure of all rounds; empty if a run failed or lacks the figure."""
    found = [None if "error" in one else figure.of(one) for one in measured]
    return [] if None in found else [one for one in found if one is not None]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table; the first column is text, the others are numbers."""
    lines = [f"| {' | '.join(header)} |", "| --- |" + " ---: |" * (len(header) - 1)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def goals_table(cases: Sequence[tuple[Sequence[Goal], Rounds, Case]]) -> list[str]:
    """Return every goal for which both sides were measured."""
    rows = []
    for goals, rounds, case in cases:
        for goal in goals:
            found = goal.found(rounds)
            if found is None:
                continue
            wanted = f"at {'most' if goal.at_most else 'least'} {goal.wanted:g}"
            judged = found.high if goal.at_most else found.low
            met = "yes" if goal.met(found) else "**no**"
            # Use a third decimal if two would show the goal's value itself and hide whether it is
            # met.
            digits = 3 if abs(judged - goal.wanted) < _DISTINGUISHABLE else 2
            text = found.text(digits)
            rows.append([f"{case.title}: {goal.text}", wanted, f"{judged:.{digits}f}", text, met])
    head = ("goal", "wanted", "worse quartile", "median (quartiles)", "met")
    return table(head, rows) if rows else []


def case_table(
    rounds: Rounds,
    names: Sequence[str],
    figures: Sequence[Figure],
    reference: str,
    who: str = "client",
) -> list[str]:
    """Return a row per contender: its figures with quartiles, and the ratio to the reference."""
    own = values(rounds[reference], figures[0])
    rows = []
    for name in names:
        measured = rounds[name]
        if "error" in measured[0]:
            rows.append([name, f"not measured: {measured[0]['error']}", *[""] * len(figures)])
            continue
        cells = []
        for figure in figures:
            found = values(measured, figure)
            cells.append(spread(found).text(figure.digits) if found else "")
        theirs = values(measured, figures[0])
        times = [one / two for one, two in zip(theirs, own, strict=False)]
        rows.append([name, *cells, f"{spread(times)}x" if times else ""])
    return table((who, *[one.title for one in figures], f"times {reference}"), rows)
