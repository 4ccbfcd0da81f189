# ruff: noqa: RUF001
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.songs.database import Database
from polymux.songs.table import FileState, SongTable
from polymux.songs.tags import SongTags
from polymux.songs.text_normalization import folded, spellings, tidy

if TYPE_CHECKING:
    from pathlib import Path


SONGS = [
    ("Bohemian Rhapsody", "Queen"),
    ("Rhapsody in Blue", "George Gershwin"),
    ("Für Elise", "Ludwig van Beethoven"),
    ("東京", "椎名林檎"),
    ("사랑", "아이유"),
    ("Don't Stop Me Now", "Queen"),
    ("99 Luftballons", "Nena"),
    ("!!!", "Chk Chk Chk"),
    ("100% \\ _under_", "Wild % Cards"),
    ('The "Quoted" Song', "O'Neill"),
    ("Тихая ночь", "Хор"),
    ("One", "U2"),
    ("Lantern of the Golden Harbour", "The Long Names"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> polymux.SongIndex:
    return filled(tmp_path_factory.mktemp("names"), SONGS)


def filled(folder: Path, songs: list[tuple[str, str]]) -> polymux.SongIndex:
    database = Database(folder / "songs.sqlite3")
    table = SongTable(database)
    with database.transaction():
        recording = table.add_recording([], 1.0, 0)
        for number, (title, artist) in enumerate(songs):
            tags = SongTags(title, artist, "", None, "", None)
            path = os.fsencode(f"/music/{number}")
            table.add(path, FileState(0, 0), b"", tags, recording, None)
    database.close()
    return polymux.SongIndex(folder)


@pytest.fixture(scope="module")
def full_of_alike(tmp_path_factory: pytest.TempPathFactory) -> polymux.SongIndex:
    """Songs that share words with more songs than a search looks at."""
    wanted = [
        ("Burning / Tape Loop #9", "The Lanterns"),
        ("Golden", "N.O.R.T.H."),
        ("Waltz - Live in Town (Remastered)", "Old Band"),
        ("Tree", "!!?"),
    ]
    others = [(f"Burning {n} ft. The Lanterns", f"Nobody {n}") for n in range(120)]
    others += [(f"Golden / N.O.R.T.H. {n}", f"Somebody {n}") for n in range(220)]
    others += [(f"Waltz {n}", "Old Band") for n in range(40)]
    others += [(f"Tree, Pt. {n}", f"Anybody {n}") for n in range(220)]
    return filled(tmp_path_factory.mktemp("alike"), [*others, *wanted])


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("burning by the lanterns", "Burning / Tape Loop #9"),
        ("golse n.o.r.t.h.", "Golden"),
        ("old band waltz", "Waltz - Live in Town (Remastered)"),
        ("tree by !!?", "Tree"),
    ],
)
def test_found_among_those_alike(full_of_alike: polymux.SongIndex, text: str, title: str) -> None:
    assert title in [song.title for song in full_of_alike.search(text)][:5]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("bohemian rhapsody", "Bohemian Rhapsody"),
        ("bohemain rapsody", "Bohemian Rhapsody"),
        ("queen bohemian", "Bohemian Rhapsody"),
        ("gershwin", "Rhapsody in Blue"),
        ("fur elise", "Für Elise"),
        ("bethoven elise", "Für Elise"),
        ("東京", "東京"),
        ("京", "東京"),
        ("dont stop me now", "Don't Stop Me Now"),
        ("!!!", "!!!"),
        ("100%", "100% \\ _under_"),
        ('"quoted" song', 'The "Quoted" Song'),
        ("тихая ноч", "Тихая ночь"),
        ("u2 one", "One"),
        ("golden lanetrn", "Lantern of the Golden Harbour"),
        ("99luftballons", "99 Luftballons"),
    ],
)
def test_found_first(index: polymux.SongIndex, text: str, title: str) -> None:
    assert [song.title for song in index.search(text)][:1] == [title]


def test_nothing_is_found(index: polymux.SongIndex) -> None:
    for text in ("completely other words", "zzzzzz", "qxq"):
        assert index.search(text) == []


def test_hostile_texts_are_texts(index: polymux.SongIndex) -> None:
    """Texts are never read as SQL or as full-text query syntax."""
    for text in (
        '"; DROP TABLE songs; --', "title:x", "NEAR(a b)", "a AND", "OR", "NOT", "*", "^", "(((",
        "{a b}:c", "-", "+", "\\", "%", "_", '""""', "a\x00b", "x\ud800y", "\u202ereversed",
        "e" + "\u0301" * 200, "🎵", "\u0301",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 5,
    ):  # fmt: skip
        index.search(text)
        assert index.search("bohemian rhapsody")


@pytest.mark.parametrize("text", ["", "  ", "\x00", "a" * 301, "word " * 200_000])
def test_texts_that_are_refused(index: polymux.SongIndex, text: str) -> None:
    with pytest.raises(polymux.InvalidRequestError):
        index.search(text)


@pytest.mark.parametrize("limit", [0, 51, -1])
def test_limits(index: polymux.SongIndex, limit: int) -> None:
    with pytest.raises(polymux.InvalidRequestError):
        index.search("queen", limit)
    assert len(index.search("queen", 1)) == 1


def test_a_song_that_is_renamed_or_removed(tmp_path: Path) -> None:
    database = Database(tmp_path / "songs.sqlite3")
    table = SongTable(database)
    old, new = (SongTags(title, "", "", None, "", None) for title in ("Harbour", "Mountain"))
    with database.transaction():
        recording = table.add_recording([], 1.0, 0)
        number = table.add(b"/a", FileState(1, 1), b"", old, recording, None)
    row = table.get(number)
    assert row is not None
    with database.transaction():
        table.replace(row, b"/a", FileState(1, 1), b"", new, recording)
    with polymux.SongIndex(tmp_path) as index:
        assert index.search("harbour") == []
        assert [song.id for song in index.search("mountian")] == [number]
        assert index.remove(number) == 1
        assert index.search("mountain") == []
        assert database.problems() == []
    database.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don\u2019t Stop Me Now!", "dont stop me now"),
        ("Smørrebrød & Łódź", "smorrebrod lodz"),
        ("STRASSE straße", "strasse strasse"),
        ("ﬁancé", "fiance"),
        ("İstanbul ışık", "istanbul isik"),
        ("AC/DC", "ac dc"),
        ("Ångström", "angstrom"),
        ("e\u0301te\u0301", "ete"),
        ("東京　タワー", "東京 タワー"),
        ("???", "???"),
        ("  \t ", ""),
        ("a\x00b\ud800c\u2028d", "a b c d"),
    ],
)
def test_folded(text: str, expected: str) -> None:
    assert folded(text) == expected
    assert folded(folded(text)) == folded(text)


def test_text_is_bounded() -> None:
    assert len(tidy("a" * (1 << 20))) == 500
    assert len(folded("\ufdfa" * (1 << 20))) < 20_000


@pytest.mark.parametrize(
    "typed", ["lanterm", "lantren", "lantrn", "llantern", "lanternn", "antern"]
)
def test_words_with_one_error_have_a_spelling_in_common(typed: str) -> None:
    assert spellings(typed) & spellings("lantern")


def test_words_of_other_letters_have_none() -> None:
    assert not spellings("lantern") & spellings("harbour")
    assert spellings("ab") == {"ab"}
    assert spellings("a" * 500) == {"a" * 500}
