"""Unusual music folders and snippets."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from polymux._native import media
from support import generated_songs, programs
from support.commands import call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.songs.results import AddProgress

ODD = b"\xff\xfe odd\nname \x1b[31m.flac"


def deep(folder: Path) -> None:
    """Nested folders up to the maximum path length. The last one has a song."""
    here = os.open(folder, os.O_RDONLY)
    name = "d" * 200
    for _ in range(21):
        os.mkdir(name, dir_fd=here)
        there = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(os.open("song.mp3", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


@pytest.fixture
def strange(tmp_path: Path, originals: Path) -> Iterator[Path]:
    folder = tmp_path / "strange"
    (folder / "empty").mkdir(parents=True)
    (folder / "circle").symlink_to(folder)
    (folder / "self.mp3").symlink_to(folder / "self.mp3")
    (folder / "gone.mp3").symlink_to(folder / "nowhere")
    (folder / "text.mp3").write_text("no music at all\n" * 100)
    Path(os.fsdecode(os.fsencode(folder) + b"/" + ODD)).write_bytes(
        (originals / "song 0.flac").read_bytes()
    )
    video = folder / "film.mp4"
    programs.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x64:r=5:d=12", "-i",
                    originals / "song 1.mp3", "-map", "0:v", "-map", "1:a", "-shortest",
                    video)  # fmt: skip
    wav = bytearray((originals / "song 3.wav").read_bytes())
    wav[4:8] = struct.pack("<I", 300 << 20)
    at = wav.index(b"data")
    wav[at + 4 : at + 8] = struct.pack("<I", 300 << 20)
    (folder / "lying.wav").write_bytes(wav)
    samples = generated_songs.sound(5, 4.0)
    generated_songs.write(folder / "silence.wav", 0 * samples)
    generated_songs.write(folder / "moment.wav", samples[: generated_songs.RATE // 2])
    return folder


def test_a_folder_of_everything(strange: Path, tmp_path: Path, snippets: list[Path]) -> None:
    place = ("--song-index", str(tmp_path / "index"))
    done = call("songs", "add", "strange", "--json", *place, cwd=tmp_path, code=1)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    outcomes = {Path(one["path"]).name: one["status"] for one in lines[:-1]}
    odd = next(name for name in outcomes if "odd" in name)
    assert outcomes == {
        odd: "added", "film.mp4": "added", "lying.wav": "added", "silence.wav": "added",
        "moment.wav": "added", "text.mp3": "failed",
    }  # fmt: skip
    assert "\n" not in odd
    assert "\x1b" not in odd
    assert (lines[-1]["added"], lines[-1]["failed"]) == (5, 1)
    shown = call("songs", "list", *place, cwd=tmp_path).stdout.decode()
    assert len(shown.splitlines()) == 5
    assert "\x1b" not in shown
    with polymux.SongIndex(tmp_path / "index") as index:
        lengths = {os.fsencode(one.path.name): one.duration_s for one in index.songs()}
        assert lengths[b"lying.wav"] == pytest.approx(12, abs=0.1)
        assert lengths[b"film.mp4"] == pytest.approx(12, abs=0.2)
        for number, name in ((0, ODD), (1, b"film.mp4"), (3, b"lying.wav")):
            match = index.identify(snippets[number])
            assert match is not None
            assert os.fsencode(match.song.path.name) == name
        match = index.identify(strange / "film.mp4")
        assert match is not None
        assert match.song.path.name == "film.mp4"
        # Silence and very short audio must not match the silent and very short songs in the index.
        assert index.identify(strange / "silence.wav") is None
        assert index.identify(strange / "moment.wav") is None
        assert index.remove(strange) == 5


def test_tones_are_recognized_after_compression(tmp_path: Path) -> None:
    """Between the tones a WAV file has only rounding noise, which no MP3 keeps."""
    folder = tmp_path / "tunes"
    folder.mkdir()
    for seed in range(4):
        random = numpy.random.default_rng(seed)
        tones = []
        for _ in range(50):
            samples = int(random.uniform(0.2, 0.6) * generated_songs.RATE)
            time = numpy.arange(samples) / generated_songs.RATE
            pitch = 220 * 2 ** (random.integers(0, 25) / 12)
            envelope = numpy.minimum(1, time / 0.01) * numpy.exp(-4 * time)
            tones.append(envelope * numpy.sin(2 * numpy.pi * pitch * time))
        generated_songs.write(folder / f"{seed}.wav", 0.3 * numpy.concatenate(tones))
    with polymux.SongIndex(tmp_path / "index") as index:
        index.add(folder)
        for path in sorted(folder.iterdir()):
            snippet = tmp_path / "snippet.mp3"
            programs.ffmpeg("-y", "-ss", "5.3", "-t", "5", "-i", path, "-b:a", "96k", snippet)
            match = index.identify(snippet)
            assert match is not None
            assert match.song.path == path


def test_an_empty_folder_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    place = ("--song-index", str(tmp_path / "index"))
    done = call("songs", "add", "empty", *place, cwd=tmp_path)
    assert done.stderr.count(b"\n") == 1
    done = call("identify-song", "empty", *place, cwd=tmp_path, code=1)
    assert b"empty" in done.stderr


def test_folders_that_cannot_be_read_are_reported(
    tmp_path: Path, music: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path may be too long for the system or not readable."""
    deep(music)
    progress: list[AddProgress] = []
    with polymux.SongIndex(tmp_path / "index") as index:
        report = index.add(music, on_progress=progress.append)
        assert report.added == 4
        (failed,) = report.failed
        assert isinstance(failed.error, polymux.InputUnreadableError)
        assert "too long" in str(failed.error)
        assert [one.outcome for one in progress].count("failed") == 1
        assert {one.total for one in progress} == {5}
        assert progress[-1].done == 5
        # Every rescan reports the folder. Songs added from it before remain.
        assert len(index.rescan().failed) == 1
        (music / "locked").mkdir()
        scandir = os.scandir

        def forbidden(path: Any) -> Any:
            if os.fsencode(path).endswith(b"/locked"):
                raise PermissionError(13, "Permission denied", path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", forbidden)
        failures = {one.path.name[:6]: str(one.error) for one in index.rescan().failed}
        assert "Permission denied" in failures["locked"]
        assert len(failures) == 2


def test_a_renamed_file_keeps_its_number_and_is_not_listened_to(
    tmp_path: Path, music: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listened: list[Any] = []
    fingerprint = media.fingerprint_song

    def counted(source: Any, *given: Any) -> Any:
        listened.append(source)
        return fingerprint(source, *given)

    monkeypatch.setattr(media, "fingerprint_song", counted)
    with polymux.SongIndex(tmp_path / "index") as index:
        assert index.add(music).added == 4
        before = {song.title: song.id for song in index.songs()}
        (music / "sub").mkdir()
        for one in [*music.iterdir()]:
            if one.is_file():
                one.rename(music / "sub" / f"new {one.name}")
        report = index.rescan()
        assert (report.moved, report.added, report.missing, report.audio_s) == (4, 0, (), 0.0)
        (music / "sub").rename(music / "other")
        assert index.add(music).moved == 4
        assert {song.title: song.id for song in index.songs()} == before
        assert index.search("Title 1")[0].path == music / "other" / "new song 1.mp3"
        assert len(listened) == 4


@pytest.mark.parametrize("inside", [True, False])
def test_an_index_in_the_midst_of_the_music_is_none_of_it(
    tmp_path: Path, music: Path, inside: bool
) -> None:
    """The index's own files are not reported as failures. Songs next to them are added."""
    folder = music / "index" if inside else music
    for _ in range(2):
        with polymux.SongIndex(folder) as index:
            report = index.add(music)
            assert report.failed == ()
            assert report.added + report.unchanged == 4
            assert index.rescan().failed == ()


def test_an_empty_path_is_not_the_current_folder(
    tmp_path: Path, music: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes from an unset variable and would add or remove all files of the current folder."""
    monkeypatch.chdir(music)
    with polymux.SongIndex(tmp_path / "index") as index:
        for nothing in ("", [""]):
            with pytest.raises(polymux.InvalidRequestError, match=r"(?i)empty"):
                index.add(nothing)
        assert index.add(".").added == 4
        with pytest.raises(polymux.InvalidRequestError, match=r"(?i)empty"):
            index.remove("")
        assert index.count() == 4
        assert index.remove(".") == 4


def test_an_index_whose_path_is_no_text_is_refused(tmp_path: Path) -> None:
    """SQLite only supports UTF-8 paths. Music files may have any name."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    with pytest.raises(polymux.SongIndexError, match="UTF-8"):
        polymux.SongIndex(folder)
    assert not folder.exists()
