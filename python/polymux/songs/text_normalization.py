"""Normalization of text for comparison: no case, diacritics or punctuation."""

from __future__ import annotations

import unicodedata

#: Letters that Unicode does not decompose to the letters that people type instead.
_LETTERS = str.maketrans(
    {
        "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h",
        "\u0131": "i", "ŀ": "l", "ŋ": "n", "ŧ": "t", "ĸ": "k", "ƒ": "f", "ɓ": "b", "ɗ": "d",
        "ɖ": "d", "ɛ": "e", "ɔ": "o", "ə": "e", "ŉ": "n", "ẞ": "ss", "ƙ": "k", "ƴ": "y", "ɲ": "n",
    }
)  # fmt: skip
#: Characters inside words that people often omit.
_INSIDE_WORDS = str.maketrans(
    dict.fromkeys("'\u2018\u2019\u201b\u02bc\u02b9\u0060\u00b4\u2032", "")
)
_KEPT = ("L", "N")
_MARKS = ("Mn", "Me")
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_MAX_TEXT_CHARACTERS = 500
#: In a shorter word an error would match any other word; a longer string is not a word.
MIN_MISSPELLED_CHARACTERS = 3
MAX_MISSPELLED_CHARACTERS = 40


def folded(text: str) -> str:
    """Normalize text to lowercase letters and digits, with single spaces between words.

    Compatibility forms are unified (NFKD) and diacritics removed. Punctuation separates words,
    except apostrophes. Text of punctuation alone is only lowercased, because such titles exist.

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
        # Case folding may produce marks again.
        plain = unicodedata.normalize("NFKD", plain.translate(_LETTERS)).translate(_INSIDE_WORDS)
        spaced = "".join(_spaced(one) for one in plain)
    return " ".join(spaced.split()) or text.casefold()


def _spaced(char: str) -> str:
    category = unicodedata.category(char)
    if category in _MARKS:
        return ""
    # Vowel signs of Indic scripts (category Mc) occupy a position and are kept.
    return char if category[0] in _KEPT or category == "Mc" else " "


def tidy(text: str) -> str:
    r"""Return the text on one line, without control characters, with at most 500 characters.

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
    """Return a word and its forms with one letter deleted.

    Two words that differ by one typing error share a form. The error may be a missing, extra or
    wrong letter, or two swapped letters.

    Example:
        >>> from polymux.songs.text_normalization import spellings
        >>> sorted(spellings("abc")), sorted(spellings("song") & spellings("sogn"))
        (['ab', 'abc', 'ac', 'bc'], ['sog', 'son'])
    """
    if not MIN_MISSPELLED_CHARACTERS <= len(word) <= MAX_MISSPELLED_CHARACTERS:
        return {word}
    return {word} | {word[:at] + word[at + 1 :] for at in range(len(word))}
