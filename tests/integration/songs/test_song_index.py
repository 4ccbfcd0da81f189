"""An index of real files: adding, finding and changing songs."""

from __future__ import annotations

import csv
import json
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux._util import sqlite
from support import generated_songs, programs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.songs.results import AddProgress


@pytest.fixture
def index(request: pytest.FixtureRequest) -> Iterator[polymux.SongIndex]:
    """An index of `music` if the test uses it, otherwise of files that never change."""
    has_music = "music" in request.fixturenames
    name = "filled_from_music" if has_music else "filled"
    with polymux.SongIndex(request.getfixturevalue(name)) as index:
        yield index


def titles(index: polymux.SongIndex) -> dict[str, int]:
    return {song.title: song.id for song in index.songs()}


def named(index: polymux.SongIndex, snippet: Path) -> polymux.IndexedSong:
    match = index.identify(snippet)
    assert match is not None
    return match.song


def test_songs_are_named_by_pieces_of_them(index: polymux.SongIndex, snippets: list[Path]) -> None:
    for number in range(4):
        match = index.identify(snippets[number])
        assert match is not None
        assert match.song.title == f"Title {number}"
        assert match.song.artist == f"Artist {number}"
        assert match.song.year == 2000 + number
        assert match.song.duration_s == pytest.approx(12, abs=0.1)
        assert match.offset_s == pytest.approx(3.3, abs=0.1)
        assert match.speed == pytest.approx(1, abs=0.01)
        assert 0.5 < match.confidence <= 1
        assert match.runner_up is None or match.runner_up.confidence < match.confidence
    assert index.identify(snippets[4]) is None
    with snippets[1].open("rb") as file:
        match = index.identify(file)
    assert match is not None
    assert match.to_dict()["song"]["title"] == "Title 1"


def test_a_second_pass_listens_to_nothing(index: polymux.SongIndex, music: Path) -> None:
    report = index.add(music)
    assert (report.added, report.unchanged, report.audio_s) == (0, 4, 0.0)
    for one in music.iterdir():
        os.utime(one, ns=(1, 1))
    report = index.add([music, music / "song 0.flac"])
    assert (report.unchanged, report.updated, report.audio_s) == (4, 0, 0.0)


def test_files_that_are_no_music_stop_nothing(tmp_path: Path, music: Path) -> None:
    (music / "text.mp3").write_text("this is no music")
    (music / "empty.flac").touch()
    (music / "cover.jpg").write_bytes(b"picture")
    (music / ".hidden.mp3").write_text("hidden")
    os.mkfifo(music / "fifo.mp3")
    with polymux.SongIndex(tmp_path / "index") as index:
        report = index.add(music)
        assert report.added == 4
        failed = {one.path.name: one.error for one in report.failed}
        assert set(failed) == {"text.mp3", "empty.flac"}
        assert isinstance(failed["text.mp3"], polymux.UnsupportedMediaError)
        report = index.add(music / "cover.jpg")
        assert [one.path.name for one in report.failed] == ["cover.jpg"]
        with pytest.raises(polymux.InputNotFoundError):
            index.add(music / "nothing.mp3")
        assert {Path(song.cover or "").name for song in index.songs()} == {"cover.jpg"}


def test_names_of_any_bytes_are_exported_and_removed(tmp_path: Path, originals: Path) -> None:
    music = tmp_path / "music" / "a"
    music.mkdir(parents=True)
    odd = os.fsencode(music) + b"/\xff\xfe odd \n.flac"
    shutil.copy(originals / "song 0.flac", odd)
    shutil.copy(originals / "song 1.mp3", music / "日本語 ünï.mp3")
    with polymux.SongIndex(tmp_path / "index") as index:
        report = index.add(music.parent)
        assert (report.added, report.duplicates, report.failed) == (2, 0, ())
        assert os.fsencode(index.search("Title 0")[0].path) == odd
        index.export(tmp_path / "songs.json")
        index.export(tmp_path / "songs.csv", "csv")
        assert len(json.loads((tmp_path / "songs.json").read_text())) == 2
        with (tmp_path / "songs.csv").open(newline="") as file:
            assert {one["title"] for one in csv.DictReader(file)} == {"Title 0", "Title 1"}
        assert index.remove(os.fsdecode(odd)) == 1


def test_other_tags_are_the_same_recording(
    index: polymux.SongIndex, music: Path, snippets: list[Path]
) -> None:
    number = titles(index)["Title 0"]
    path, again = music / "song 0.flac", music / "again.flac"
    programs.ffmpeg("-i", path, "-c", "copy", "-metadata", "title=Renamed", again)
    again.replace(path)
    report = index.add(path)
    assert (report.updated, report.added) == (1, 0)
    assert titles(index)["Renamed"] == number
    assert index.stats().recordings == 4
    assert index.search("Title 0")[:1] != index.search("Renamed")[:1]
    assert named(index, snippets[0]).title == "Renamed"


