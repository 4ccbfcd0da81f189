"""Search queries: what users type for a song, the songs they should find, and hostile input."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.song.signals import generator

FOUND_WITHIN = 5  # the expected song is among this many first results
# Letters without a decomposition, and their replacements on keyboards that lack them.
PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe",
                       "ß": "ss", "ı": "i"})  # fmt: skip  # noqa: RUF001
NEIGHBOURS = {
    "q": "wa", "w": "qe", "e": "wr", "r": "et", "t": "ry", "y": "tu", "u": "yi", "i": "uo",
    "o": "ip", "p": "ol", "a": "sq", "s": "ad", "d": "sf", "f": "dg", "g": "fh", "h": "gj",
    "j": "hk", "k": "jl", "l": "kp", "z": "xa", "x": "zc", "c": "xv", "v": "cb", "b": "vn",
    "n": "bm", "m": "nk",
}  # fmt: skip
MIN_FOR_TYPOS = 6  # letters: a typo in a shorter word makes another word


@dataclass(frozen=True)
class Song:
    """The names of a song in the index."""

    key: str
    title: str
    artist: str


@dataclass(frozen=True)
class Query:
    """A query.

    Attributes:
        text: Typed text.
        kind: Kind of deviation from the title.
        expected: Keys of acceptable songs: the song, and all others that the text fits as well. One
            should be among the first results.
    """

    text: str
    kind: str
    expected: frozenset[str]


def folded(text: str) -> str:
    """Remove accents, case and punctuation; words are separated by one space."""
    small = unicodedata.normalize("NFKD", text.casefold()).translate(PLAIN)
    kept = "".join(
        c if c.isalnum() else " " for c in small if not unicodedata.category(c).startswith("M")
    )
    return " ".join(kept.split())


def unmarked(text: str) -> str:
    """Remove accents and keep everything else."""
    apart = unicodedata.normalize("NFKD", text)
    bare = "".join(c for c in apart if not unicodedata.category(c).startswith("M"))
    return "".join(
        c.lower().translate(PLAIN).capitalize() if c.isupper() and c.lower() in "łøđðþæœ"
        else c.translate(PLAIN)
        for c in bare
    )  # fmt: skip


def mistyped(random: np.random.Generator, text: str) -> str:
    """Remove, double or swap a letter, or replace it with its neighbor on the keyboard."""
    places = [index for index, c in enumerate(text) if c.isalpha() and index > 0]
    if len(folded(text).replace(" ", "")) < MIN_FOR_TYPOS or not places:
        return text
    place = places[int(random.integers(len(places)))]
    before, letter, after = text[:place], text[place], text[place + 1 :]
    match int(random.integers(4)):
        case 0:
            return before + after
        case 1:
            return before + letter + letter + after
        case 2 if after[:1].isalpha():
            return before + after[0] + letter + after[1:]
        case _:
            near = NEIGHBOURS.get(letter.lower())
            return before + (near[int(random.integers(2))] if near else "") + after


def shuffled(random: np.random.Generator, text: str) -> str:
    """Shuffle the words."""
    words = text.split()
    order = [int(place) for place in random.permutation(len(words))]
    return " ".join(words[place] for place in order)


def bare(text: str) -> str:
    """Remove additions after a title: featured artists, places of performance."""
    for mark in (" - ", " ft. ", " feat. ", " / ", ", Pt."):
        text = text.split(mark)[0] if text.split(mark)[0].strip() else text
    # Parentheses in the middle belong to the title: "Neon (and the) River".
    text = re.sub(r"(?<=\S) (\([^()]*\)|\[[^\[\]]*\])$", "", text)
    return text.strip("“”¡!?. ")


Writer = Callable[[np.random.Generator, Song], str]
WITH_ARTIST: dict[str, Writer] = {
    "artist after": lambda _, song: f"{song.title} {song.artist}",
    "artist first": lambda _, song: f"{song.artist} - {song.title}",
    "by artist": lambda _, song: f"{bare(song.title)} by {song.artist}",
    "artist, two typos": lambda random, song: mistyped(
        random, f"{mistyped(random, song.title)} {song.artist}"
    ),
    "all folded": lambda _, song: f"{folded(song.title)} {folded(song.artist)}",
}
TITLE_ALONE: dict[str, Writer] = {
    "exact": lambda _, song: song.title,
    "lower case": lambda _, song: song.title.lower(),
    "upper case": lambda _, song: song.title.upper(),
    "no diacritics": lambda _, song: unmarked(song.title),
    "typo": lambda random, song: mistyped(random, song.title),
    "typo, no diacritics": lambda random, song: mistyped(random, unmarked(song.title).lower()),
    "word order": lambda random, song: shuffled(random, song.title),
    "no punctuation": lambda _, song: folded(song.title) or song.title,
    "spaces": lambda _, song: f"  {song.title.replace(' ', '   ')} ",
    "decomposed": lambda _, song: unicodedata.normalize("NFD", song.title),
    "bare": lambda _, song: bare(song.title),
}
KINDS = {**TITLE_ALONE, **WITH_ARTIST}


def queries(seed: int, songs: Sequence[Song], count: int = 240) -> list[Query]:
    """Return queries for songs, with all kinds in turn.

    Args:
        seed: Seed of the queries.
        songs: Songs in the index.
        count: Number of queries.

    Example:
        >>> [one.text for one in queries(1, [Song("1", "Été", "Zoë")], 4)]
        ['Été', 'été', 'ÉTÉ', 'Ete']
    """
    titles: dict[str, set[str]] = {}
    for song in songs:
        titles.setdefault(sorted_words(bare(song.title)), set()).add(song.key)
    found = []
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        random = generator(seed, "query", number)
        song = songs[int(random.integers(len(songs)))]
        if kind in TITLE_ALONE:
            expected = frozenset(titles[sorted_words(bare(song.title))])
        else:
            expected = frozenset({song.key, *alike(song, songs)})
        found.append(Query(KINDS[kind](random, song), kind, expected))
    return found


def sorted_words(text: str) -> str:
    """Return a key that ignores order of words, case, accents and punctuation."""
    return " ".join(sorted(folded(text).split())) or text


def alike(song: Song, songs: Iterable[Song]) -> set[str]:
    """Return the songs with the same artist and, apart from additions, the same title."""
    title, artist = sorted_words(bare(song.title)), folded(song.artist)
    return {
        one.key
        for one in songs
        if folded(one.artist) == artist and sorted_words(bare(one.title)) == title
    }


# These must not cause an error; the result may be empty.
HOSTILE: tuple[str, ...] = (
    "", " ", "\t\n", '"', '""""', "'; DROP TABLE song; --", "title:x", "NEAR(a b)", "a AND", "OR",
    "NOT", "*", "^", "a*b*", "(((", ")", "{a b}:c", "-", "+", "\\", "%", "_", "%_%" * 40, "\x00",
    "a\x00b", "\ud800", "\u202ereversed", "\u0301" * 500, "e" + "\u0301" * 300, "🎵🎶", "\ufeff",
    "a" * 100_000, "word " * 20_000, "日", "가", "!!!", "?", "...", "\U0010ffff",
    "../../../../etc/passwd", "${jndi:x}", "<script>alert(1)</script>", "1e309", "-1", "null",
)  # fmt: skip
