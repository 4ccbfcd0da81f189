from __future__ import annotations

import pytest
from polymux.errors import BadRequestError
from polymux.upstreams.song_search.songs import Song, folded, search_text, song

PAGE, IMAGE = "https://site.example/1", "https://site.example/1.jpg"


def test_names() -> None:
    assert song("Title", "Artist", PAGE, IMAGE) == Song("Title - Artist", PAGE, IMAGE)
    assert song("Title", None, None, None) == Song("Title", "", "")
    assert song("Title", " \t", None, 5) == Song("Title", "", "")
    assert song("<b>Title</b>", "&amp;", PAGE, "").name == "<b>Title</b> - &amp;"  # type: ignore[union-attr]


@pytest.mark.parametrize("title", [None, 5, ["x"], "", "\x00\x1b\u202e"])
def test_no_title_no_song(title: object) -> None:
    assert song(title, "Artist", PAGE, IMAGE) is None


def test_control_characters_are_left_out() -> None:
    found = song("Blue\x1b[31m\r\nDanube\u2028!\ud800", "\u202eStrauss\ufeff\x9b", None, None)
    assert found is not None
    assert found.name == "Blue [31m Danube ! - Strauss"


def test_names_are_of_bounded_length() -> None:
    found = song("t" * 10_000_000, "a" * 10_000_000, None, None)
    assert found is not None
    assert found.name == f"{'t' * 250} - {'a' * 250}"


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:image/png;base64,AA", "//site.example/", "/1", "http:///x",
     "https://user@site.example/", "https://u:p@site.example/",
     "https://site.example/\n", "https://site.example/ x", "https://site.example/\"onload=",
     "https://site.example/<script>", "https://site.example/\u202e", "https://[::1", "https://a:b/",
     "https://a:99999/", "https://site.example/{w}", "https://s\\@site.example/", 5, None, [],
     "https://site.example/" + "x" * 2000],
)  # fmt: skip
def test_addresses_that_are_none(url: object) -> None:
    assert song("Title", "Artist", url, url) == Song("Title - Artist", "", "")


def test_addresses() -> None:
    for url in (PAGE, "http://site.example:8080/a%20b?c=d&e#f", "https://xn--bcher-kva.example/"):
        assert song("Title", "", url, url) == Song("Title", url, url)


def test_what_is_looked_for() -> None:
    assert search_text("  Blue\n\x00 Danube\t") == "Blue Danube"
    assert search_text("a" * 300) == "a" * 300
    assert search_text("Cafe\u0301") == "Caf\u00e9"
    for word in ('"; DROP TABLE x;--', "%", "_", "NEAR(", "*", "AND OR", "\\", "a:b"):
        assert search_text(word) == word


@pytest.mark.parametrize("text", [" ", "\x00", "\u2028\ufeff", "a" * 301, "a" * 1_000_000])
def test_what_is_not_looked_for(text: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        search_text(text)
    assert (caught.value.status, caught.value.param) == (400, "song")
    assert len(str(caught.value)) < 100


def test_spellings_that_are_the_same() -> None:
    assert folded("STRASSE") == folded("Straße") == folded("\uff33\uff34\uff32asse")
    assert folded("blue") != folded("blau")
