"""What answers name for a song: its page, and its cover."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from base64 import b64encode
from typing import TYPE_CHECKING

from polymux._util.atomic_file import write_atomically
from polymux.errors import OutputError
from polymux.songs.covers import cover_of, drawn, picture_beside

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.service.store import Store
    from polymux.songs.results import CatalogueSong

#: Of `SignedAddresses`, behind what links begin with.
PAGES = "/songs/"
COVER = "/cover"
_EXTENSIONS = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
}


class Addresses(ABC):
    """Gives songs their addresses; some of it reads files."""

    @abstractmethod
    def page(self, song: CatalogueSong) -> str:
        """Where more is told of it."""

    @abstractmethod
    def cover(self, song: CatalogueSong) -> str:
        """Where a picture is; never empty."""


class SignedAddresses(Addresses):
    """Pages of a server, by links that work for a while.

    Args:
        base_url: What links begin with.
        store: Whose secrets sign them.
        retention_s: How long they work, at most.
    """

    def __init__(self, base_url: str, store: Store, retention_s: float) -> None:
        self._base_url = base_url
        self._store = store
        self._retention_s = retention_s

    def page(self, song: CatalogueSong) -> str:
        """At MusicBrainz where its tags say which recording it is; else here."""
        return song.url if song.mbid else self._link(f"{PAGES}{song.id}")

    def cover(self, song: CatalogueSong) -> str:
        """Here: where it has none, one is drawn."""
        return self._link(f"{PAGES}{song.id}{COVER}")

    def _link(self, path: str) -> str:
        return f"{self._base_url}{path}?{signature(self._store, path, self._retention_s)}"


def signature(store: Store, path: str, retention_s: float) -> str:
    """What a link to `path` has behind its question mark.

    Args:
        store: Whose secrets sign it.
        path: Of the address.
        retention_s: How long it works; no longer than secrets do.
    """
    return store.links.query(path, store.clock() + min(retention_s, store.links.max_lifetime_s))


class FileAddresses(Addresses):
    """Files of this machine.

    Args:
        folder: Where covers are written that are in no file of their own; made when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def page(self, song: CatalogueSong) -> str:
        """At MusicBrainz where its tags say which recording it is; else its file."""
        return song.url

    def cover(self, song: CatalogueSong) -> str:
        """The picture beside it; else a file with the one that is in it, or that is drawn."""
        beside = picture_beside(song)
        if beside is not None:
            return beside.as_uri()
        stem = _stem(song)
        for extension in _EXTENSIONS.values():
            path = self._folder / f"{stem}{extension}"
            if path.is_file():
                return path.as_uri()
        picture = cover_of(song)
        path = self._folder / f"{stem}{_EXTENSIONS[picture.content_type]}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(path, picture.data, overwrite=True)
        except (OSError, OutputError):
            # The song was found all the same.
            return f"data:image/svg+xml;base64,{b64encode(drawn(song).data).decode()}"
        return path.as_uri()


def _stem(song: CatalogueSong) -> str:
    """The same name as long as nothing has changed that a cover comes from."""
    try:
        status = song.path.stat()
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        state = None
    known = repr((os.fsencode(song.path), state, song.cover, song.name))
    return hashlib.sha256(known.encode("utf-8", "replace")).hexdigest()[:40]
