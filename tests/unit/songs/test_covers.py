from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from polymux.media.results import Cover, MediaInfo, StreamInfo
from polymux.songs.pages import DRAWN, cover_of, drawn, initials, picture_type, song_page
from polymux.songs.results import IndexedSong
from polymux.songs.tags import SongTags, cover_beside, named, tags_of


def song(title: str = "Title", artist: str = "", cover: str | None = None) -> IndexedSong:
    return IndexedSong(1, Path("/music/a.mp3"), title, artist, "", None, 61.0, "", cover, 1)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0....", "image/jpeg"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
        (b"GIF89a", None),
        (b"<svg onload='alert(1)'>", None),
        (b"\x89PNG", None),
        (b"", None),
    ],
)
def test_pictures_are_recognized_by_their_bytes(data: bytes, kind: str | None) -> None:
    assert picture_type(data) == kind


@pytest.mark.parametrize(
    ("title", "artist", "expected"),
    [
        ("Blue Danube", "Strauss", "S"),
        ("Blue Danube", "", "BD"),
        ("one two three", "", "OT"),
        ("(what's) & 'so'", "", "WS"),
        ("東京 タワー", "", "東タ"),
        ("!!!", "", "?"),
        ("straße ßa", "", "SS"),
    ],
)
def test_initials(title: str, artist: str, expected: str) -> None:
    assert initials(song(title, artist)) == expected


@pytest.mark.parametrize(
    "title", ["<a> &b", "\ud800x", "\0y", "\u202ez", "]]>", "\U0001d518 \U0001d519"]
)
def test_what_is_drawn_is_xml(title: str) -> None:
    picture = drawn(song(title))
    assert picture.content_type == DRAWN
    root = ElementTree.fromstring(picture.data)
    assert [one.tag.rpartition("}")[2] for one in root] == ["rect", "text"]
    assert drawn(song(title)) == picture


def test_a_song_without_its_files_has_a_cover() -> None:
    for cover in (None, "embedded", "/music/cover.jpg"):
        assert cover_of(song(cover=cover)).content_type == DRAWN


def test_the_page_escapes_all_of_it() -> None:
    page = song_page(song("</title><script>", '"><img src=x>'), 'x" onerror="alert(1)').decode()
    assert page.count("<script") == 0
    assert page.count("<img") == 1
    assert 'onerror="' not in page
    assert "<p>1:01</p>" in page
    assert "/music" not in page


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
