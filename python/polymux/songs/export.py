"""Export of song metadata to JSON or CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.atomic_file import write_atomically
from polymux._util.text import shown
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from polymux.songs.results import IndexedSong

FORMATS = ("json", "csv")
COLUMNS = (
    "id", "path", "title", "artist", "album", "year", "duration_s", "mbid", "cover", "group_id",
)  # fmt: skip
#: Spreadsheets interpret a cell with one of these prefixes as a formula.
_FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")


def pieces(songs: Iterable[IndexedSong], kind: str) -> Iterator[str]:
    """Yield the text of an export: a JSON array, or CSV (RFC 4180) with a header line."""
    if kind not in FORMATS:
        raise InvalidRequestError(f"unknown format {shown(kind)} (allowed: json, csv)")
    return _json(songs) if kind == "json" else _csv(songs)


def _json(songs: Iterable[IndexedSong]) -> Iterator[str]:
    before = "[\n"
    for song in songs:
        yield before + json.dumps(song.to_dict(), ensure_ascii=False)
        before = ",\n"
    yield "\n]\n" if before != "[\n" else "[]\n"


class _Echo:
    """A file-like object for `csv.writer` whose `write` returns the line."""

    def write(self, line: str) -> str:
        return line


def _csv(songs: Iterable[IndexedSong]) -> Iterator[str]:
    writer = csv.DictWriter(_Echo(), COLUMNS)
    yield writer.writeheader()
    for song in songs:
        yield writer.writerow({name: _harmless(value) for name, value in song.to_dict().items()})


def _harmless(value: Any) -> Any:
    """Escape text that a spreadsheet would run as a formula: titles are untrusted input."""
    if isinstance(value, str) and value.startswith(_FORMULA_BEGINS):
        return f"'{value}"
    return value


def export(
    songs: Iterable[IndexedSong], path: str | os.PathLike[str], kind: str, *, overwrite: bool
) -> None:
    """Write an export to a file, which appears only when it is complete."""
    text = "".join(pieces(songs, kind))
    write_atomically(Path(path), text.encode(), overwrite=overwrite)
