"""Search by name: SQLite full-text search finds candidates, and the native core ranks them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from polymux._native import media
from polymux.errors import InvalidRequestError
from polymux.media.options import integer
from polymux.songs.text_normalization import folded, spellings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux._util.sqlite import Connection
    from polymux.songs.results import IndexedSong
    from polymux.songs.table import SongTable

_MAX_FOUND = 50
#: Factor of candidates per result, because copies of a song are removed afterwards.
_COPIES = 4
#: Minimum similarity of a result.
MIN_SIMILARITY = 0.55
#: Minimum for short texts: one character changes much of a title with three characters.
_MIN_SIMILARITY_OF_SHORT = 0.3
#: No title is longer.
MAX_SEARCH_CHARACTERS = 300
_MAX_WORDS = 24
_MAX_CANDIDATES = 200
#: A best result of at least the first value ends the search; one below the second value starts
#: the search by trigrams.
_GOOD_LIKENESS = 0.9
_DOUBTFUL_LIKENESS = 0.75
_MAX_VARIANTS = 8
_MIN_WORD_SIMILARITY = 0.6
#: With fewer words, omitting one is too unspecific; with more, it is too slow.
_WORDS_OF_WHICH_ONE_MAY_LACK = range(3, 9)
_BY = '"by"'
#: Text after the main title, such as featured artists or a part of a work.
_BEHIND_TITLE = re.compile(
    r"\s(?:[-\u2013\u2014/|]\s|\(|\[|(?:ft|feat|featuring|pt|part)\b)|,\s(?:pt|part)\b",
    re.IGNORECASE,
)
_TRIGRAM = 3
#: Maximum number of rows for all selected trigrams; some trigrams are always selected.
_MAX_ROWS = 6000
_MIN_TRIGRAMS = 4
#: All songs of an artist share the trigrams of the artist's name, so titles weigh more.
_TITLE_OF_TRIGRAMS = 3.0


def search_text(text: str) -> str:
    """Check and normalize a search text."""
    if not isinstance(text, str):
        raise TypeError(f"search text: invalid type (got {type(text).__name__}, allowed str)")
    if len(text) > MAX_SEARCH_CHARACTERS:
        raise InvalidRequestError(
            f"search text too long (got {len(text)} characters, allowed {MAX_SEARCH_CHARACTERS})"
        )
    found = folded(text)
    if not found:
        raise InvalidRequestError("empty search text. Use a title, an artist, or both")
    return found


def songs_like(reader: Connection, table: SongTable, text: str, limit: int) -> list[IndexedSong]:
    """Return songs that match a name, best first, without copies of the same song."""
    wanted = search_text(text)
    if not 1 <= integer("limit", limit) <= _MAX_FOUND:
        raise InvalidRequestError(f"limit: out of range (got {limit}, allowed 1 to {_MAX_FOUND})")
    found = search(reader, wanted, _COPIES * limit)
    rows = table.many([number for number, _ in found])
    songs = [rows[number].song() for number, _ in found if number in rows]
    return without_copies(songs)[:limit]


def search(reader: Connection, text: str, limit: int) -> list[tuple[int, float]]:
    """Return the IDs of matching songs with their similarity from 0 to 1, best first.

    Up to four queries run; each runs only if the results so far are not good enough: (1) all words,
    the last also as a prefix; (2) all words, including known words that differ by one typing error;
    (3) the same words with any one of them omitted; (4) trigrams, which find text with several
    errors. The results are ranked by similarity.
    """
    words = text.split()[:_MAX_WORDS]
    candidates = _matched(reader, "words", _as_typed([_quoted(one) for one in words]))
    ranked = _ranked(text, candidates)
    if _is_enough(ranked, limit, _GOOD_LIKENESS):
        return ranked[:limit]
    like = [_any_of([one, *_like(reader, one)]) for one in words]
    candidates |= _matched(reader, "words", _all_of(like))
    ranked = _ranked(text, candidates)
    if not _is_enough(ranked, 1, _GOOD_LIKENESS) and len(like) in _WORDS_OF_WHICH_ONE_MAY_LACK:
        all_but_one = (_all_of(like[:at] + like[at + 1 :]) for at in range(len(like)))
        candidates |= _matched(reader, "words", " OR ".join(f"({one})" for one in all_but_one))
        ranked = _ranked(text, candidates)
    if not _is_enough(ranked, 1, _DOUBTFUL_LIKENESS):
        pieces = _by_trigrams if len(text) >= _TRIGRAM else _by_pieces
        ranked = _ranked(text, candidates | pieces(reader, text))
    return ranked[:limit]


class _Names(NamedTuple):
    """The normalized names of a song.

    `main` is the title before a featured artist, a bracket or a subtitle; empty if it equals the
    title.
    """

    title: str
    artist: str
    main: str


_Titles = dict[int, _Names]


def _is_enough(ranked: list[tuple[int, float]], count: int, likeness: float) -> bool:
    return len(ranked) >= count and ranked[0][1] >= likeness


def _ranked(text: str, candidates: _Titles) -> list[tuple[int, float]]:
    ids = list(candidates)
    names = [(one.title, one.artist) for one in candidates.values()]
    for number, one in candidates.items():
        if one.main:
            ids.append(number)
            names.append((one.main, one.artist))
    least = MIN_SIMILARITY if len(text) >= _TRIGRAM else _MIN_SIMILARITY_OF_SHORT
    ranked: dict[int, float] = {}
    for index, score in media.rank_titles(text, names, least):
        ranked.setdefault(ids[index], score)
    return list(ranked.items())


def _names(title: str, title_folded: str, artist_folded: str) -> _Names:
    found = _BEHIND_TITLE.search(title)
    main = folded(title[: found.start()]) if found else ""
    return _Names(title_folded, artist_folded, "" if main == title_folded else main)


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _any_of(words: list[str]) -> str:
    return f"({' OR '.join(_quoted(one) for one in words)})"


def _all_of(terms: list[str]) -> str:
    """Build a full-text query for all terms; the last term also matches as a prefix."""
    *others, last = terms
    if not last.startswith("("):
        last = f"{last} *"
    return " AND ".join([*others, last])


def _as_typed(terms: list[str]) -> str:
    """Match all terms; for "title by artist", also match without the word "by"."""
    others = [terms[0], *(one for one in terms[1:] if one != _BY)]
    if len(others) == len(terms):
        return _all_of(terms)
    return f"({_all_of(terms)}) OR ({_all_of(others)})"


def _matched(reader: Connection, table: str, query: str, title_weight: float = 1.0) -> _Titles:
    """Run a full-text query. Words in it must be quoted with `_quoted`."""
    found = reader.rows(
        "SELECT songs.id, songs.title, songs.title_folded, songs.artist_folded "  # noqa: S608
        f"FROM {table} JOIN songs ON songs.id = {table}.rowid WHERE {table} MATCH ? "
        f"ORDER BY bm25({table}, ?, 1.0) LIMIT ?",
        (query, title_weight, _MAX_CANDIDATES),
    )
    return {number: _names(*names) for number, *names in found}


def without_copies(songs: Sequence[IndexedSong]) -> list[IndexedSong]:
    """Remove copies of earlier songs, keeping the order."""
    first = {(one.group_id, one.title, one.artist): one for one in reversed(songs)}
    return [one for one in songs if first[one.group_id, one.title, one.artist] is one]


def _like(reader: Connection, word: str) -> list[str]:
    """Return words of the library that differ by one typing error, most similar first."""
    forms = list(spellings(word))
    marks = ",".join("?" * len(forms))
    found = reader.rows(
        "SELECT DISTINCT vocabulary.word FROM spellings JOIN vocabulary "  # noqa: S608 - marks
        f"ON vocabulary.id = spellings.word WHERE form IN ({marks})",
        forms,
    )
    words = [(one, "") for (one,) in found if one != word]
    ranked = media.rank_titles(word, words, _MIN_WORD_SIMILARITY)[:_MAX_VARIANTS]
    return [words[index][0] for index, _ in ranked]


def _by_trigrams(reader: Connection, text: str) -> _Titles:
    """Search by the rarest trigrams: common ones are slow and not specific."""
    pieces = {text[at : at + _TRIGRAM] for at in range(len(text) - _TRIGRAM + 1)}
    counts = reader.rows(
        f"SELECT term, doc FROM trigram_counts WHERE term IN ({','.join('?' * len(pieces))})",  # noqa: S608
        list(pieces),
    )
    counts.sort(key=lambda one: one[1])
    chosen: list[str] = []
    rows = 0
    for term, count in counts:
        if len(chosen) >= _MIN_TRIGRAMS and rows + count > _MAX_ROWS:
            break
        chosen.append(_quoted(term))
        rows += count
    if not chosen:
        return {}
    return _matched(reader, "trigrams", " OR ".join(chosen), _TITLE_OF_TRIGRAMS)


def _by_pieces(reader: Connection, text: str) -> _Titles:
    """Search texts of one or two characters, which have no trigrams. Some scripts need this."""
    pattern = "".join(f"\\{one}" if one in "\\%_" else one for one in text)
    found = reader.rows(
        "SELECT id, title, title_folded, artist_folded FROM songs "
        "WHERE title_folded LIKE ?1 ESCAPE '\\' OR artist_folded LIKE ?1 ESCAPE '\\' "
        "ORDER BY length(title_folded) LIMIT ?2",
        (f"%{pattern}%", _MAX_CANDIDATES),
    )
    return {number: _names(*names) for number, *names in found}
