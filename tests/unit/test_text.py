from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as some
from polymux._util import text as text_helpers


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 東京 🎵", "plain ä 東京 🎵"),
        ("red \x1b[31m", "red \\x1b[31m"),
        ("two\nlines\r\t", "two\\nlines\\r\\t"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
        ("line\u2028", "line\\u2028"),
        (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
        ("", ""),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert text_helpers.printable(text) == shown


def test_sentences() -> None:
    found = text_helpers.sentences("a is missing", "", "run b", "Or c")
    assert found == "a is missing. Run b. Or c"
    assert text_helpers.sentences("", "") == text_helpers.sentences() == ""


@given(some.binary(max_size=400))
def test_any_path_can_be_shown(path: bytes) -> None:
    name = text_helpers.display_name(path)
    assert name.isprintable()
    assert len(name) <= text_helpers.SHOWN_CHARACTERS
    name.encode()


@given(some.text(max_size=400), some.integers(min_value=5, max_value=300))
def test_shortened_keeps_both_ends(text: str, limit: int) -> None:
    short = text_helpers.shortened(text, limit)
    assert len(short) <= limit
    if len(text) > limit:
        assert text.startswith(short.partition("...")[0])
        assert text.endswith(short[len(short) - (limit - 3) // 2 :])
    else:
        assert short == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (7.9, "0:07"), (205, "3:25"), (3723, "1:02:03"), (-1, "0:00")],
)
def test_clock(seconds: float, text: str) -> None:
    assert text_helpers.clock(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (3_240_000, "3.2 MB"), (999_949, "999.9 kB"),
     (999_951, "1.0 MB"), (5e12, "5000.0 GB")],
)  # fmt: skip
def test_size(count: float, text: str) -> None:
    assert text_helpers.size(count) == text
