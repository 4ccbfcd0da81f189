from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.song import (
    containers,
    names,
    report,
    scorer,
    text_queries,
)
from benchmarks.song.scorer import Row
from benchmarks.song.snippets import LENGTHS_S


def test_queries_are_of_all_kinds_and_expect_the_song_that_they_are_of() -> None:
    known = [
        text_queries.Song(str(number), one.title, one.artist)
        for number, one in enumerate(names.tags(1, 400))
    ]
    asked = text_queries.queries(1, known, 320)
    assert {one.kind for one in asked} == set(text_queries.KINDS)
    assert asked == text_queries.queries(1, known, 320)
    by_key = {one.key: one for one in known}
    for query in asked:
        assert query.text.strip()
        assert query.expected
        if query.kind == "exact":
            assert query.text in {by_key[key].title for key in query.expected}


def row(kind: str, first: str | None, score: float, *, accept: bool, right: bool = False) -> Row:
    song = first if accept else None
    return Row(kind, "clean", 5.0, 0, "a", "rock", song, score, first, right, 0.01, "")


def test_what_is_counted() -> None:
    rows = [
        row("inside", "a", 9.0, accept=True, right=True),
        row("inside", "a", 4.0, accept=False, right=True),
        row("inside", "b", 5.0, accept=True),
        row("inside", None, 0.0, accept=False),
        row("other songs", "b", 6.0, accept=True),
        row("other songs", "b", 1.0, accept=False),
        row("siblings", "b", 8.0, accept=True),
        row("junk", None, 0.0, accept=False),
    ]
    cell = scorer.summed(rows[:4])
    assert (cell.asked, cell.accepted, cell.first, cell.wrong) == (4, 1, 2, 1)
    assert (cell.recall, cell.rank_1) == (25.0, 50.0)
    assert scorer.summed(rows[:4], 3.0).accepted == 2
    assert scorer.false_positives(rows)["other songs"] == (1, 2)
    assert scorer.false_positives(rows, 0.5)["other songs"] == (2, 2)
    least = scorer.zero_false(rows)[5.0]
    assert 6.0 < least < 6.001  # the sibling does not count
    assert scorer.zero_false(rows, ())[5.0] > 8.0
    text = report.whole(rows, {5.0: least})
    assert "| clean | 25 (50) |" in text
    assert "| siblings | 1 | 1 |" in text
    assert report.sweep(rows, [3.0])[-1] == "| 3 | nan / 50.0 / nan | 1 | 1 | 0 | 0 | 1 | 0 |"


def tried(
    kind: str, condition: str, seconds: float, *, named: bool, right: bool, score: float = 1.0
) -> Row:
    return Row(kind, condition, seconds, 0, "a", "rock", "a" if named else None, score, "a", right,
               0.0, "")  # fmt: skip


def rows(missed: set[tuple[str, float]], *, wrong: int = 0) -> list[Row]:
    found = []
    for name in report.TABLE:
        for seconds in LENGTHS_S:
            found.append(tried("inside", name, seconds, named=True, right=True))
            refused = (name, seconds) in missed
            found.append(tried("inside", name, seconds, named=not refused, right=True))
    found += [tried("inside", "speed +4 % and telephone", 5.0, named=False, right=False)]
    found += [tried("container", one, 5.0, named=True, right=True) for one in containers.CONTAINERS]
    for kind in scorer.MUST_NOT_MATCH:
        found += [
            tried(kind, "clean", 5.0, named=number < wrong, right=False) for number in range(4)
        ]
    return found
