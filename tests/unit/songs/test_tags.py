"""What files say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.media.results import Cover, MediaInfo, StreamInfo
from polymux.songs.tags import SongTags, cover_beside, named, tags_of

if TYPE_CHECKING:
    from pathlib import Path


def info(
    tags: dict[str, str], of_stream: dict[str, str] | None = None, cover: Cover | None = None
) -> MediaInfo:
    stream = StreamInfo(0, "audio", "mp3", 1.0, None, 44100, 2, "stereo", "", 0, 0, 0, "",
                        is_default=True, is_cover=False, encrypted=False,
                        tags=of_stream or {})  # fmt: skip
    return MediaInfo("mp3", "", 1.0, None, None, None, (stream,), 0, tags, (), cover)


def test_the_stream_knows_best() -> None:
    found = tags_of(b"/a.ogg", info({"TITLE": "outer", "album": "B"}, {"title": "inner"}))
    assert (found.title, found.album) == ("inner", "B")


@pytest.mark.parametrize(
    "name", ["MUSICBRAINZ_TRACKID", "MusicBrainz Track Id", "musicbrainz_recordingid"]
)
def test_the_recording_s_id_under_its_names(name: str) -> None:
    number = "B10BBBFC-CF9E-42E0-BE17-E2C3E1D2600D"
    assert tags_of(b"/a.mp3", info({name: number})).mbid == number.lower()
    assert tags_of(b"/a.mp3", info({name: "nothing"})).mbid == ""
    assert tags_of(b"/a.mp3", info({"MusicBrainz Release Track Id": number})).mbid == ""


@pytest.mark.parametrize(
    ("date", "year"), [("2024-05-01", 2024), ("1/2/1987", 1987), ("12345", None), ("", None)]
)
def test_years(date: str, year: int | None) -> None:
    assert tags_of(b"/a.mp3", info({"date": date})).year == year


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"/m/01 - Queen - Innuendo.mp3", ("Queen", "Innuendo")),
        (b"/m/Queen - Innuendo - Live.mp3", ("Queen", "Innuendo - Live")),
        (b"/m/07. Yesterday.mp3", ("", "Yesterday")),
        (b"/m/1999.mp3", ("", "1999")),
        (b"/m/snake_case_name.flac", ("", "snake case name")),
        (b"/m/\xff\xfe.mp3", ("", "\ufffd\ufffd")),
        (b"/m/-.mp3", ("", "-")),
    ],
)
def test_names_of_files(name: bytes, expected: tuple[str, str]) -> None:
    assert named(name) == expected


def test_hostile_tags_are_tidied() -> None:
    found = tags_of(b"/a.mp3", info({"title": "a\x00\x1b[2J" + "b" * 100_000, "artist": "\n"}))
    assert found.title.isprintable()
    assert len(found.title) <= 500
    assert found.artist == ""


def test_covers(tmp_path: Path) -> None:
    song = bytes(tmp_path / "a.mp3")
    assert cover_beside(song) is None
    for name in ("front.png", "Folder.JPG", "other.jpg", "cover.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert cover_beside(song) == bytes(tmp_path / "Folder.JPG")
    (tmp_path / "cover.jpeg").write_bytes(b"x")
    assert cover_beside(song) == bytes(tmp_path / "cover.jpeg")
    embedded = Cover("image/png", "", 3, b"x")
    assert tags_of(song, info({}, cover=embedded)).cover == b"embedded"
    assert isinstance(tags_of(song, info({})), SongTags)
