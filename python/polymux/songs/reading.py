"""A catalogue that is asked and never written, by a process that lives long."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from polymux.songs.catalogue import Catalogue
from polymux.songs.index import CatalogueIndex
from polymux.songs.serving import DATABASE
from polymux.songs.writing import WritingLock

if TYPE_CHECKING:
    from pathlib import Path


class ReadCatalogue(Catalogue):
    """A catalogue whose songs others change.

    What another process adds is found at the next question. Nobody who adds ever waits for this
    one: it takes the lock of writers for nothing, not even to spare the next reader work.

    Args:
        path: The folder, with a catalogue in it.

    Raises:
        CatalogueError: It cannot be opened, is damaged, or of a newer polymux.
    """

    def __init__(self, path: Path) -> None:
        """Opens it."""
        super().__init__(path)
        never = _NeverWriting(self.path / "lock")
        self._index = CatalogueIndex(self.path / "segments", self._database, never)


class _NeverWriting(WritingLock):
    """A lock that others have."""

    def try_acquire(self) -> bool:
        """Never."""
        return False


class Library:
    """The catalogue of a folder whenever it is asked for: also where it comes, goes or is replaced.

    Any number of threads may use it.

    Args:
        folder: The folder; nothing needs to be in it.
        own: One that is open already, to be asked in its place. It is left open. Default: none.
    """

    def __init__(self, folder: Path, own: Catalogue | None = None) -> None:
        """Nothing is opened."""
        self.folder = folder
        self._own = own
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, int], ReadCatalogue] | None = None

    @classmethod
    def of(cls, catalogue: Catalogue) -> Library:
        """That of a catalogue that is open."""
        return cls(catalogue.path, catalogue)

    def catalogue(self) -> Catalogue | None:
        """The catalogue as it is now; None where there is none.

        Raises:
            CatalogueError: It cannot be opened.
        """
        if self._own is not None:
            return self._own
        with self._lock:
            try:
                status = os.stat(self.folder / DATABASE)  # noqa: PTH116 - with its number
            except OSError:
                self._opened = None
                return None
            file = (status.st_dev, status.st_ino)
            if self._opened is None or self._opened[0] != file:
                # The old one is closed when the last thread is done with it.
                self._opened = (file, ReadCatalogue(self.folder))
            return self._opened[1]

    def count(self) -> int:
        """How many songs it has; 0 where there is no catalogue.

        Raises:
            CatalogueError: It cannot be read.
        """
        found = self.catalogue()
        return 0 if found is None else found.count()

    def close(self) -> None:
        """Closes what was opened here."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()
