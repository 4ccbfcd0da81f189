"""Ratios of rounds, the goals that they meet or miss, and tables of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Spread, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.contest import Case

_TOLD_APART = 0.006
#: Contender to what each round measured.
Rounds = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Figure:
    """A column of a table, from what one run measured."""

    title: str
    of: Callable[[Mapping[str, Any]], float | None]
    digits: int = 1


def each(key: str, scale: float = 1e6) -> Callable[[Mapping[str, Any]], float | None]:
    """A figure by the things done, in microseconds where it is in seconds."""
    return lambda measured: scale * measured[key] / measured["count"] if key in measured else None


def plain(key: str, scale: float = 1.0) -> Callable[[Mapping[str, Any]], float | None]:
    """A figure as it is."""
    return lambda measured: scale * measured[key] if key in measured else None


CPU = Figure("CPU, µs each", each("cpu_s"))
USER = Figure("in user space", each("user_s"))
WALL = Figure("wall, µs each", each("wall_s"))
LOOP = Figure("CPU of the loop's thread", each("thread_s"))


@dataclass(frozen=True)
class Goal:
    """What a ratio, or a figure alone, should be.

    Attributes:
        text: What is wanted, in words.
        wanted: The bound.
        other: Who is compared with; None where the figure counts alone.
        figure: What is compared.
        at_most: Ours divided by the other's must not be above `wanted`; else the other's divided by
            ours must not be below it. Either is judged by the worse quartile.
        ours: Whose figure it is.
        other_figure: What of the other, where it is another.
    """

    text: str
    wanted: float
    other: str | None = None
    figure: Figure = CPU
    at_most: bool = False
    ours: str = "polymux"
    other_figure: Figure | None = None

    def found(self, rounds: Rounds) -> Spread | None:
        """The ratios of the rounds that both have; None where one has none."""
        own = values(rounds.get(self.ours, []), self.figure)
        if self.other is None:
            return spread(own) if own else None
        others = values(rounds.get(self.other, []), self.other_figure or self.figure)
        if self.at_most:
            own, others = others, own
        pairs = list(zip(others, own, strict=False))
        return spread([one / two for one, two in pairs]) if pairs else None

    def met(self, found: Spread) -> bool:
        """By the worse quartile."""
        return found.high <= self.wanted if self.at_most else found.low >= self.wanted


def values(measured: Sequence[Mapping[str, Any]], figure: Figure) -> list[float]:
    """A figure of all rounds; nothing where a run has failed or has no such figure."""
    found = [None if "error" in one else figure.of(one) for one in measured]
    return [] if None in found else [one for one in found if one is not None]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown; the first column is text, the others are numbers."""
    lines = [f"| {' | '.join(header)} |", "| --- |" + " ---: |" * (len(header) - 1)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def goals_table(cases: Sequence[tuple[Sequence[Goal], Rounds, Case]]) -> list[str]:
    """Every goal for which both sides were measured."""
    rows = []
    for goals, rounds, case in cases:
        for goal in goals:
            found = goal.found(rounds)
            if found is None:
                continue
            wanted = f"at {'most' if goal.at_most else 'least'} {goal.wanted:g}"
            judged = found.high if goal.at_most else found.low
            met = "yes" if goal.met(found) else "**no**"
            # Where two decimals would be the goal itself, they would not tell on which side it is.
            digits = 3 if abs(judged - goal.wanted) < _TOLD_APART else 2
            told = found.text(digits)
            rows.append([f"{case.title}: {goal.text}", wanted, f"{judged:.{digits}f}", told, met])
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
