"""A transcript in parts that a model can read at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from polymux.summaries.captions import SpokenText

#: With full-width marks, and whatever closes a quotation behind them.
_SENTENCE_END = re.compile("[.!?\u2026\u3002\uff01\uff1f]['\")\\]\u00bb\u201d\u2019]*$")
#: Of a part that is long enough, this share may be given up to end with a sentence.
_MIN_SHARE = 0.6


class Chapter(NamedTuple):
    """A part that a video's maker has named.

    Attributes:
        start_s: Where it begins.
        title: As it is called.
    """

    start_s: float
    title: str


class Part(NamedTuple):
    """What a model reads at once.

    Attributes:
        start_s: Where it begins.
        title: Of its chapter; empty without one.
        text: What is said.
    """

    start_s: float
    title: str
    text: str


def parts_of(
    said: Sequence[SpokenText],
    chapters: Sequence[Chapter],
    most: int,
    size_of: Callable[[str], int] = len,
) -> list[Part]:
    """A transcript in order, cut at chapters, and where those are long at ends of sentences.

    Args:
        said: What is said.
        chapters: In order; none where there are none.
        most: Size of the longest part; a word is never cut, but for one that is longer.
        size_of: Measures a text. Default: by its characters.

    Example:
        >>> from polymux.summaries.captions import SpokenText
        >>> said = [SpokenText(0, "One two."), SpokenText(2, "Three four."), SpokenText(9, "Five.")]
        >>> [part.text for part in parts_of(said, [Chapter(0, "A"), Chapter(8, "B")], 500)]
        ['One two. Three four.', 'Five.']
    """
    found = []
    for title, group in _grouped(said, chapters):
        found += list(_cut(title, group, most, size_of))
    return found


def _grouped(
    said: Sequence[SpokenText], chapters: Sequence[Chapter]
) -> Iterable[tuple[str, list[SpokenText]]]:
    starts = sorted(chapters)
    group: list[SpokenText] = []
    title, number = "", 0
    for one in said:
        while number < len(starts) and one.start_s >= starts[number].start_s:
            if group:
                yield title, group
                group = []
            title = starts[number].title
            number += 1
        group.append(one)
    if group:
        yield title, group


def _cut(
    title: str, group: Sequence[SpokenText], most: int, size_of: Callable[[str], int]
) -> Iterable[Part]:
    words: list[tuple[float, str]] = []
    for one in group:
        for word in one.text.split():
            # Languages without blanks between words have none to cut at.
            step = max(1, most * len(word) // size_of(word))
            words += [(one.start_s, word[at : at + step]) for at in range(0, len(word), step)]
    begin = 0
    while begin < len(words):
        end, length = begin, -1
        while end < len(words) and length + 1 + size_of(words[end][1]) <= most:
            length += 1 + size_of(words[end][1])
            end += 1
        end = max(end, begin + 1)
        if end < len(words):
            end = _sentence(words, begin, end)
        yield Part(words[begin][0], title, " ".join(word for _, word in words[begin:end]))
        begin = end


def _sentence(words: Sequence[tuple[float, str]], begin: int, end: int) -> int:
    """The end of the last sentence that ends late enough, else where the part is full."""
    least = begin + max(1, round((end - begin) * _MIN_SHARE))
    for at in range(end, least - 1, -1):
        if _SENTENCE_END.search(words[at - 1][1]):
            return at
    return end
