"""Words in keys: of ``sk-test-server-...`` they are no secret, and other texts have them."""

from __future__ import annotations

import re
from itertools import pairwise

#: Letter to those that stand behind it in English, but for what is rare.
_BEHIND = {
    "a": "bcdefgiklmnprstuvwxyz", "b": "abceilmorsuy", "c": "acehiklmoprstuy",
    "d": "abcdefgilmoprstuy", "e": "abcdefghilmnopqrstuvwxy", "f": "adefilorstu",
    "g": "aeghilmnoprstu", "h": "aeilmorstu", "i": "abcdefgiklmnoprstvxz", "j": "aeosu",
    "k": "aeilnsu", "l": "abcdefiklmnopstuvy", "m": "abcdeiklmopstu",
    "n": "abcdefghiklmnoprstuvwxy", "o": "abcdefgiklmnoprstuvwxy", "p": "acdehilmnoprstuy",
    "q": "u", "r": "abcdefgiklmnoprstuvwy", "s": "acdefhiklmoprstuwy", "t": "abcdefhilmnoprstuwy",
    "u": "abcdefgilmnoprstx", "v": "aeio", "w": "aehinors", "x": "acdeilpt", "y": "bceilmnopst",
    "z": "ae",
}  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z0-9]+")
#: In one case, as sentences have them.
_WORD = re.compile(r"[a-z]{2,15}|[A-Z][a-z]{1,14}|[A-Z]{2,15}")
#: So much of a key must be something else, or its words are the secret.
_LEAST_SECRET = 16


def is_of_words(key: str, start: int, end: int) -> bool:
    """Whether a part of a key is nothing but whole words of it, and no secret.

    Args:
        key: The key.
        start: Where its part begins.
        end: Where its part ends.

    Example:
        >>> key = "sk-test-server-f81Zk03bQx27Lw9s"
        >>> is_of_words(key, 3, 14), is_of_words(key, 8, 24), is_of_words(key, 4, 14)
        (True, False, False)
    """
    secret = 0
    for found in _TOKEN.finditer(key):
        inside = max(found.start(), start) < min(found.end(), end)
        word = _is_word(found[0])
        if inside and (not word or found.start() < start or found.end() > end):
            return False
        secret += 0 if word else len(found[0])
    return secret >= _LEAST_SECRET


def _is_word(text: str) -> bool:
    if not _WORD.fullmatch(text):
        return False
    small = text.lower()
    return all(after in _BEHIND[one] for one, after in pairwise(small))
