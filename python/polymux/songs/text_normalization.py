"""Texts as they are compared: without capitals, marks and signs."""

from __future__ import annotations

import unicodedata

#: Letters that no decomposition of Unicode leads to the ones that people type for them.
_LETTERS = str.maketrans(
    {
        "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h",
        "\u0131": "i", "ŀ": "l", "ŋ": "n", "ŧ": "t", "ĸ": "k", "ƒ": "f", "ɓ": "b", "ɗ": "d",
        "ɖ": "d", "ɛ": "e", "ɔ": "o", "ə": "e", "ŉ": "n", "ẞ": "ss", "ƙ": "k", "ƴ": "y", "ɲ": "n",
    }
)  # fmt: skip
#: Between letters of one word; people leave them out.
_INSIDE_WORDS = str.maketrans(
    dict.fromkeys("'\u2018\u2019\u201b\u02bc\u02b9\u0060\u00b4\u2032", "")
)
_KEPT = ("L", "N")
_MARKS = ("Mn", "Me")
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_MAX_TEXT_CHARACTERS = 500
#: An error in a shorter word makes it any other; longer ones are no words.
MIN_MISSPELLED_CHARACTERS = 3
MAX_MISSPELLED_CHARACTERS = 40


def folded(text: str) -> str:
    """A text as it is compared: small letters and digits, words parted by one space.

    Compatible forms are one (NFKD), marks are left out, signs part words; but an apostrophe does
    not. A text of signs alone stays as it is, in small letters: there are such titles.

    Example:
        >>> from polymux.songs.text_normalization import folded
        >>> folded("Beyoncé: Déjà Vu (feat. JAY-Z)"), folded("Don't Łódź"), folded("!!!")
        ('beyonce deja vu feat jay z', 'dont lodz', '!!!')
    """
    text = tidy(text)
    if text.isascii():
        plain = text.lower().translate(_INSIDE_WORDS)
        spaced = "".join(one if one.isalnum() else " " for one in plain)
    else:
        plain = unicodedata.normalize("NFKD", text.translate(_INSIDE_WORDS)).casefold()
        # Folding of letters may give marks once more.
        plain = unicodedata.normalize("NFKD", plain.translate(_LETTERS)).translate(_INSIDE_WORDS)
        spaced = "".join(_spaced(one) for one in plain)
    return " ".join(spaced.split()) or text.casefold()


def _spaced(char: str) -> str:
    category = unicodedata.category(char)
    if category in _MARKS:
        return ""
    # Vowel signs of Indic scripts take room of their own.
    return char if category[0] in _KEPT or category == "Mc" else " "


def tidy(text: str) -> str:
    r"""A text on one line, without control characters, of 500 characters at most.

    Example:
        >>> from polymux.songs.text_normalization import tidy
        >>> tidy("  Blue\x00\n Danube ")
        'Blue Danube'
    """
    text = text[: 4 * _MAX_TEXT_CHARACTERS]
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(one) in _CONTROLS else one for one in text)
    return " ".join(text.split())[:_MAX_TEXT_CHARACTERS].rstrip()


def spellings(word: str) -> set[str]:
    """A word, and what is left of it without one of its letters.

    Two words that one error of typing lies between have a spelling in common: a letter that is
    missing, one too many, another one, or two that have changed places.

    Example:
        >>> from polymux.songs.text_normalization import spellings
        >>> sorted(spellings("abc")), sorted(spellings("song") & spellings("sogn"))
        (['ab', 'abc', 'ac', 'bc'], ['sog', 'son'])
    """
    if not MIN_MISSPELLED_CHARACTERS <= len(word) <= MAX_MISSPELLED_CHARACTERS:
        return {word}
    return {word} | {word[:at] + word[at + 1 :] for at in range(len(word))}
