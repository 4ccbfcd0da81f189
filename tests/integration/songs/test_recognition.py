"""What the index recognises of music that no parameter was fitted to, and what it refuses.

A reduced set of `benchmarks/song`; the whole one is `scripts/bench song`, and docs/song.md has what
it gave. Bounds here are wide: they hold for few snippets of a kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.song import catalogue, scorer, snippets
from benchmarks.song.recognisers import ours

if TYPE_CHECKING:
    from benchmarks.song.scorer import Row

SEED = 77
TRACKS = 24
SHARE = 0.5
EACH = 3
LEAST = {2.0: 0.7, 5.0: 0.85, 10.0: 0.9}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    songs = catalogue.generate(tmp_path_factory.mktemp("songs"), SEED, TRACKS, SHARE)
    return scorer.score(snippets.Snippets(songs), ours(songs), snippets.reduced(songs, EACH))


@pytest.mark.slow
def test_no_other_sound_is_named(rows: list[Row]) -> None:
    named = [
        (row.kind, row.condition, row.track, row.song, round(row.score, 2))
        for row in rows
        if not row.inside and row.kind != "siblings" and row.accepted(None)
    ]
    assert not named


@pytest.mark.slow
def test_no_snippet_names_a_wrong_song(rows: list[Row]) -> None:
    wrong = [row for row in rows if row.inside and row.accepted(None) and not row.right]
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("seconds", LEAST)
def test_most_snippets_are_named_however_damaged(rows: list[Row], seconds: float) -> None:
    inside = [row for row in rows if row.kind == "inside" and row.seconds == seconds]
    assert len(inside) > 30
    share = sum(row.right and row.accepted(None) for row in inside) / len(inside)
    assert share >= LEAST[seconds], [
        (row.condition, row.style) for row in inside if not (row.right and row.accepted(None))
    ]


@pytest.mark.slow
def test_every_container_is_heard(rows: list[Row]) -> None:
    missed = [
        (row.condition, row.error)
        for row in rows
        if row.kind == "container" and not (row.right and row.accepted(None))
    ]
    assert not missed
