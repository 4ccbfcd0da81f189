"""Captions as text, and transcripts in parts."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest
from polymux.summaries.captions import (
    SpokenText,
    chosen_captions,
    has_words,
    read_captions,
    says_anything,
)
from polymux.summaries.chunking import Chapter, parts_of

if TYPE_CHECKING:
    from pathlib import Path


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
    assert read_captions(data.encode()) == [
        SpokenText(1.5, "Hello, you & me"),
        SpokenText(360_000.0, "late"),
    ]


def test_captions_of_no_language_have_one() -> None:
    """As yt-dlp has those of a track with an empty label: whether there are any goes by it."""
    track = {"ext": "vtt", "url": "/c.vtt"}
    assert chosen_captions({"subtitles": {"": [track]}}) == ("und", track)
    assert chosen_captions({"subtitles": {"": [track], "en": [track]}}) == ("en", track)


def test_subrip() -> None:
    data = (
        "1\r\n00:00:01,250 --> 00:00:02,000\r\nOne\r\ntwo\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\nThree"
    )
    assert read_captions(data.encode()) == [SpokenText(1.25, "One two"), SpokenText(3.0, "Three")]


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
    ("lines", "told"),
    [
        (["今日", "今日は", "今日は天気"], ["今日", "は", "天気"]),
        (["วันนี้", "วันนี้อากาศดี"], ["วันนี้", "อากาศดี"]),
        (["AI", "AIの話", "AIの話、続き"], ["AI", "の話", "、続き"]),
        (["the car", "the carpet"], ["the car", "the carpet"]),
        (["오늘", "오늘은"], ["오늘", "오늘은"]),
    ],
)
def test_lines_that_roll_up_without_blanks(lines: list[str], told: list[str]) -> None:
    """Where words have none between them, a line goes on with anything; elsewhere with a word."""
    cues = [
        f"00:{number:02d}.000 --> 00:{number + 1:02d}.000\n{line}"
        for number, line in enumerate(lines)
    ]
    assert texts("WEBVTT\n\n" + "\n\n".join(cues)) == told


T1, T2, T3 = (f"00:00:0{n},000 --> 00:00:0{n + 1},000" for n in range(3))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (f"WEBVTT\n\n{T1}\n \nhello\n\n{T2}\n\t\n\nlost", ["hello"]),
        (f"1\n{T1}\nOne\n2\n{T2}\nTwo\n3 men\n{T3}\nThree", ["One", "Two 3 men", "Three"]),
        (f"{T1}\nOne\n{T2}\nTwo", ["One", "Two"]),
        (f"1\n{T1}\nOne\n \n2\n{T2}\nTwo\n  \n\n3\n  {T3}\nThree", ["One", "Two", "Three"]),
        (f" \n \n\t\n \n1\n{T1}\n1984\n\n", ["1984"]),
        (f"{T1}\nOne\n2\n{T2}\n3\n{T3}\nThree", ["One", "Three"]),
        (f"WEBVTT\n\n{T1}\nOne\n \nNOTE two\n\nNOTE\n \nthree", ["One NOTE two"]),
    ],
    ids=["blank", "no empty lines", "no numbers", "blanks between", "before", "silent", "note"],
)
def test_where_cues_end(data: str, told: list[str]) -> None:
    """At an empty line, and none of blanks (WebVTT, 6.1); old files lack those altogether."""
    assert texts(data) == told
    assert texts(data.replace("\n", "\r\n")) == told


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1251", "Река несёт камни"),
        ("koi8-r", "Река несёт камни"),
        ("shift-jis", "川は石を運ぶ"),
        ("gbk", "河流带来石头"),
        ("cp1255", "הנהר נושא אבנים"),
    ],
)
def test_encodings_that_nothing_names(tmp_path: Path, encoding: str, words: str) -> None:
    """Nothing can be read, which is told, and speech is used: not a summary of what is no word."""
    data = f"1\n{T1}\n{words}\n\n2\n{T2}\nOK, <i>{words}</i>\n".encode(encoding)
    (tmp_path / "a.srt").write_bytes(data)
    assert read_captions(data) == []
    assert not says_anything(tmp_path / "a.srt")


@pytest.mark.parametrize("text", ["[Music]", "♪ ♪", "...", "(door) [BLANK_AUDIO]", "[Applause] -"])
def test_captions_without_a_word(tmp_path: Path, text: str) -> None:
    assert not has_words(text)
    (tmp_path / "a.vtt").write_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{text}\n")
    assert not says_anything(tmp_path / "a.vtt")


@pytest.mark.parametrize("text", ["[Anna] Come in", "(door) 7", "♪ la la ♪", "川", "a [", ") b ("])
def test_captions_with_a_word(tmp_path: Path, text: str) -> None:
    assert has_words(text)
    (tmp_path / "a.vtt").write_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{text}\n")
    assert says_anything(tmp_path / "a.vtt")


def test_western_encodings_lose_few_letters() -> None:
    data = f"1\n{T1}\nDer Fluß trägt runde Steine herab\n".encode("latin-1")
    assert [one.text for one in read_captions(data)] == [
        "Der Flu\ufffd tr\ufffdgt runde Steine herab"
    ]


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
            SpokenText(float(n), " ".join(
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
    said = [SpokenText(0.0, "One two three four. Five six seven eight nine")]
    assert [part.text for part in parts_of(said, [], 26)] == [
        "One two three four.", "Five six seven eight nine",
    ]  # fmt: skip


def test_chapters_are_parts_of_their_own() -> None:
    said = [SpokenText(float(n), f"{n}.") for n in range(6)]
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
