from __future__ import annotations

import time

import pytest
from polymux.upstreams.openai.transcriptions import spelled_in


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Hi there.", ["Hi", "there"], ["Hi", " there."]),
        ("Hi there.", [" Hi", " there."], ["Hi", " there."]),
        ("“Well-known,” she said.", ["Well", "known", "she", "said"],
         ["“Well-", "known,”", " she", " said."]),
        ("a a  a", ["a", "a", "a"], ["a", " a", "  a"]),
        ("你好、世界。", ["你好", "世界"], ["你好、", "世界。"]),
        ("It costs 5 euros today.", ["It", "costs", "five", "euros", "today"],
         ["It", " costs", " five", " euros", " today."]),
        ("你好世界", ["您", "世界"], ["您", "世界"]),
        ("Hi there.", ["Hi", "", " ", "there"], ["Hi", "", "", " there."]),
        ("", ["Hi", "there"], ["Hi", " there"]),
        ("Hi there", [], []),
    ],
)  # fmt: skip
def test_words_as_the_text_has_them(text: str, words: list[str], expected: list[str]) -> None:
    """If the text has all words, joining the results gives the text."""
    assert spelled_in(text, words) == expected


def test_a_long_text_takes_no_time() -> None:
    """Words that do not occur are not searched for in the whole text."""
    began = time.process_time()
    assert len(spelled_in("word " * 100_000, ["other"] * 100_000)) == 100_000
    assert time.process_time() - began < 5
