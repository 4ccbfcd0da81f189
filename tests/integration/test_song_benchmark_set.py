"""A small set of songs: what lies on the disk, what its snippets hold, and a scorer that asks."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polymux
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.song import catalogue, chromaprint, conditions, scorer, signals, snippets
from benchmarks.song.recognisers import Answer
from benchmarks.song.snippets import Case, Snippets

if TYPE_CHECKING:
    from benchmarks.song.catalogue import SongSet

pytestmark = [pytest.mark.long, pytest.mark.slow]
TRACKS, SHARE = 15, 0.3


@pytest.fixture(scope="module")
def songs(tmp_path_factory: pytest.TempPathFactory) -> SongSet:
    folder = tmp_path_factory.mktemp("songs") / "set"
    return catalogue.generate(folder, 21, TRACKS, SHARE)


def test_the_catalogue_is_files_with_tags(songs: SongSet) -> None:
    assert len(list((songs.folder / "catalogue").iterdir())) == len(songs.catalogue) == TRACKS
    for track in songs.catalogue:
        info = polymux.probe(songs.folder / track.encoded)
        told = {key.lower(): value for key, value in info.tags.items()}
        for stream in info.streams:
            told |= {key.lower(): value for key, value in stream.tags.items()}
        assert (told["title"], told["artist"]) == (track.title, track.artist)
        assert info.duration_s == pytest.approx(track.seconds, abs=0.15)


def test_every_condition_gives_the_length_and_the_same_bytes_again(songs: SongSet) -> None:
    kept = [one for one in songs.catalogue if one.relation == "song" and one.seconds > 20]
    for name in conditions.BY_NAME:
        case = Case("inside", name, 2.0, 3, kept[0].name)
        content = Snippets(songs).content(case)
        sound = signals.wav_sound(content)
        assert len(sound) == 2 * signals.RATE_HZ
        assert 1e-4 < float(np.abs(sound).max()) <= 1.0, name
        assert signals.power(sound[-len(sound) // 4 :]) > 0
        assert Snippets(songs).content(case) == content, name


def test_uploads_are_written_with_their_endings(songs: SongSet, tmp_path: Path) -> None:
    cases = [
        one for one in snippets.reduced(songs, 1) if one.kind in {"container", "junk", "broken"}
    ]
    paths = [Snippets(songs).write(one, tmp_path) for one in cases]
    endings = {path.suffix for path in paths}
    assert {".mp4", ".mka", ".wav", ".flac", ".webm", ".mp3"} <= endings
    for case, path in zip(cases, paths, strict=True):
        assert Snippets(songs).content(case) == path.read_bytes()
        if case.kind != "broken":
            assert len(chromaprint.decoded(path)) / 2 / chromaprint.RATE_HZ > 3.0


def test_scoring_counts_what_a_recogniser_says(songs: SongSet, tmp_path: Path) -> None:
    cases = snippets.reduced(songs, 1)
    known = {
        hashlib.sha256(Snippets(songs).content(one)).digest(): one.track
        for one in cases
        if one.kind in {"inside", "container"}
    }

    def all_knowing(content: bytes) -> Answer:
        found = known.get(hashlib.sha256(content).digest())
        return Answer(found, 1.0 if found else 0.0, found)

    def stubborn(content: bytes) -> Answer:
        if not content:
            raise ValueError("nothing was uploaded")
        return Answer(songs.catalogue[0].name, 1.0, songs.catalogue[0].name)

    made = Snippets(songs, tmp_path / "kept")
    rows = scorer.score(made, all_knowing, cases, tmp_path / "rows.jsonl")
    assert scorer.load(tmp_path / "rows.jsonl") == rows
    assert len(rows) == len(cases) == len(list((tmp_path / "kept").iterdir()))
    inside = scorer.summed([one for one in rows if one.inside])
    assert (inside.recall, inside.wrong) == (100.0, 0)
    assert not any(wrong for wrong, _ in scorer.false_positives(rows).values())

    rows = scorer.score(made, stubborn, cases)
    for kind, (wrong, asked) in scorer.false_positives(rows).items():
        assert asked > 0
        assert wrong == asked - (kind == "broken")
    assert [one.error for one in rows if one.condition == "empty"] == [
        "ValueError: nothing was uploaded"
    ]
    inside = scorer.summed([one for one in rows if one.inside])
    assert inside.wrong == inside.asked - inside.accepted > 0
