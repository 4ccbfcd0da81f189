"""An LRU cache of answers of song search services."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from polymux.upstreams.song_search.songs import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from polymux.upstreams.song_search.songs import Song

#: Approximate overhead of an entry and of a song.
_ENTRY_BYTES = 500
_SONG_BYTES = 250


class _Kept(NamedTuple):
    until: float
    songs: tuple[Song, ...]
    size_bytes: int


class SongCache:
    """Caches songs by service, text and limit; ignores case in the text.

    Args:
        max_bytes: Approximate memory; 0 disables the cache.
        keep_s: Lifetime of songs in seconds.
        keep_empty_s: Lifetime of empty answers in seconds.
    """

    def __init__(
        self,
        max_bytes: int,
        keep_s: float,
        keep_empty_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_bytes = max_bytes
        self._keep_s = keep_s
        self._keep_empty_s = min(keep_s, keep_empty_s)
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str, int], _Kept] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, source: str, text: str, limit: int) -> tuple[Song, ...] | None:
        """Return the songs, an empty tuple for a cached empty answer, or None if not cached."""
        key = (source, folded(text), limit)
        found = self._kept.get(key)
        if found is None:
            return None
        if found.until <= self._clock():
            self._forget(key)
            return None
        self._kept.move_to_end(key)
        return found.songs

    def keep(self, source: str, text: str, limit: int, songs: Sequence[Song]) -> None:
        key = (source, folded(text), limit)
        if key in self._kept:
            self._forget(key)
        size = _ENTRY_BYTES + 4 * len(key[1]) + sum(_size(one) for one in songs)
        life_s = self._keep_s if songs else self._keep_empty_s
        self._kept[key] = _Kept(self._clock() + life_s, tuple(songs), size)
        self.size_bytes += size
        while self.size_bytes > self._max_bytes:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: tuple[str, str, int]) -> None:
        self.size_bytes -= self._kept.pop(key).size_bytes


def _size(song: Song) -> int:
    # A text needs up to four bytes per character.
    return _SONG_BYTES + 4 * len(song.name) + len(song.url) + len(song.image_url)
