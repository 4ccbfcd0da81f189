"""Recordings of any length, from jingles of a second to mixes of hours."""

from __future__ import annotations

import wave
from typing import TYPE_CHECKING

import numpy
import polymux
import pytest
from support import generated_songs, programs
from support.generated_songs import RATE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PIECE_S = 60


def written(path: Path, pieces: Iterable[numpy.ndarray]) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        for samples in pieces:
            file.writeframes((samples * 32_000).astype("<i2").tobytes())
    return path


def mix(path: Path, pieces: int) -> Path:
    sounds = (generated_songs.sound(1_000 + seed, PIECE_S) for seed in range(pieces))
    return written(path, sounds)


def cut(folder: Path, seed: int, begin_s: float, length_s: float) -> Path:
    samples = generated_songs.sound(seed, PIECE_S)
    piece = samples[int(begin_s * RATE) : int((begin_s + length_s) * RATE)]
    return generated_songs.write(folder / f"{seed}-{begin_s}.wav", piece)


@pytest.mark.parametrize(
    "minutes",
    [2, pytest.param(180, marks=pytest.mark.long), pytest.param(300, marks=pytest.mark.long)],
)
def test_a_mix(tmp_path: Path, minutes: int) -> None:
    """Snippets are located within 0.1 s. Five hours are stored as two segments of one song."""
    path = mix(tmp_path / "mix.wav", minutes)
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.add(path).added == 1
        path.unlink()
        for minute in {0, minutes // 2, minutes - 1}:
            match = index.identify(cut(tmp_path, 1_000 + minute, 21.7, 6.0))
            assert match is not None
            assert match.song.duration_s == pytest.approx(minutes * 60, abs=0.1)
            assert match.offset_s == pytest.approx(minute * 60 + 21.7, abs=0.1)
        assert index.identify(cut(tmp_path, 1, 21.7, 6.0)) is None


def test_a_long_recording_is_written_without_apsw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction exceeds the connection's cache, which would block readers."""
    monkeypatch.setattr("polymux._util.sqlite.apsw", None)
    path = mix(tmp_path / "mix.wav", 2)
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.stats().library.startswith("sqlite3")
        index._database.writer.rows("PRAGMA cache_size = 4")
        assert index.add(path).added == 1
        assert index.identify(cut(tmp_path, 1_001, 21.7, 6.0)) is not None


@pytest.mark.parametrize("length_s", [1.0, 3.5])
def test_a_jingle_is_added_and_named(tmp_path: Path, length_s: float) -> None:
    """A second is too short for certainty: it may stay unnamed, but must not match another."""
    jingles = [
        generated_songs.write(
            tmp_path / f"jingle {seed}.wav", generated_songs.sound(2_000 + seed, length_s)
        )
        for seed in range(6)
    ]
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.add(jingles).added == 6
        named = [index.identify(one) for one in jingles]
    right = [
        one is not None and one.song.path == path for one, path in zip(named, jingles, strict=True)
    ]
    assert all(one is None or ok for one, ok in zip(named, right, strict=True))
    assert sum(right) >= 5


def test_a_snippet_that_is_longer_than_its_jingle_names_it(tmp_path: Path) -> None:
    jingle = generated_songs.sound(2_100, 4.0)
    path = generated_songs.write(tmp_path / "jingle.wav", jingle)
    around = numpy.zeros(5 * RATE)
    longer = generated_songs.write(
        tmp_path / "longer.wav", numpy.concatenate([around, jingle, around])
    )
    with polymux.SongIndex(tmp_path / "index") as index:
        index.add(path)
        match = index.identify(longer)
    assert match is not None
    assert match.offset_s == pytest.approx(-5.0, abs=0.1)


@pytest.mark.parametrize(("begin_s", "is_heard"), [(560.0, True), (605.0, False)])
def test_of_a_long_upload_ten_minutes_are_heard(
    tmp_path: Path, begin_s: float, is_heard: bool
) -> None:
    """Audio after the first ten minutes of an upload is ignored (V30)."""
    song = generated_songs.sound(3)
    before, after = (numpy.zeros(int(seconds * RATE)) for seconds in (begin_s, 120))
    path = written(tmp_path / "long.wav", (before, song, after))
    with polymux.SongIndex(tmp_path / "index") as index:
        index.add(generated_songs.write(tmp_path / "song.wav", song))
        match = index.identify(path)
    assert (match is not None) == is_heard


def test_a_file_whose_channels_are_opposite_is_added(tmp_path: Path) -> None:
    """The mono mix of its channels is silent, so the index must use a single channel."""
    plain = generated_songs.write(tmp_path / "plain.wav", generated_songs.sound(2))
    opposite = tmp_path / "opposite.mp3"
    programs.ffmpeg("-i", plain, "-af", "pan=stereo|c0=c0|c1=-1*c0", opposite)
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.add(opposite).added == 1
        for snippet in (generated_songs.snippet(tmp_path, 2), opposite):
            match = index.identify(snippet)
            assert match is not None
            assert match.song.path == opposite


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_a_file_with_next_to_no_sound_is_no_song_to_be_found(
    tmp_path: Path, seconds: float
) -> None:
    path = generated_songs.write(tmp_path / "short.wav", numpy.zeros(int(seconds * RATE)))
    with polymux.SongIndex(tmp_path / "index") as index:
        report = index.add(path)
        assert report.added + len(report.failed) == 1
        assert index.identify(cut(tmp_path, 3, 1.0, 4.0)) is None
