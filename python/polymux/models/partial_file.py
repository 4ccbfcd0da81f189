"""A partially downloaded file of a model, which a later download can resume.

It is stored in the workspace of a download, which one process has locked, and is named by the
expected hash of the complete file. A note next to it has the data needed to resume; without the
note the download restarts. The note has only a hash of the URL, because URL queries can have
secrets. Neither file is trusted: only the hash of the complete file decides.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, Self

from polymux._util.atomic_file import write_atomically
from polymux.models.errors import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from polymux.fetch.fetcher import FetchStart

_NOTE = ".json"
_PART_ALONE = 206
_MAX_NOTE_BYTES = 1 << 16
#: A SHA-256 or a git SHA-1.
_DIGEST = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")


class UnfinishedFile:
    """The partial file, open for `polymux.fetch.fetcher.fetch_rest` inside a ``with`` block.

    Args:
        folder: Existing directory in the workspace.
        digest: SHA-256 or git blob ID of the complete file in hexadecimal digits; used as name.
        url: Current URL of the file.
        whole_bytes: Size of the complete file; None if unknown.
        refusal: Function that creates the error for an HTTP status without a file.

    Raises:
        ValueError: `digest` is not a hash and could be a path.
        OutputFailedError: The file cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        digest: str,
        url: str,
        whole_bytes: int | None,
        refusal: Callable[[int], Exception],
    ) -> None:
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest!r} is not a hash")
        self.path = folder / digest
        self._note = folder / f"{digest}{_NOTE}"
        self._url_sha256 = hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()
        self._refusal = refusal
        self.descriptor = -1
        self.whole_bytes = whole_bytes
        self.have_bytes = 0
        self.etag = ""

    def __enter__(self) -> Self:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with writing(self.path):
            self.descriptor = os.open(self.path, flags, 0o666)
            try:
                self._take_up()
            except BaseException:
                os.close(self.descriptor)
                raise
        return self

    def _take_up(self) -> None:
        noted = _read(self._note)
        length = os.fstat(self.descriptor).st_size
        if noted is not None:
            url_sha256, etag, whole = noted
            if self.whole_bytes is None:
                self.whole_bytes = whole
            # An entity tag is only valid for its URL.
            self.etag = etag if url_sha256 == self._url_sha256 else ""
        is_too_long = self.whole_bytes is not None and length > self.whole_bytes
        if noted is None or is_too_long:
            self._clear()
            return
        self.have_bytes = os.lseek(self.descriptor, 0, os.SEEK_END)

    @property
    def is_whole(self) -> bool:
        """Whether the file has its full size, so no request is needed."""
        return self.have_bytes > 0 and self.have_bytes == self.whole_bytes

    def begins(self, start: FetchStart) -> None:
        """Handle the start of a response; see `polymux.fetch.fetcher.Unfinished`.

        Raises:
            Exception: The response has no file. The existing data is kept.
            OutputFailedError: The file cannot be written.
        """
        asked_for = start.status != _PART_ALONE or start.offset > 0
        if not (200 <= start.status < 300 and asked_for):
            raise self._refusal(start.status)
        if start.offset:
            return
        with writing(self.path):
            self._clear()
            if not start.is_encoded:
                noted = {
                    "url_sha256": self._url_sha256,
                    "etag": start.etag,
                    "bytes": start.whole_bytes,
                }
                write_atomically(self._note, json.dumps(noted).encode(), overwrite=True)

    def _clear(self) -> None:
        # The note is deleted before and written after the data: data without a note is discarded,
        # but a note with other data would be used to resume it.
        self._note.unlink(missing_ok=True)
        os.ftruncate(self.descriptor, 0)
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        self.have_bytes = 0

    def move_to(self, target: Path) -> None:
        """Move the file to its place after its hash was verified."""
        with writing(target):
            os.fsync(self.descriptor)
            self.path.replace(target)
            self._note.unlink(missing_ok=True)

    def discard(self) -> None:
        """Delete the file, which restarts the next download."""
        with writing(self.path):
            self._note.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)

    def __exit__(self, *raised: object) -> None:
        is_empty = os.fstat(self.descriptor).st_size == 0
        os.close(self.descriptor)
        if is_empty:
            self.discard()


def tidy(folder: Path, digests: Collection[str]) -> None:
    """Create the directory of partial files, and remove all files without one of these hashes."""
    names = {*digests, *(f"{one}{_NOTE}" for one in digests)}
    with writing(folder):
        if folder.is_symlink():
            folder.unlink()  # Never delete through a symlink.
        folder.mkdir(exist_ok=True)
        for one in list(folder.iterdir()):
            if one.is_dir() and not one.is_symlink():
                shutil.rmtree(one)
            elif one.name not in names or not one.is_file() or one.is_symlink():
                one.unlink()


def _read(note: Path) -> tuple[str, str, int | None] | None:
    """Read the URL's SHA-256, the entity tag and the total size; None if the note is invalid."""
    try:
        with note.open("rb") as file:
            plain: Any = json.loads(file.read(_MAX_NOTE_BYTES))
        url_sha256, etag, whole = plain["url_sha256"], plain["etag"], plain["bytes"]
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None
    is_length = whole is None or (type(whole) is int and 0 <= whole < 1 << 63)
    if isinstance(url_sha256, str) and isinstance(etag, str) and etag.isascii() and is_length:
        return url_sha256, etag, whole
    return None
