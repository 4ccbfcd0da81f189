"""Texts as they are compared."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest
from polymux.songs.text_normalization import folded, spellings, tidy


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
