"""Songs without a server: `Local`, `AsyncLocal` and the commands."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import polymux
import pytest
from polymux.cli.doctor import findings
from polymux.errors import BadRequestError, NoBackendError, NoMatchError
from support import generated_songs, served_songs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return served_songs.made(tmp_path_factory.mktemp("songs"))


def local(index: Any) -> polymux.Local:
    return polymux.Local(engines={}, song_index=index)


def file_of(url: str) -> Path:
    parts = urlsplit(url)
    assert parts.scheme == "file"
    return Path(unquote(parts.path))


def test_a_piece_of_a_song_is_named(folder: Path, snippets: list[Path]) -> None:
    async def asynchronously() -> Any:
        async with polymux.AsyncLocal(engines={}, song_index=folder) as here:
            return (await here.identify_song(snippets[2])).json(), (
                await here.search_music("blue danube")
            ).json()

    with local(folder) as here:
        song = here.identify_song(snippets[2])
        assert song.name == "Blue Danube - Strauss"
        assert file_of(song.url).name == "c.ogg"
        assert here.identify_song(snippets[2].read_bytes()) == song
        with snippets[2].open("rb") as file:
            assert here.identify_song(file) == song
        found = here.search_music("blue danube")
        assert [one.name for one in found] == [song.name]
    by_loop, searched = asyncio.run(asynchronously())
    assert (by_loop["song_name"], by_loop["songid_url"]) == (song.name, song.url)
    assert searched == [by_loop | {"song_image": searched[0]["song_image"]}]


def test_covers_are_files_that_can_be_shown(folder: Path, snippets: list[Path]) -> None:
    with local(folder) as here:
        embedded = file_of(here.identify_song(snippets[0]).image_url)
        assert embedded.suffix == ".png"
        assert embedded.read_bytes().startswith(b"\x89PNG")
        beside = here.identify_song(snippets[1])
        assert beside.url == f"https://musicbrainz.org/recording/{served_songs.MBID}"
        assert file_of(beside.image_url).parts[-2:] == ("known", "cover.png")
        drawn = file_of(here.identify_song(snippets[2]).image_url)
        assert drawn.suffix == ".svg"
        assert ">S</text>" in drawn.read_text()
        changed_at = drawn.stat().st_mtime_ns
        assert file_of(here.search_music("blue danube")[0].image_url) == drawn
        assert drawn.stat().st_mtime_ns == changed_at
    assert not drawn.exists()


def test_what_is_no_song_of_the_index(folder: Path, snippets: list[Path]) -> None:
    with local(folder) as here:
        with pytest.raises(NoMatchError):
            here.identify_song(snippets[4])
        assert len(here.search_music("entirely something else")) == 0
        with pytest.raises(polymux.UnsupportedMediaError):
            here.identify_song(b"this is a text, whatever its name says\n" * 20)
        with pytest.raises(BadRequestError, match="title"):
            here.search_music(" \t ")


def test_an_index_that_is_not_there_yet(folder: Path, tmp_path: Path, snippets: list[Path]) -> None:
    place = tmp_path / "later"
    with local(place) as here:
        with pytest.raises(NoBackendError, match="polymux songs add DIR"):
            here.search_music("blue danube")
        assert not place.exists()
        shutil.copytree(folder, place)
        assert here.identify_song(snippets[2]).name == "Blue Danube - Strauss"
        shutil.move(place, tmp_path / "gone")
        with pytest.raises(NoBackendError):
            here.identify_song(snippets[2])
        source = generated_songs.song(tmp_path / "other.flac", 2, title="Other")
        with polymux.SongIndex(place) as index:
            index.add(source)
        assert here.identify_song(snippets[2]).name == "Other"


def test_the_default_index(
    folder: Path, tmp_path: Path, snippets: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYMUX_SONG_INDEX", str(tmp_path / "none"))
    with local(None) as here, pytest.raises(NoBackendError) as caught:
        here.identify_song(snippets[2])
    for word in ("polymux songs add DIR", "[song_recognition]"):
        assert word in str(caught.value)
    assert findings()["songs"]["ok"] is False
    assert not (tmp_path / "none").exists()
    monkeypatch.setenv("POLYMUX_SONG_INDEX", str(folder))
    with local(None) as here:
        assert here.identify_song(snippets[2]).name == "Blue Danube - Strauss"
    assert findings()["songs"]["songs"] == 4


def test_a_configuration_that_is_wrong_keeps_nobody_from_other_work(
    tmp_path: Path, snippets: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLYMUX_SONG_INDEX", raising=False)
    monkeypatch.setenv("POLYMUX_CONFIG", str(tmp_path / "wrong.toml"))
    (tmp_path / "wrong.toml").write_text("[songs\n")
    with local(None) as here:
        assert here.convert_to_mp3(snippets[0], bitrate="64k").content_type == "audio/mpeg"


@pytest.mark.parametrize("statement", ["", "PRAGMA application_id = 7"])
def test_its_owner_sees_what_is_wrong_with_it(
    filled: Path, snippets: list[Path], statement: str
) -> None:
    place = filled.rename(filled.with_name("place-7"))
    if statement:
        with sqlite3.connect(place / "songs.sqlite3") as connection:
            connection.execute(statement)
        connection.close()
    else:
        (place / "songs.sqlite3").write_bytes(b"this is no database, and long enough" * 200)
    with local(place) as here, pytest.raises(polymux.SongIndexError, match="place-7"):
        here.identify_song(snippets[2])


def test_it_is_never_written(folder: Path, tmp_path: Path, snippets: list[Path]) -> None:
    """Adding needs the lock. Searching neither waits for it nor takes it."""
    place = tmp_path / "copy"
    shutil.copytree(folder, place)
    shutil.rmtree(place / "segments")
    (place / "lock").unlink(missing_ok=True)
    with local(place) as here:
        assert here.identify_song(snippets[2]).name == "Blue Danube - Strauss"
        assert not (place / "lock").exists()
        assert not any((place / "segments").iterdir())
        with polymux.SongIndex(place) as index:
            index.remove(index.search("blue danube")[0])
        with pytest.raises(NoMatchError):
            here.identify_song(snippets[2])
