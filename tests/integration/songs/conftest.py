"""Music for the tests of the song index, created once."""

from __future__ import annotations

import shutil
from pathlib import Path

import polymux
import pytest
from support import generated_songs


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    for seed, kind in enumerate(("flac", "mp3", "ogg", "wav")):
        tags = {"title": f"Title {seed}", "artist": f"Artist {seed}", "date": f"200{seed}"}
        generated_songs.song(folder / f"song {seed}.{kind}", seed, **tags)
    return folder


@pytest.fixture
def music(originals: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals, tmp_path / "music"))


def _filled(folder: Path, music: Path) -> Path:
    with polymux.SongIndex(folder) as index:
        index.add(music, workers=1)
    return folder


@pytest.fixture
def filled_from_music(tmp_path: Path, music: Path) -> Path:
    """An index of `music`, whose files a test may change."""
    return _filled(tmp_path / "index", music)


@pytest.fixture(scope="session")
def index_of_originals(tmp_path_factory: pytest.TempPathFactory, originals: Path) -> Path:
    return _filled(tmp_path_factory.mktemp("indexes") / "index", originals)


@pytest.fixture
def filled(tmp_path: Path, index_of_originals: Path) -> Path:
    """A copy of an index of `originals`, whose files a test must not change."""
    return Path(shutil.copytree(index_of_originals, tmp_path / "index"))


@pytest.fixture(scope="session")
def snippets(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A noisy snippet of each song, and one of a song that is not in the index."""
    folder = tmp_path_factory.mktemp("snippets")
    return [generated_songs.snippet(folder, seed) for seed in (0, 1, 2, 3, 77)]
