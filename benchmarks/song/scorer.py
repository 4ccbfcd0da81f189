"""Asks a recogniser about all snippets, keeps what it said, and sums that up."""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from benchmarks.song.basis import Basis
from benchmarks.song.recognisers import Answer
from benchmarks.song.snippets import OUTSIDE, Case

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.song.recognisers import Recognise

PROCESSES = 2
MUST_NOT_MATCH = (*OUTSIDE, "junk")


@dataclass(frozen=True)
class Row:
    """What was asked and what was said.

    Attributes:
        kind: As the snippet's.
        condition: As the snippet's.
        seconds: As the snippet's.
        number: As the snippet's.
        track: What the snippet is of.
        style: Of that track.
        song: What the recogniser stands for, or None.
        score: Its score of `first`.
        first: What it would name if it had to.
        right: `first` is a recording of the same group as the track.
        cpu_s: CPU time of the answer, in this process.
        error: What was raised, or empty.
        basis: What the decision was made of, where the recogniser tells.
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
        """The catalogue has its song."""
        return self.kind in {"inside", "container"}

    def accepted(self, least: float | None) -> bool:
        """The recogniser stands for its answer; or its score is at least so much."""
        if least is None:
            return self.song is not None
        return self.first is not None and self.score >= least


class Recorded(Protocol):
    """What a snippet may be of: a track of a set, or a file of somebody's own."""

    @property
    def style(self) -> str:
        """Of the music, or empty."""

    @property
    def group(self) -> str:
        """The same for all files that are the same recording."""


class Music(Protocol):
    """Where snippets come from."""

    @property
    def by_name(self) -> Mapping[str, Recorded]:
        """All tracks."""


class Source(Protocol):
    """Makes snippets."""

    @property
    def songs(self) -> Music:
        """What they are cut from."""

    def content(self, case: Case, /) -> bytes:
        """The bytes of an upload."""


@dataclass(frozen=True)
class _Job:
    """What the processes have: inherited, never sent."""

    snippets: Source
    recognise: Recognise


_jobs: list[_Job] = []


def _ask(case: Case) -> Row:
    """One snippet, in a process that inherited the job."""
    return ask(_jobs[-1], case)


def ask(job: _Job, case: Case) -> Row:
    """One snippet: what it is and what was said."""
    content = job.snippets.content(case)
    answer, error = Answer(None, 0.0, None), ""
    started = time.process_time()
    try:
        answer = job.recognise(content)
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
    recognise: Recognise,
    cases: Sequence[Case],
    kept: Path | None = None,
    processes: int = PROCESSES,
) -> list[Row]:
    """Asks about all snippets.

    Args:
        snippets: Makes them.
        recognise: Takes the bytes of an upload and answers. It is inherited by the processes.
        cases: The snippets.
        kept: A file for the rows, as lines of JSON.
        processes: How many ask at once.

    Returns:
        A row for each snippet, in order.
    """
    _jobs.append(_Job(snippets, recognise))
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
    """Writes rows as lines of JSON, for `load`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))


def load(path: Path) -> list[Row]:
    """The rows of a run that was kept; those of runs before there was a basis have none."""
    rows = []
    for line in path.read_text().splitlines():
        kept = json.loads(line)
        basis = kept.pop("basis", None)
        rows.append(Row(**kept, basis=Basis.loaded(basis) if basis else None))
    return rows


@dataclass(frozen=True)
class Cell:
    """Snippets of one kind: how many, and what became of them."""

    asked: int
    accepted: int
    first: int
    wrong: int

    @property
    def recall(self) -> float:
        """Per cent that were accepted and right."""
        return 100.0 * self.accepted / self.asked if self.asked else math.nan

    @property
    def rank_1(self) -> float:
        """Per cent that would be right with no threshold."""
        return 100.0 * self.first / self.asked if self.asked else math.nan


def summed(rows: Iterable[Row], least: float | None = None) -> Cell:
    """What became of snippets of the catalogue; `least` replaces the recogniser's own threshold."""
    chosen = list(rows)
    return Cell(
        len(chosen),
        sum(row.accepted(least) and row.right for row in chosen),
        sum(row.right for row in chosen),
        sum(row.accepted(least) and not row.right for row in chosen),
    )


def false_positives(rows: Iterable[Row], least: float | None = None) -> dict[str, tuple[int, int]]:
    """Kinds that must not match to how many did, and how many there are; broken uploads too."""
    found = dict.fromkeys((*MUST_NOT_MATCH, "broken"), (0, 0))
    for row in rows:
        if row.kind in found:
            wrong, asked = found[row.kind]
            found[row.kind] = (wrong + row.accepted(least), asked + 1)
    return found


def zero_false(
    rows: Sequence[Row], spared: Sequence[str] = ("siblings", "junk")
) -> dict[float, float]:
    """Lengths to the least threshold that accepts nothing wrong, but of the kinds spared."""
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
