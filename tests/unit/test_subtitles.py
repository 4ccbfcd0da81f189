from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polymux import TranscriptChunk
from polymux.media.subtitles import Cue, cues, srt, vtt

TIME = r"(\d\d+):(\d\d):(\d\d)"


def chunks(*items: tuple[str, Any, Any]) -> list[TranscriptChunk]:
    return [TranscriptChunk({"text": text, "timestamp": [a, b]}) for text, a, b in items]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "00:00:00,000"), (0.0004, "00:00:00,000"), (0.9996, "00:00:01,000"),
     (59.9999, "00:01:00,000"), (61.05, "00:01:01,050"), (3599.9995, "01:00:00,000"),
     (359_999.999, "99:59:59,999"), (400_000, "111:06:40,000"), (-0.02, "00:00:00,000")],
)  # fmt: skip
def test_times(seconds: float, expected: str) -> None:
    text = srt(chunks(("a", seconds, 500_000)))
    assert text == f"1\n{expected} --> 138:53:20,000\na\n\n"
    assert expected.replace(",", ".") in vtt(chunks(("a", seconds, 500_000)))


@pytest.mark.parametrize(
    ("spoken", "expected"),
    [
        # A missing end is guessed, but not beyond the next text.
        ([("a", 1, None), ("b", 1.4, 2)], [Cue(1000, 1400, "a"), Cue(1400, 2000, "b")]),
        ([("a", 1, None), ("b", 60, 61)], [Cue(1000, 2000, "a"), Cue(60_000, 61_000, "b")]),
        ([("x" * 45, 1, None)], [Cue(1000, 4000, "x" * 45)]),
        ([("x" * 999, 1, None)], [Cue(1000, 8000, "x" * 999)]),
        # So is an end that is not after its start.
        ([("a", 5, 5)], [Cue(5000, 6000, "a")]),
        ([("a", 5, 2), ("b", 5.5, 6)], [Cue(5000, 5500, "a"), Cue(5500, 6000, "b")]),
        # A missing start is the end of the text before.
        ([("a", None, 2), ("b", None, 3)], [Cue(0, 2000, "a"), Cue(2000, 3000, "b")]),
        ([("a", None, None), ("b", None, None)], [Cue(0, 1000, "a"), Cue(1000, 2000, "b")]),
        # An empty text is not shown and delays nothing.
        ([("a", 1, None), (" \n", 1.1, 1.2), ("b", 1.3, 2)],
         [Cue(1000, 1300, "a"), Cue(1300, 2000, "b")]),
    ],
)  # fmt: skip
def test_what_is_missing(spoken: list[tuple[str, Any, Any]], expected: list[Cue]) -> None:
    assert cues(chunks(*spoken)) == expected


def test_texts_that_would_end_a_cue_or_be_markup() -> None:
    spoken = chunks((" one\n\n \r\n two\t three\n", 0, 1), ("a --> <b> & c", 1, 2))
    assert srt(spoken) == (
        "1\n00:00:00,000 --> 00:00:01,000\none\ntwo three\n\n"
        "2\n00:00:01,000 --> 00:00:02,000\na --> <b> & c\n\n"
    )
    assert vtt(spoken).endswith("\na --&gt; &lt;b&gt; &amp; c\n\n")


def test_nothing_was_spoken() -> None:
    assert srt([]) == ""
    assert vtt([]) == "WEBVTT\n\n"


times = st.none() | st.floats(-10, 10_000, allow_nan=False)


@given(st.lists(st.tuples(st.text(max_size=20), times, times), max_size=8))
def test_any_transcript_makes_cues_of_the_right_form(spoken: list[tuple[str, Any, Any]]) -> None:
    for cue in cues(chunks(*spoken)):
        assert 0 <= cue.start_ms < cue.end_ms
    blocks = vtt(chunks(*spoken)).split("\n\n")
    assert blocks[0] == "WEBVTT"
    assert blocks[-1] == ""
    for block in blocks[1:-1]:
        assert re.match(rf"{TIME}\.\d{{3}} --> {TIME}\.\d{{3}}\n\S", block), block
        assert block.count("-->") == 1
