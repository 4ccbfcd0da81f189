"""Covers that are drawn, and what is taken for a picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from polymux.songs.covers import DRAWN, cover_of, drawn, initials, picture_type
from polymux.songs.pages import song_page
from polymux.songs.results import CatalogueSong


def song(title: str = "Title", artist: str = "", cover: str | None = None) -> CatalogueSong:
    return CatalogueSong(1, Path("/music/a.mp3"), title, artist, "", None, 61.0, "", cover, 1)


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
def test_pictures_are_told_by_their_bytes(data: bytes, kind: str | None) -> None:
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
