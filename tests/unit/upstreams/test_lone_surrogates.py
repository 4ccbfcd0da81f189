from __future__ import annotations

import json

import pytest
from polymux.upstreams.openai.completions import replace_lone_surrogates


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb'"x\ud800y"', "x\ufffdy"),
        (rb'"\uDC00\uD83D\uDE00"', "\ufffd😀"),
        (rb'"\ud83d\ud83d\ude00\ud83d"', "\ufffd😀\ufffd"),
        (rb'"\\ud800 \\\ud800 \n\u00e9"', "\\ud800 \\\ufffd \né"),
        (b'"\xc3\xa9 plain"', "é plain"),
    ],
)
def test_halves_are_replaced(written: bytes, read: str) -> None:
    assert json.loads(replace_lone_surrogates(written)) == read


def test_much_of_it_takes_no_long() -> None:
    assert replace_lone_surrogates(rb"\ud800" * 100_000) == rb"\ufffd" * 100_000
