"""Finished files: an MP3 that was made here, wherever it lies, and how it came about.

Files that a server has made are of the same kind: `polymux.client.remote_file`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.html_repr import embedded, escaped
from polymux._util.text import clock, display_name, size
from polymux.errors import AnswerTooLargeError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from polymux.client.options import Timeout
    from polymux.media.inputs import Source
    from polymux.media.results import ConversionReport


_INLINE_PLAYER_BYTES = 10_000_000
_PIECE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A finished file: an MP3 made here, or whatever a server or `polymux.Local` has made.

    One face for all of them, so that a program may run on either. An MP3 made here is on disk, in
    memory, or already handed to a file object of the caller.

    Attributes:
        report: What the conversion did: duration, frames, warnings, time taken. Files of a server
            and of `polymux.Local` have none, and raise AttributeError.
        path: Where the file lies; None when no path was given as destination.
        data: The whole file, when it was made in memory; otherwise None. `read` gives the bytes in
            either case.

    Example:
        >>> import polymux
        >>> song = polymux.convert_to_mp3("song.flac")
        >>> song.size_bytes == len(song.read())
        True
        >>> song.save("song.mp3").name
        'song.mp3'
    """

    report: ConversionReport
    path: Path | None = None
    data: bytes | None = field(default=None, repr=False)

    @property
    def url(self) -> str | None:
        """Its address, where a server has it, or `polymux.Local` has made it; else None."""
        return None

    @property
    def size_bytes(self) -> int:
        """Size of the whole file in bytes, tags included; AttributeError for one on a server."""
        return self.report.bytes

    @property
    def content_type(self) -> str:
        """MIME type: of an MP3 made here always ``"audio/mpeg"`` (RFC 3003)."""
        return "audio/mpeg"

    def read(
        self,
        *,
        limit_bytes: int | None = None,
        timeout: float | Timeout | None = None,  # noqa: ARG002 - of files on a server
    ) -> bytes:
        """The bytes of the file, from memory, from disk or from the server.

        Args:
            limit_bytes: Longest file that is taken. Default: none; of a server's files 256 MiB.
            timeout: Of a file on a server, how long fetching it may take; see `RemoteFile.read`.

        Raises:
            AnswerTooLargeError: It is over the limit.
            InvalidRequestError: The MP3 went to a file object of the caller, who has it.
            OSError: The file on disk cannot be read any more.
            PolymuxError: Of a file on a server: see `RemoteFile.read`.
        """
        if limit_bytes is not None and limit_bytes < self.size_bytes:
            raise AnswerTooLargeError(
                f"the file has {self.size_bytes} bytes; limit_bytes allows {limit_bytes}"
            )
        if self.data is not None:
            return self.data
        if self.path is not None:
            return self.path.read_bytes()
        raise InvalidRequestError(
            "this MP3 was written to the file object given as destination; read it there"
        )

    def save(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        overwrite: bool = True,
        limit_bytes: int | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
        timeout: float | Timeout | None = None,
    ) -> Path:
        """Writes a copy that appears under its name only when it is complete.

        The bytes go to a temporary file in the same folder, are synced to the disk, and are then
        renamed. A symlink, a folder or a device is refused; a file that is replaced hands on its
        permissions.

        Args:
            path: Where to write; the folder must exist.
            overwrite: Replace an existing file. Default: True.
            limit_bytes: Longest file that is taken. Default: none; of a server's files 2 GiB.
            on_progress: Told the bytes that were written and the bytes in all: of a file on a
                server while it comes, else once. What it raises is raised here, and nothing
                appears.
            timeout: As for `read`.

        Returns:
            The path written, as a `pathlib.Path`.

        Raises:
            OutputExistsError: The file exists and `overwrite` is False.
            OutputRefusedError: The path is a symlink, a folder or a device.
            OutputFailedError: Writing failed: no space, no permission, no such folder.
            InvalidRequestError: The MP3 went to a file object of the caller, who has it.
            PolymuxError: As for `read`.

        Example:
            >>> import polymux
            >>> polymux.convert_to_mp3("song.flac").save("copy.mp3").exists()
            True
        """
        from polymux._util.atomic_file import PendingFile

        target = Path(os.fsdecode(path))
        if self.path is not None and target.exists() and target.samefile(self.path):
            return target  # It lies there already.
        data = self.read(limit_bytes=limit_bytes, timeout=timeout)
        pending = PendingFile(target, overwrite=overwrite)
        try:
            pending.write(data)
            if on_progress is not None:
                on_progress(len(data), len(data))
            pending.commit()
        finally:
            pending.discard()
        return target

    def __iter__(self) -> Iterator[bytes]:
        data = self.read()
        return (data[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        data = await self.aread()
        for at in range(0, len(data), _PIECE_BYTES):
            yield data[at : at + _PIECE_BYTES]

    async def aread(
        self, *, limit_bytes: int | None = None, timeout: float | Timeout | None = None
    ) -> bytes:
        """As `read`, on another thread."""
        from asyncio import to_thread

        return await to_thread(self.read, limit_bytes=limit_bytes, timeout=timeout)

    async def asave(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        overwrite: bool = True,
        limit_bytes: int | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
        timeout: float | Timeout | None = None,
    ) -> Path:
        """As `save`, on another thread, which calls `on_progress`: a function, no coroutine's.

        Raises:
            TypeError: `on_progress` is asynchronous.
            PolymuxError: As for `save`.
        """
        from asyncio import to_thread

        refuse_asynchronous("on_progress", on_progress)
        return await to_thread(
            self.save,
            path,
            overwrite=overwrite,
            limit_bytes=limit_bytes,
            on_progress=on_progress,
            timeout=timeout,
        )

    def _repr_html_(self) -> str:
        """A player for notebooks; large files are described instead of being put in the page."""
        facts = f"{clock(self.report.duration_s)}, {size(self.size_bytes)}"
        place = escaped(display_name(os.fspath(self.path))) if self.path else "in memory"
        available = self.data is not None or (self.path is not None and self.path.is_file())
        if not available or self.size_bytes > _INLINE_PLAYER_BYTES:
            return f"<div>MP3, {facts}, {place}</div>"
        player = embedded("audio", self.content_type, self.read())
        return f"<div>{player}<div>{facts}, {place}</div></div>"


def refuse_asynchronous(name: str, callback: object) -> None:
    """A callback that nobody would await must be a plain function.

    Raises:
        TypeError: It is asynchronous.
    """
    if callback is None:
        return
    from inspect import iscoroutinefunction

    if iscoroutinefunction(callback) or iscoroutinefunction(getattr(callback, "__call__", None)):  # noqa: B004
        raise TypeError(f"{name} is a plain function here: an asynchronous one is not awaited")


@dataclass(frozen=True, slots=True)
class ConversionOutcome:
    """What became of one source of `polymux.convert_many`: a file or an error, never both.

    Attributes:
        index: Position of the source among those given, from 0.
        source: The source itself, as it was given.
        file: The MP3; None when the conversion failed.
        error: Why it failed; None when it did not. A `polymux.PolymuxError`, or whatever a file
            object of the caller raised.

    Example:
        >>> import polymux
        >>> [outcome] = polymux.convert_many(["missing.wav"])
        >>> outcome.ok, type(outcome.error).__name__
        (False, 'InputNotFoundError')
    """

    index: int
    source: Source = field(repr=False)
    file: MediaFile | None
    error: Exception | None

    @property
    def ok(self) -> bool:
        """Whether there is a file."""
        return self.error is None

    def unwrap(self) -> MediaFile:
        """The file; raises the error when there is none.

        Raises:
            Exception: The outcome's `error`.
        """
        if self.error is not None:
            raise self.error
        assert self.file is not None  # noqa: S101 - one of the two is always there
        return self.file

    def _repr_html_(self) -> str:
        """The file's player, or the error, for notebooks."""
        if self.file is not None:
            return self.file._repr_html_()
        return f"<div>source {self.index}: {escaped(self.error)}</div>"
