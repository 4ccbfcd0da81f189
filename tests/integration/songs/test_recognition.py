"""Recognition of music that was not used to fit parameters, and rejection of unknown music.

A reduced version of `benchmarks/song`. `scripts/bench song` runs all of it. The bounds here are
wide, because there are few snippets of each kind.
"""

from __future__ import annotations

import multiprocessing
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.cache import digest

from benchmarks.song import scorer, snippets, song_set, text_search
from benchmarks.song.conditions import BY_NAME
from benchmarks.song.recognizers import ours

if TYPE_CHECKING:
    from support.corpus import Corpus

    from benchmarks.song.scorer import Row
    from benchmarks.song.song_set import SongSet

SEED = 77
SHARE = 0.5
MIN_RATES = {2.0: 0.7, 5.0: 0.85, 10.0: 0.9}
# The minimum recognition rate per family of conditions. Measured rates are 1, except for noise
# (0.88), level (0.89), pitch (0.84) and room (0.44).
MIN_OF_FAMILY = {
    "clean": 1.0, "codec": 1.0, "speed": 1.0, "tempo": 0.9, "pitch": 0.7, "noise": 0.8,
    "level": 0.8, "room": 0.3,
}  # fmt: skip
# Lower bounds for kinds with few snippets.
MIN_OF_FEW: dict[float | str, float] = {5.0: 0.8, "level": 0.65}
MAX_SIBLINGS = 0.08


@dataclass(frozen=True)
class Size:
    """The number of tracks, and of snippets per kind of damage and length."""

    tracks: int
    each: int

    def cases(self, songs: SongSet) -> list[snippets.Case]:
        played = [one.name for one in BY_NAME.values() if one.family in {"tempo", "pitch"}]
        found = snippets.reduced(songs, self.each)
        return [*found, *snippets.cells(songs, "inside", played, (5.0, 10.0), self.each + 1)]

    def least(self, what: float | str, of_many: float) -> float:
        return MIN_OF_FEW.get(what, of_many) if self == FEW else of_many

    def make(self, folder: Path) -> None:
        """Write the index's files and all snippets, which takes minutes."""
        songs = song_set.generate(folder, SEED, self.tracks, SHARE)
        source = snippets.Snippets(songs, folder / "snippets")
        with multiprocessing.get_context("fork").Pool(song_set.PROCESSES) as pool:
            pool.map(source.content, self.cases(songs), chunksize=4)
        for needless in ("masters", "beds"):
            shutil.rmtree(folder / needless)


# The minimum number of tracks for all styles and relations.
FEW, MANY = Size(15, 1), Size(24, 3)


@pytest.fixture(
    scope="module", params=[FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"]
)
def size(request: pytest.FixtureRequest) -> Size:
    chosen: Size = request.param
    return chosen


@pytest.fixture(scope="module")
def rows(corpus: Corpus, size: Size) -> list[Row]:
    makers = sorted(Path(song_set.__file__).parent.glob("*.py"))
    recipe = f"{SEED} {SHARE} {size} {[digest(one) for one in makers]}"
    folder = corpus.cache.make(f"songs-{size.tracks}", "", recipe, size.make)
    songs = song_set.SongSet(folder)
    source = snippets.Snippets(songs, folder / "snippets")
    return scorer.score(source, ours(songs), size.cases(songs))


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
@pytest.mark.parametrize("seconds", MIN_RATES)
def test_most_snippets_are_named_however_damaged(
    rows: list[Row], size: Size, seconds: float
) -> None:
    inside = [row for row in rows if row.kind == "inside" and row.seconds == seconds]
    assert len(inside) > 10 * size.each
    share = sum(row.right and row.accepted(None) for row in inside) / len(inside)
    assert share >= size.least(seconds, MIN_RATES[seconds]), [
        (row.condition, row.style) for row in inside if not (row.right and row.accepted(None))
    ]


def of_family(rows: list[Row], family: str) -> list[Row]:
    return [row for row in rows if row.kind == "inside" and BY_NAME[row.condition].family == family]


@pytest.mark.slow
@pytest.mark.parametrize("family", MIN_OF_FAMILY)
def test_each_kind_of_damage_leaves_most_of_it_recognized(
    rows: list[Row], size: Size, family: str
) -> None:
    asked = of_family(rows, family)
    assert len(asked) >= 3 * size.each
    missed = [
        (row.condition, row.seconds, row.style)
        for row in asked
        if not (row.right and row.accepted(None))
    ]
    assert 1 - len(missed) / len(asked) >= size.least(family, MIN_OF_FAMILY[family]), missed


@pytest.mark.slow
@pytest.mark.parametrize("change", ["tempo", "pitch"])
def test_what_is_played_otherwise_is_found_as_such(rows: list[Row], change: str) -> None:
    """Each change has its recognition stage. Later stages may find what earlier ones miss."""
    asked = of_family(rows, change)
    found = [row for row in asked if row.basis is not None and row.basis.change == change]
    assert len(found) >= 0.8 * len(asked)
    expected = [BY_NAME[row.condition].stretch for row in found] if change == "tempo" else []
    tempos = [row.basis.tempo for row in found if row.basis is not None]
    assert tempos[: len(expected)] == pytest.approx(expected, abs=0.011)


@pytest.mark.slow
def test_siblings_with_the_same_drum_samples_are_hardly_ever_named(rows: list[Row]) -> None:
    asked = [row for row in rows if row.kind == "siblings"]
    named = [(row.condition, row.track, row.song) for row in asked if row.accepted(None)]
    assert len(asked) >= 20
    assert len(named) <= MAX_SIBLINGS * len(asked), named


@pytest.mark.parametrize(
    ("titles", "count", "seed"),
    [
        (1000, 80, 91),
        *(pytest.param(3000, 240, seed, marks=pytest.mark.long) for seed in range(91, 100)),
    ],
)
def test_every_text_query_finds_its_song(titles: int, count: int, seed: int) -> None:
    """Typos, word order, artists and diacritics: all seeded queries among thousands of titles."""
    result = text_search.run(titles, count, seed)
    assert (result["queries"], result["found"]) == (count, count), result["missed"]
    assert result["missed"] == []


@pytest.mark.slow
def test_every_container_is_heard(rows: list[Row]) -> None:
    missed = [
        (row.condition, row.error)
        for row in rows
        if row.kind == "container" and not (row.right and row.accepted(None))
    ]
    assert not missed
