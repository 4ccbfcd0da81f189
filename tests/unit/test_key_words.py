"""Keys that have words in them: sentences keep theirs, and no part that is secret is shown."""

from __future__ import annotations

import random
import string

import pytest
from polymux._util.redaction import is_of_words, redact, register_secret

KEY = "sk-test-server-f81Zk03bQx27Lw9s"


@pytest.mark.parametrize(
    "text",
    [
        "the test-server is gone",
        "no upstream of sk-test-server answers",
        "test-servers, and latest-server- too",
    ],
)
def test_sentences_keep_their_words(text: str) -> None:
    register_secret(KEY)
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"It is {KEY}.", "It is ***."),
        (KEY[:-1], "***"),
        (KEY[:23], "***"),
        (KEY[15:], "***"),
        (f"server-{KEY[15:20]}", "***"),
        ("est-server", "***"),
    ],
)
def test_the_rest_is_hidden(text: str, told: str) -> None:
    """A part that ends within a word is a part of the key, and no word."""
    register_secret(KEY)
    assert redact(text) == told


@pytest.mark.parametrize(
    "key", ["correct-horse-battery-staple", "sk-test-server-12345", "abcdefghijklmnop"]
)
def test_words_that_are_the_secret(key: str) -> None:
    register_secret(key)
    assert redact(key[:15]) == "***"


def test_letters_by_chance_are_no_words() -> None:
    rng = random.Random(7)
    keys = ["".join(rng.choices(string.ascii_lowercase, k=12)) for _ in range(2000)]
    words = sum(is_of_words(f"{one}-0123456789012345", 0, len(one)) for one in keys)
    assert words < 40