def test_another_recording_in_the_place_of_a_file(
    index: polymux.SongIndex, music: Path, snippets: list[Path]
) -> None:
    """The file keeps its ID and leaves the group of its former copy."""
    number = titles(index)["Title 0"]
    shutil.copy(music / "song 0.flac", music / "zz copy.flac")
    index.add(music)
    assert len({song.group_id for song in index.songs()}) == 4
    generated_songs.song(music / "song 0.flac", 77, title="Another")
    assert index.rescan().updated == 1
    assert titles(index)["Another"] == number
    assert len({song.group_id for song in index.songs()}) == 5
    assert named(index, snippets[0]).path.name == "zz copy.flac"
    assert named(index, snippets[4]).id == number


def test_copies_are_one_group(index: polymux.SongIndex, music: Path, snippets: list[Path]) -> None:
    first = titles(index)["Title 2"]
    shutil.copy(music / "song 2.ogg", music / "copy.ogg")
    report = index.rescan()
    assert (report.duplicates, report.added) == (1, 0)
    assert len({song.group_id for song in index.songs()}) == 4
    assert len(index.search("Title 2", 50)) == len(index.search("Title 1", 50))
    assert named(index, snippets[2]).id == first
    assert index.remove(first) == 1
    copy = named(index, snippets[2])
    assert copy.path.name == "copy.ogg"
    assert index.remove(copy) == 1
    assert index.identify(snippets[2]) is None


def test_files_that_are_gone_stay_until_they_are_removed(
    index: polymux.SongIndex, music: Path, snippets: list[Path]
) -> None:
    before = titles(index)
    (music / "song 3.wav").unlink()
    report = index.rescan()
    assert [song.title for song in report.missing] == ["Title 3"]
    assert [song.title for song in index.check().missing] == ["Title 3"]
    assert index.identify(snippets[3]) is not None
    assert index.remove(music) == 4
    assert index.identify(snippets[3]) is None
    assert index.rescan().added == 0
    assert index.check().is_whole
    index.add(music)
    assert min(titles(index).values()) > max(before.values())  # IDs are never reused.


def test_a_folder_that_is_not_there_now_is_no_failure(
    index: polymux.SongIndex, music: Path, snippets: list[Path]
) -> None:
    """For example on an unmounted disk: songs remain, are reported missing and return later."""
    away = music.rename(music.with_name("unmounted"))
    report = index.rescan()
    assert (len(report.missing), report.failed) == (4, ())
    assert index.identify(snippets[3]) is not None
    away.rename(music)
    report = index.rescan()
    assert (report.unchanged, report.missing, report.failed) == (4, (), ())


def test_it_goes_on_from_where_it_was_ended(tmp_path: Path, music: Path) -> None:
    with polymux.SongIndex(tmp_path / "index") as index:
        cancel = threading.Event()
        report = index.add(music, workers=1, cancel=cancel, on_progress=lambda _: cancel.set())
        assert report.cancelled
        assert 1 <= report.added < 4

        def refuse(now: AddProgress) -> None:
            if now.outcome == "added":
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            index.add(music, on_progress=refuse)
        report = index.add(music)
        assert report.added + report.unchanged == 4
        assert report.unchanged >= 2


def test_a_cover_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    programs.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=16x16", "-frames:v", "1", picture)
    generated_songs.song(tmp_path / "plain.flac", 5)
    programs.ffmpeg("-i", tmp_path / "plain.flac", "-i", picture, "-map", "0", "-map", "1",
                    "-c", "copy", "-disposition:v", "attached_pic",
                    tmp_path / "music.flac")  # fmt: skip
    with polymux.SongIndex(tmp_path / "index") as index:
        index.add(tmp_path / "music.flac")
        (song,) = index.songs()
        assert song.cover == "embedded"
        cover = song.read_cover()
        assert cover is not None
        assert cover.data == picture.read_bytes()


def test_the_older_library_keeps_no_log(
    tmp_path: Path, music: Path, snippets: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with polymux.SongIndex(tmp_path / "index") as index:
        index.add(music / "song 0.flac")
    monkeypatch.setattr("polymux._util.sqlite.apsw", None)
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.stats().library.startswith("sqlite3")
        assert index.add(music).added == 3
        assert not (tmp_path / "index" / "songs.sqlite3-wal").exists()
        assert index.identify(snippets[2]) is not None
        assert index.search("titel 3")
        assert index.check().is_whole
    monkeypatch.undo()
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.search("Title 3")
        assert index.check().is_whole


def test_a_child_opens_its_own(index: polymux.SongIndex) -> None:
    child = os.fork()
    if child == 0:
        try:
            index.search("title")
        except polymux.InvalidRequestError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert index.search("title 1")


@pytest.fixture
def of_one(tmp_path: Path, music: Path) -> Path:
    folder = tmp_path / "index"
    with polymux.SongIndex(folder) as index:
        index.add(music / "song 0.flac")
    return folder


@pytest.mark.parametrize("library", ["apsw", "sqlite3"])
def test_who_writes_meanwhile_is_no_damage(
    of_one: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    if library == "sqlite3":
        monkeypatch.setattr(sqlite, "apsw", None)
    monkeypatch.setattr(sqlite, "_MAX_WAIT_MS", 50)
    with polymux.SongIndex(of_one) as index, polymux.SongIndex(of_one) as other:
        assert index.check().is_whole
        with other._database.transaction():
            other._database.writer.rows("UPDATE songs SET year = 1999")
            with pytest.raises(polymux.SongIndexError) as caught:
                index.check()
        assert caught.value.code == "song_index_busy"
        assert index.check().is_whole
