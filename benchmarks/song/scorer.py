"""Runs a recognizer on all snippets, saves its answers, and sums them up."""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from benchmarks.song.basis import Basis
from benchmarks.song.recognizers import Answer
from benchmarks.song.snippets import OUTSIDE, Case

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.song.recognizers import Recognize

PROCESSES = 2
MUST_NOT_MATCH = (*OUTSIDE, "junk")


@dataclass(frozen=True)
class Row:
    """A snippet and the recognizer's answer.

    Attributes:
        kind: Kind of the snippet.
        condition: Condition of the snippet.
        seconds: Length of the snippet.
        number: Number of the snippet.
        track: Track of the snippet.
        style: Style of that track.
        song: Reported song, or None.
        score: Score of `first`.
        first: The best candidate, reported or not.
        right: Whether `first` is a recording of the same group as the track.
        cpu_s: CPU time of the answer, in this process.
        error: Error message, or empty.
        basis: Inputs of the decision, if the recognizer reports them.
    """

    kind: str
    condition: str
    seconds: float
    number: int
    track: str
    style: str
    song: str | None
    score: float
    first: str | None
    right: bool
    cpu_s: float
    error: str
    basis: Basis | None = None

    @property
    def inside(self) -> bool:
        """Whether the index has its song."""
        return self.kind in {"inside", "container"}

    def accepted(self, least: float | None) -> bool:
        """Whether the recognizer reported a song or, with `least`, whether the score is at least
        that."""
        if least is None:
            return self.song is not None
        return self.first is not None and self.score >= least


class Recorded(Protocol):
    """The source of a snippet: a track of a set, or a file of a user's library."""

    @property
    def style(self) -> str:
        """Style of the music, or empty."""

    @property
    def group(self) -> str:
        """Identical for all files with the same recording."""


class Music(Protocol):
    """The tracks that snippets are cut from."""

    @property
    def by_name(self) -> Mapping[str, Recorded]:
        """All tracks by name."""


class Source(Protocol):
    """A maker of snippets."""

    @property
    def songs(self) -> Music:
        """The tracks that snippets are cut from."""

    def content(self, case: Case, /) -> bytes:
        """Return the bytes of an upload."""


@dataclass(frozen=True)
class _Job:
    """State that the worker processes inherit through fork; it is never sent."""

    snippets: Source
    recognize: Recognize


_jobs: list[_Job] = []


def _ask(case: Case) -> Row:
    """Score one snippet in a process that inherited the job."""
    return ask(_jobs[-1], case)


def ask(job: _Job, case: Case) -> Row:
    """Score one snippet."""
    content = job.snippets.content(case)
    answer, error = Answer(None, 0.0, None), ""
    started = time.process_time()
    try:
        answer = job.recognize(content)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    cpu_s = time.process_time() - started
    known = job.snippets.songs.by_name
    track = known.get(case.track)
    named = known.get(answer.first) if answer.first is not None else None
    right = track is not None and named is not None and named.group == track.group
    style = track.style if track else ""
    return Row(
        case.kind, case.condition, case.seconds, case.number, case.track, style,
        answer.song, float(answer.score), answer.first, right, round(cpu_s, 6), error,
        answer.basis,
    )  # fmt: skip


def score(
    snippets: Source,
    recognize: Recognize,
    cases: Sequence[Case],
    kept: Path | None = None,
    processes: int = PROCESSES,
) -> list[Row]:
    """Score all snippets.

    Args:
        snippets: Makes the snippets.
        recognize: Identifies the bytes of an upload. The worker processes inherit it.
        cases: The snippets.
        kept: File for the rows, as lines of JSON.
        processes: Number of processes.

    Returns:
        A row for each snippet, in order.
    """
    _jobs.append(_Job(snippets, recognize))
    rows: list[Row] = []
    try:
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            for row in pool.imap(_ask, cases, chunksize=4):
                rows.append(row)
                if len(rows) % 500 == 0:
                    print(f"{len(rows)} of {len(cases)} snippets ...", file=sys.stderr, flush=True)
    finally:
        _jobs.pop()
    if kept is not None:
        keep(rows, kept)
    return rows


def keep(rows: Iterable[Row], path: Path) -> None:
    """Write rows as lines of JSON, for `load`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))


def load(path: Path) -> list[Row]:
    """Load the rows of a saved run; old runs have no basis."""
    rows = []
    for line in path.read_text().splitlines():
        kept = json.loads(line)
        basis = kept.pop("basis", None)
        rows.append(Row(**kept, basis=Basis.loaded(basis) if basis else None))
    return rows


@dataclass(frozen=True)
class Cell:
    """Counts of the results of snippets of one kind."""

    asked: int
    accepted: int
    first: int
    wrong: int

    @property
    def recall(self) -> float:
        """Percentage of accepted and right answers."""
        return 100.0 * self.accepted / self.asked if self.asked else math.nan

    @property
    def rank_1(self) -> float:
        """Percentage of right first candidates, without a threshold."""
        return 100.0 * self.first / self.asked if self.asked else math.nan


def summed(rows: Iterable[Row], least: float | None = None) -> Cell:
    """Sum up the results of snippets of the index; `least` replaces the recognizer's
    threshold."""
    chosen = list(rows)
    return Cell(
        len(chosen),
        sum(row.accepted(least) and row.right for row in chosen),
        sum(row.right for row in chosen),
        sum(row.accepted(least) and not row.right for row in chosen),
    )


def false_positives(rows: Iterable[Row], least: float | None = None) -> dict[str, tuple[int, int]]:
    """Return, by kind that must not match, the number of matches and the total; includes broken
    uploads."""
    found = dict.fromkeys((*MUST_NOT_MATCH, "broken"), (0, 0))
    for row in rows:
        if row.kind in found:
            wrong, asked = found[row.kind]
            found[row.kind] = (wrong + row.accepted(least), asked + 1)
    return found


def zero_false(
    rows: Sequence[Row], spared: Sequence[str] = ("siblings", "junk")
) -> dict[float, float]:
    """Return, by length, the minimum threshold without wrong answers, apart from the kinds in
    `spared`."""
    kinds = set(MUST_NOT_MATCH) - set(spared)
    bad = [
        row
        for row in rows
        if row.first is not None and (row.kind in kinds or (row.inside and not row.right))
    ]
    found = {}
    for seconds in sorted({row.seconds for row in rows if row.inside}):
        wrong = [row.score for row in bad if row.seconds == seconds]
        found[seconds] = math.nextafter(max(wrong), math.inf) if wrong else -math.inf
    return found
