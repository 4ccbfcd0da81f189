"""Captions as text, and transcripts in parts."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from polymux.errors import InvalidRequestError
from polymux.summaries.captions import Said, read_captions
from polymux.summaries.parts import Chapter, parts_of
from polymux.summaries.settings import SummaryOptions


def texts(data: str) -> list[str]:
    return [one.text for one in read_captions(data.encode())]


def test_what_is_not_said_is_left_out() -> None:
    data = (
        "\ufeffWEBVTT - a title\nKind: captions\n\nSTYLE\n::cue { color: red }\n\n"
        "NOTE 00:00 said\n\n"
        "first\n00:01.500 --> 00:02.000 align:start position:0%\n<v Ann>Hello, <i>you</i> &amp; "
        "<00:01.700><c>me</c>\n\n01:00:00.000 --> 01:00:01.000\n\n"
        "100:00:00.000 --> 100:00:01.000\nlate"
    )
    assert read_captions(data.encode()) == [Said(1.5, "Hello, you & me"), Said(360_000.0, "late")]


def test_subrip() -> None:
    data = (
        "1\r\n00:00:01,250 --> 00:00:02,000\r\nOne\r\ntwo\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\nThree"
    )
    assert read_captions(data.encode()) == [Said(1.25, "One two"), Said(3.0, "Three")]


def test_lines_that_roll_up_are_told_once() -> None:
    """As sites make them of speech: the last line again, then words of the new one come."""
    cues = [
        ["so this is"],
        ["so this is", "the first line"],
        ["the first line", "and another"],
        ["and another one that goes on"],
        ["something else"],
        ["so this is"],
    ]
    blocks = [
        "\n".join([f"00:{number:02d}.000 --> 00:{number + 1:02d}.000", *lines])
        for number, lines in enumerate(cues)
    ]
    told = texts("WEBVTT\n\n" + "\n\n".join(blocks))
    assert told == [
        "so this is", "the first line", "and another", "one that goes on", "something else",
        "so this is",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe\x00",
        b"WEBVTT",
        b"{}",
        b"-->\n-->",
        b"\n" * 10_000,
        b"00:01.000 --> 00:02.000\n" + b"<" * 100_000,
    ],
)
def test_what_is_none(data: bytes) -> None:
    assert len(read_captions(data)) <= 1


def test_nothing_is_lost_and_nothing_is_too_long() -> None:
    random_words = random.Random(4)
    for _ in range(200):
        said = [
            Said(float(n), " ".join(
                "x" * random_words.randint(1, 30) + random_words.choice(["", ".", "!"])
                for _ in range(random_words.randint(0, 12))))
            for n in range(random_words.randint(0, 30))
        ]  # fmt: skip
        chapters = [Chapter(float(random_words.randint(0, 30)), f"c{n}") for n in range(3)]
        longest = random_words.randint(10, 200)
        parts = parts_of(said, chapters, longest)
        assert "".join(part.text for part in parts).replace(" ", "") == "".join(
            one.text for one in said
        ).replace(" ", "")
        assert all(0 < len(part.text) <= longest for part in parts)
        assert [part.start_s for part in parts] == sorted(part.start_s for part in parts)


def test_parts_end_with_sentences_where_they_can() -> None:
    said = [Said(0.0, "One two three four. Five six seven eight nine")]
    assert [part.text for part in parts_of(said, [], 26)] == [
        "One two three four.", "Five six seven eight nine",
    ]  # fmt: skip


def test_chapters_are_parts_of_their_own() -> None:
    said = [Said(float(n), f"{n}.") for n in range(6)]
    parts = parts_of(said, [Chapter(3.0, "Later"), Chapter(0.0, "Begin")], 100)
    assert [(part.title, part.text, part.start_s) for part in parts] == [
        ("Begin", "0. 1. 2.", 0.0), ("Later", "3. 4. 5.", 3.0),
    ]  # fmt: skip


#: Far more than they take, and far less than what grows with the square of their lines.
_SOON_S = 10.0


def test_cues_of_very_many_lines() -> None:
    """A site's file, not a player's: all of it is read, and soon."""
    lines = 60_000
    cues = [
        f"00:0{cue}.000 --> 00:0{cue + 1}.000\n"
        + "\n".join(f"{name}{number}" for number in range(lines))
        for cue, name in enumerate("ab")
    ]
    began = time.monotonic()
    told = texts("WEBVTT\n\n" + "\n\n".join(cues))
    assert time.monotonic() - began < _SOON_S
    assert [one.count(" ") for one in told] == [lines - 1, lines - 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"part_characters": 10},
        {"words": 0},
        {"words": 10**6},
        {"most_parts": 0},
        {"most_parts": 10**6},
        {"total_s": 0},
    ],
)
def test_options_have_ranges(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match=next(iter(wrong))):
        SummaryOptions(**wrong)
