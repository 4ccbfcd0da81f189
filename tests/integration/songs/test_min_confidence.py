"""The minimum confidence for a match, set for a call, an index, Local or a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import polymux
import pytest
from polymux.errors import NoMatchError
from support import generated_songs
from support.commands import call
from support.generated_songs import RATE
from support.served_songs import ask, served

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT = 0.85


class Doubtful(NamedTuple):
    """An index, and snippets of its song with increasing noise.

    Attributes:
        index: The folder of the index.
        refused: A snippet with a confidence slightly below the default.
        named: A snippet with a confidence slightly above it.
    """

    index: Path
    refused: Path
    named: Path


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Doubtful:
    folder = tmp_path_factory.mktemp("doubtful")
    song = generated_songs.sound(0)
    piece = song[3 * RATE : 6 * RATE]
    noise = numpy.random.default_rng(5).normal(0, 1, len(piece))
    found: dict[bool, Path] = {}
    with polymux.SongIndex(folder / "index") as index:
        index.add(generated_songs.write(folder / "song.wav", song))
        for hundredths in range(90, 130):
            samples = piece + hundredths / 100 * noise
            loudest = numpy.abs(samples).max()
            path = generated_songs.write(folder / f"{hundredths}.wav", 0.9 * samples / loudest)
            match = index.identify(path, min_confidence=0.5)
            for named, (low, high) in {False: (0.5, 0.83), True: (0.87, 0.98)}.items():
                if match is not None and low < match.confidence < high:
                    found.setdefault(named, path)
            if len(found) == 2:
                break
    return Doubtful(folder / "index", found[False], found[True])


def test_a_call_says_how_sure_it_wants_to_be(doubtful: Doubtful) -> None:
    with polymux.SongIndex(doubtful.index) as index:
        assert index.identify(doubtful.refused) is None
        assert index.identify(doubtful.refused, min_confidence=DEFAULT) is None
        match = index.identify(doubtful.refused, min_confidence=0.5)
        assert match is not None
        assert 0.5 <= match.confidence < DEFAULT
        match = index.identify(doubtful.named)
        assert match is not None
        assert DEFAULT <= match.confidence < 0.99
        assert index.identify(doubtful.named, min_confidence=0.99) is None


def test_an_index_has_one_that_a_call_overrides(doubtful: Doubtful) -> None:
    with polymux.SongIndex(doubtful.index, min_confidence=0.5) as index:
        assert index.identify(doubtful.refused) is not None
        assert index.identify(doubtful.refused, min_confidence=DEFAULT) is None
        # `Local` uses the minimum of the given index.
        with polymux.Local(song_index=index) as local:
            assert local.identify_song(doubtful.refused).name == "song"
    with polymux.Local(song_index=doubtful.index) as local, pytest.raises(NoMatchError):
        local.identify_song(doubtful.refused)


def test_a_server_goes_by_its_settings(doubtful: Doubtful, tmp_path: Path) -> None:
    for least, refused, named in ((0.5, 200, 200), (None, 404, 200), (0.99, 404, 404)):
        songs = {"min_confidence": least}
        with served(tmp_path / str(least), doubtful.index, songs=songs) as server:
            assert ask(server, doubtful.refused).status == refused
            assert ask(server, doubtful.named).status == named


def test_the_command_says_it(doubtful: Doubtful, tmp_path: Path) -> None:
    place = ("--song-index", str(doubtful.index))
    asked = ("identify-song", str(doubtful.refused))
    call(*asked, *place, cwd=tmp_path, code=5)
    output = call(*asked, *place, "--min-confidence", "0.5", cwd=tmp_path).stdout
    assert output.startswith(b"song\t")
    refused = call(*asked, *place, "--min-confidence", "1", cwd=tmp_path, code=2).stderr
    assert b"0.99" in refused
    # A server has its own setting, so the option would have no effect.
    error = call(*asked, "--min-confidence", "0.5", cwd=tmp_path, code=2).stderr
    assert b"--min-confidence" in error


@pytest.mark.parametrize("wrong", [0.49, 1.0, float("nan"), "0.9", True])
def test_what_is_no_confidence(doubtful: Doubtful, tmp_path: Path, wrong: Any) -> None:
    kind = TypeError if isinstance(wrong, (str, bool)) else polymux.InvalidRequestError
    with pytest.raises(kind, match="min_confidence"):
        polymux.SongIndex(tmp_path / "none", min_confidence=wrong)
    assert not (tmp_path / "none").exists()
    with (
        polymux.SongIndex(doubtful.index) as index,
        pytest.raises(kind, match="min_confidence"),
    ):
        index.identify(doubtful.named, min_confidence=wrong)
