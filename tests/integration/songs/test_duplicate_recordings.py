"""Several files of one recording: which one is named and which songs follow."""

from __future__ import annotations

from pathlib import Path

import numpy
import polymux
import pytest
from support import generated_songs
from support.generated_songs import RATE

LENGTH_S = 34.0


def noisy(folder: Path, seed: int, begin_s: float, draw: int) -> Path:
    """Three seconds with so much noise that the best matching file is random."""
    whole = generated_songs.sound(seed, LENGTH_S)
    piece = whole[int(begin_s * RATE) : int((begin_s + 3) * RATE)]
    noise = numpy.random.default_rng(draw).normal(0, 0.1, len(piece))
    return generated_songs.write(
        folder / f"snippet {draw}.wav", numpy.clip(0.7 * piece + noise, -1, 1)
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One recording in three codecs. The original is not the first by name."""
    folder = tmp_path_factory.mktemp("music")
    names = ("original.flac", "copy.mp3", "third.ogg")
    return [
        generated_songs.song(folder / name, 31, LENGTH_S, title=Path(name).stem) for name in names
    ]


def test_of_several_files_of_a_recording_the_first_is_named(
    tmp_path: Path, files: list[Path]
) -> None:
    asked = [noisy(tmp_path, 31, 1.7 + 3.1 * draw, draw) for draw in range(10)]
    with polymux.SongIndex(tmp_path / "index") as index:
        for one in files:
            assert index.add(one).added == 1
        songs = {song.title: song for song in index.songs()}
        assert len({song.group_id for song in songs.values()}) == 1
        # Otherwise the test does not prove that the choice is not random.
        recordings = {
            found["song_id"]
            for found in (candidates(index, one)[0] for one in asked)
            if found["accepted"]
        }
        assert len(recordings) > 1
        matches = [index.identify(one) for one in asked]
        named = [match for match in matches if match is not None]
        assert len(named) > 5
        assert {match.song.title for match in named} == {"original"}
        for draw, match in enumerate(matches):
            if match is not None:
                assert match.offset_s == pytest.approx(1.7 + 3.1 * draw, abs=0.2)
                assert match.runner_up is None
        index.remove(songs["original"])
        again = [match for match in map(index.identify, asked) if match is not None]
        assert {match.song.title for match in again} == {"copy"}


def candidates(index: polymux.SongIndex, snippet: Path) -> list[dict[str, object]]:
    from polymux._native import media

    query = media.song_query(("path", str(snippet).encode(), "a"), media.Limits())["query"]
    return index._index.current().candidates(query)


def test_copies_leave_a_place_for_the_next_song(tmp_path: Path, files: list[Path]) -> None:
    """Three files of one recording, and another song that the snippet also contains."""
    following = generated_songs.song(tmp_path / "z.flac", 32, LENGTH_S, title="Next")
    one, other = (generated_songs.sound(seed, LENGTH_S) for seed in (31, 32))
    begin, end = int(8 * RATE), int(16 * RATE)
    both = generated_songs.write(
        tmp_path / "both.wav", 0.6 * one[begin:end] + 0.35 * other[begin:end]
    )
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.add([*files, following], workers=1).added == 4
        assert index.stats().groups == 2
        match = index.identify(both)
    assert match is not None
    assert match.song.title == "original"
    assert match.runner_up is not None
    assert match.runner_up.song.title == "Next"
    assert 0 < match.runner_up.confidence < match.confidence


@pytest.mark.parametrize(("length_s", "groups"), [(2.0, 2), (5.0, 1)])
def test_files_of_a_few_seconds_are_too_short_to_be_a_group(
    tmp_path: Path, length_s: float, groups: int
) -> None:
    """Applies to files in different codecs. Identical files form a group at any length."""
    music = tmp_path / "music"
    for kind in ("flac", "mp3"):
        generated_songs.song(music / f"jingle.{kind}", 501, length_s, title=kind)
    (music / "copy.flac").write_bytes((music / "jingle.flac").read_bytes())
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.add(music).added == 2
        assert index.stats().songs == 3
        assert index.stats().groups == groups
