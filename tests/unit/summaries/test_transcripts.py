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
from polymux.summaries.prompts import Chapter, parts_of

if TYPE_CHECKING:
    from pathlib import Path

T1, T2, T3 = (f"00:00:0{n},000 --> 00:00:0{n + 1},000" for n in range(3))
#: Far more than needed, and far less than an algorithm with quadratic time takes.
_SOON_S = 10.0


def texts(data: str) -> list[str]:
    return [one.text for one in read_captions(data.encode())]


def vtt(*cues: str) -> str:
    """WebVTT captions of one second each."""
    times = [f"00:{n:02d}.000 --> 00:{n + 1:02d}.000" for n in range(len(cues))]
    return "\n\n".join(
        ["WEBVTT", *(f"{time}\n{cue}" for time, cue in zip(times, cues, strict=True))]
    )


def test_what_is_not_spoken_is_left_out() -> None:
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
    """yt-dlp has such tracks if a label is empty. Without a language they would be ignored."""
    track = {"ext": "vtt", "url": "/c.vtt"}
    assert chosen_captions({"subtitles": {"": [track]}}) == ("und", track)
    assert chosen_captions({"subtitles": {"": [track], "en": [track]}}) == ("en", track)


@pytest.mark.parametrize(
    ("cues", "expected"),
    [
        (["so this is", "so this is\nthe first line", "the first line\nand another",
          "and another one that goes on", "something else", "so this is"],
         ["so this is", "the first line", "and another", "one that goes on", "something else",
          "so this is"]),
        (["今日", "今日は", "今日は天気"], ["今日", "は", "天気"]),
        (["วันนี้", "วันนี้อากาศดี"], ["วันนี้", "อากาศดี"]),
        (["AI", "AIの話", "AIの話、続き"], ["AI", "の話", "、続き"]),
        (["the car", "the carpet"], ["the car", "the carpet"]),
        (["오늘", "오늘은"], ["오늘", "오늘은"]),
    ],
)  # fmt: skip
def test_lines_that_roll_up_are_kept_once(cues: list[str], expected: list[str]) -> None:
    """Sites show live captions line by line: each cue repeats the last line and adds words.

    In scripts without spaces any text may continue a line; in others only a whole word.
    """
    assert texts(vtt(*cues)) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
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
def test_where_cues_end(data: str, expected: list[str]) -> None:
    """A cue ends at an empty line, not at blanks (WebVTT, 6.1). Old files have no empty lines."""
    assert texts(data) == expected
    assert texts(data.replace("\n", "\r\n")) == expected


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1251", "Река несёт камни"),
        ("shift-jis", "川は石を運ぶ"),
        ("gbk", "河流带来石头"),
        ("cp1255", "הנהר נושא אבנים"),
    ],
)
def test_encodings_that_nothing_names(tmp_path: Path, encoding: str, words: str) -> None:
    """Captions in an unknown encoding are ignored, and the speech is transcribed instead."""
    data = f"1\n{T1}\n{words}\n\n2\n{T2}\nOK, <i>{words}</i>\n".encode(encoding)
    (tmp_path / "a.srt").write_bytes(data)
    assert read_captions(data) == []
    assert not says_anything(tmp_path / "a.srt")
    western = f"1\n{T1}\nDer Fluß trägt runde Steine herab\n".encode("latin-1")
    assert read_captions(western) == [
        SpokenText(0.0, "Der Flu\ufffd tr\ufffdgt runde Steine herab")
    ]


SILENT = ["[Music]", "♪ ♪", "...", "(door) [BLANK_AUDIO]", "[Applause] -"]
SAYING = ["[Anna] Come in", "(door) 7", "♪ la la ♪", "川", "a [", ") b ("]


@pytest.mark.parametrize("text", SILENT + SAYING)
def test_captions_with_and_without_a_word(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.vtt").write_text(vtt(text))
    assert has_words(text) == says_anything(tmp_path / "a.vtt") == (text in SAYING)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe\x00", b"WEBVTT", b"{}", b"-->\n-->", b"\n" * 10_000,
     b"00:01.000 --> 00:02.000\n" + b"<" * 100_000],
)  # fmt: skip
def test_what_is_none(data: bytes) -> None:
    assert len(read_captions(data)) <= 1


def test_nothing_is_lost_and_nothing_is_too_long() -> None:
    choose = random.Random(4)

    def words() -> str:
        ends = ["", ".", "!"]
        return " ".join(
            "x" * choose.randint(1, 30) + choose.choice(ends) for _ in range(choose.randint(0, 12))
        )

    for _ in range(100):
        transcript = [SpokenText(float(n), words()) for n in range(choose.randint(0, 30))]
        chapters = [Chapter(float(choose.randint(0, 30)), f"c{n}") for n in range(3)]
        longest = choose.randint(10, 200)
        parts = parts_of(transcript, chapters, longest)
        whole, found = ("".join(one.text for one in all_of) for all_of in (transcript, parts))
        assert found.replace(" ", "") == whole.replace(" ", "")
        assert all(0 < len(part.text) <= longest for part in parts)
        assert [part.start_s for part in parts] == sorted(part.start_s for part in parts)


def test_parts_end_with_sentences_and_chapters() -> None:
    transcript = [SpokenText(0.0, "One two three four. Five six seven eight nine")]
    assert [part.text for part in parts_of(transcript, [], 26)] == [
        "One two three four.", "Five six seven eight nine",
    ]  # fmt: skip
    transcript = [SpokenText(float(n), f"{n}.") for n in range(6)]
    parts = parts_of(transcript, [Chapter(3.0, "Later"), Chapter(0.0, "Begin")], 100)
    assert [(part.title, part.text, part.start_s) for part in parts] == [
        ("Begin", "0. 1. 2.", 0.0), ("Later", "3. 4. 5.", 3.0),
    ]  # fmt: skip


def test_cues_of_very_many_lines() -> None:
    """A cue may have very many lines. All are read, in linear time."""
    lines = 60_000
    cues = ["\n".join(f"{name}{number}" for number in range(lines)) for name in "ab"]
    began = time.monotonic()
    found = texts(vtt(*cues))
    assert time.monotonic() - began < _SOON_S
    assert [one.count(" ") for one in found] == [lines - 1, lines - 1]
