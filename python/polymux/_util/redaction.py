"""Keys that this process uses: no text of an error or result shows one, whoever repeats it.

Nor a long part of one: a server may repeat the beginning of a key, and a text that is shortened may
end in its middle. Whole words of one are no secret: "server" may be said where a key has it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


#: Shorter ones could not be told from words.
_MIN_SECRET_CHARACTERS = 4
_MAX_SECRETS = 1000
#: So many characters of a key in a row are no accident.
_MAX_FRAGMENT_CHARACTERS = 7
#: How long the pieces are that are looked for, and how far apart: so each longer part has one.
_PIECE = 5
_STEP = _MAX_FRAGMENT_CHARACTERS + 2 - _PIECE
#: A part of that length is hidden as it is found; what is left of a longer one comes next.
_ENOUGH = 64
#: Of a longer key the rest is not cut into pieces.
_MAX_SPLIT_CHARACTERS = 8192
_KNOWN: dict[str, None] = {}
#: All pieces of what is known: most texts have none of them, which is found out quickly.
_PIECES: set[str] = set()


def register_secret(*secrets: str | None) -> None:
    """Hides these from now on. Of very many the oldest are forgotten."""
    for secret in secrets:
        if secret is not None and len(secret) >= _MIN_SECRET_CHARACTERS:
            if secret not in _KNOWN:
                _PIECES.update(_pieces(secret))
            _KNOWN.pop(secret, None)
            _KNOWN[secret] = None
    if len(_KNOWN) > _MAX_SECRETS:
        _forget()


def _pieces(secret: str) -> list[str]:
    if len(secret) <= _MAX_FRAGMENT_CHARACTERS:
        return []
    return [
        secret[at : at + _PIECE]
        for at in range(min(len(secret), _MAX_SPLIT_CHARACTERS) - _PIECE + 1)
    ]


def _forget() -> None:
    """The older half, so that this is seldom done. Other threads may do the same."""
    for oldest in list(_KNOWN)[: -_MAX_SECRETS // 2]:
        _KNOWN.pop(oldest, None)
    left = {piece for secret in list(_KNOWN) for piece in _pieces(secret)}
    _PIECES.intersection_update(left)


def redact(text: str) -> str:
    """The text with ``***`` in the place of each key, and of each part of 8 characters and more.

    Parts that are words stay, where the rest of the key is long and none.
    """
    # The longest first: one may be how another begins, whose rest would stay.
    for secret in sorted(_KNOWN, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, "***")
    found = range(0, len(text) - _PIECE + 1, _STEP)
    if _PIECES.isdisjoint([text[at : at + _PIECE] for at in found]):
        return text
    return _without_parts(text)


def _without_parts(text: str) -> str:
    kept: list[str] = []
    start = at = 0
    while at <= len(text) - _PIECE:
        if text[at : at + _PIECE] in _PIECES:
            begin, end = _part_around(text, at, start)
            if end - begin > _MAX_FRAGMENT_CHARACTERS:
                kept += (text[start:begin], "***")
                start = end
                at = -(-end // _STEP) * _STEP
                continue
        at += _STEP
    return "".join((*kept, text[start:]))


def _part_around(text: str, at: int, least: int) -> tuple[int, int]:
    """The longest part of a key that has the piece of the text there; nothing before `least`."""
    best = at, at
    piece = text[at : at + _PIECE]
    for secret in list(_KNOWN):
        place = secret.find(piece)
        while place >= 0:
            back = 0
            while back < min(place, at - least) and secret[place - back - 1] == text[at - back - 1]:
                back += 1
            on = _PIECE
            rest = min(len(secret) - place, len(text) - at)
            while on < rest and secret[place + on] == text[at + on]:
                on += 1
            size = back + on
            if size > best[1] - best[0] and not (
                _MAX_FRAGMENT_CHARACTERS < size < _ENOUGH
                and is_of_words(secret, place - back, place + on)
            ):
                best = at - back, at + on
            if back + on >= _ENOUGH:  # Of a key that repeats itself, all places would take long.
                return best
            place = secret.find(piece, place + 1)
    return best


def redact_json(value: Any) -> Any:
    """The same for all texts of a JSON value, names included; a new value."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(str(name)): redact_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [redact_json(one) for one in value]
    return value


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
_MIN_SECRET_REMAINDER = 16


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
    return secret >= _MIN_SECRET_REMAINDER


def _is_word(text: str) -> bool:
    if not _WORD.fullmatch(text):
        return False
    small = text.lower()
    return all(after in _BEHIND[one] for one, after in pairwise(small))
