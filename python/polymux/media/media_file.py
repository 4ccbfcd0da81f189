"""The results of conversions: `MediaFile` and `ConversionOutcome`.

`polymux.client.remote_file` has the same interface for files on a server.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.frozen import Frozen, Record
from polymux._util.html_repr import embedded, escaped
from polymux._util.text import clock, display_name, short_repr, size
from polymux.errors import AnswerTooLargeError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from polymux.client.options import Timeout
    from polymux.media.inputs import Source
    from polymux.media.results import ConversionReport


_INLINE_PLAYER_BYTES = 10_000_000
_PIECE_BYTES = 256 << 10


class MediaFile(Frozen):
    """A finished file: an MP3 made by this process, or a file made by a server or `polymux.Local`.

    All of them have the same interface. The content of an MP3 made by this process is on disk, in
    memory, or already written to the caller's file object.

    Attributes:
        report: Report of the conversion: duration, frames, warnings, elapsed time. Raises
            AttributeError for files of a server, and for files of `polymux.Local` that are not the
            result of a conversion.
        path: Path of the file; None if the destination was not a path.
        data: The complete file if it was made in memory, else None. Use `read` to get the bytes in
            either case.

    Example:
        >>> import polymux
        >>> song = polymux.convert_to_mp3("song.flac")
        >>> song.size_bytes == len(song.read())
        True
        >>> song.save("song.mp3").name
        'song.mp3'
    """

    __slots__ = ("_report", "data", "path")
    path: Path | None
    data: bytes | None
    _report: ConversionReport | None

    def __init__(
        self, report: ConversionReport | None, path: Path | None = None, data: bytes | None = None
    ) -> None:
        self._set(_report=report, path=path, data=data)

    @property
    def report(self) -> ConversionReport:
        """The conversion's report.

        Raises:
            AttributeError: The file has none.
        """
        if self._report is None:
            raise AttributeError(
                "report: not available for this file. Only files of polymux.convert_to_mp3 have it"
            )
        return self._report

    def __repr__(self) -> str:
        place = {} if self.path is None else {"path": self.path}
        return short_repr(
            self, **place, duration_s=self.report.duration_s, size_bytes=self.size_bytes
        )

    @property
    def url(self) -> str | None:
        """URL of a file made by a server or by `polymux.Local`; None for an MP3 of this process."""
        return None

    @property
    def size_bytes(self) -> int:
        """Size of the file in bytes, tags included. AttributeError for a file on a server."""
        return self.report.bytes

    @property
    def content_type(self) -> str:
        """MIME type. Always ``"audio/mpeg"`` (RFC 3003) for an MP3 made by this process."""
        return "audio/mpeg"

    def read(
        self,
        *,
        limit_bytes: int | None = None,
        timeout: float | Timeout | None = None,  # noqa: ARG002 - used by files on a server
    ) -> bytes:
        """Return the bytes of the file from memory, disk or the server.

        Args:
            limit_bytes: Maximum size of the file in bytes. Default: unlimited, or 256 MiB for a
                file on a server.
            timeout: Time limit for downloading a file from a server; see `RemoteFile.read`.

        Raises:
            AnswerTooLargeError: The file exceeds `limit_bytes`.
            InvalidRequestError: The MP3 was written to a file object of the caller.
            OSError: The file on disk cannot be read.
            PolymuxError: Downloading a file from a server failed; see `RemoteFile.read`.
        """
        if limit_bytes is not None and limit_bytes < self.size_bytes:
            raise AnswerTooLargeError(
                f"file too large (got {self.size_bytes} bytes, allowed limit_bytes={limit_bytes})"
            )
        if self.data is not None:
            return self.data
        if self.path is not None:
            return self.path.read_bytes()
        raise InvalidRequestError(
            "this MP3 was written to a file object (`destination`). Read it from there"
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
        """Save a copy of the file. It appears at `path` only when it is complete.

        The bytes are written to a temporary file in the same directory, synced to the disk, and
        renamed. A replaced file keeps its permissions.

        Args:
            path: Output path, in an existing directory. It must not be a symlink, a directory or a
                device.
            overwrite: Replace an existing file. Default: True.
            limit_bytes: Maximum size of the file in bytes. Default: unlimited, or 2 GiB for a file
                on a server.
            on_progress: Called with the bytes written and the total bytes: repeatedly while a file
                on a server is downloaded, else once. If it raises an exception, `save` raises it
                and writes no file.
            timeout: Time limit for downloading, as for `read`.

        Returns:
            The path of the copy.

        Raises:
            OutputExistsError: The file exists and `overwrite` is False.
            OutputRefusedError: The path is a symlink, a directory or a device.
            OutputFailedError: Writing failed: no space, permission denied, or no such directory.
            InvalidRequestError: The MP3 was written to a file object of the caller.
            PolymuxError: As for `read`.

        Example:
            >>> import polymux
            >>> polymux.convert_to_mp3("song.flac").save("copy.mp3").exists()
            True
        """
        from polymux._util.atomic_file import PendingFile

        target = Path(os.fsdecode(path))
        if self.path is not None and target.exists() and target.samefile(self.path):
            return target  # `path` is the file itself.
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
        """Return the bytes of the file like `read`, without blocking the event loop."""
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
        """Save a copy like `save`, without blocking the event loop.

        Another thread calls `on_progress`, which must be a plain function.

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
        """Return an audio player for notebooks; for a large file, only a description."""
        facts = f"{clock(self.report.duration_s)}, {size(self.size_bytes)}"
        place = escaped(display_name(os.fspath(self.path))) if self.path else "in memory"
        available = self.data is not None or (self.path is not None and self.path.is_file())
        if not available or self.size_bytes > _INLINE_PLAYER_BYTES:
            return f"<div>MP3, {facts}, {place}</div>"
        player = embedded("audio", self.content_type, self.read())
        return f"<div>{player}<div>{facts}, {place}</div></div>"


def refuse_asynchronous(name: str, callback: object) -> None:
    """Reject an asynchronous function as a callback that is not awaited.

    Raises:
        TypeError: The callback is asynchronous.
    """
    if callback is None:
        return
    from inspect import iscoroutinefunction

    if iscoroutinefunction(callback) or iscoroutinefunction(getattr(callback, "__call__", None)):  # noqa: B004
        raise TypeError(f"{name}: asynchronous functions are not supported. Use a plain function")


class ConversionOutcome(Record):
    """The result of one source of `polymux.convert_many`: either a file or an error.

    Attributes:
        index: Position of the source, from 0.
        source: The source that you passed.
        file: The MP3; None if the conversion failed.
        error: The error; None if the conversion succeeded. A `polymux.PolymuxError`, or any
            exception that a file object of the caller raised.

    Example:
        >>> import polymux
        >>> [outcome] = polymux.convert_many(["missing.wav"])
        >>> outcome.ok, type(outcome.error).__name__
        (False, 'InputNotFoundError')
    """

    index: int
    source: Source
    file: MediaFile | None
    error: Exception | None

    def __repr__(self) -> str:
        return short_repr(self, "file", "error", index=self.index)

    @property
    def ok(self) -> bool:
        """Whether the conversion succeeded."""
        return self.error is None

    def unwrap(self) -> MediaFile:
        """Return the file, or raise the error if the conversion failed.

        Raises:
            Exception: The outcome's `error`.
        """
        if self.error is not None:
            raise self.error
        assert self.file is not None  # noqa: S101 - either `file` or `error` is set
        return self.file

    def _repr_html_(self) -> str:
        """Return the file's player, or the error, for notebooks."""
        if self.file is not None:
            return self.file._repr_html_()
        return f"<div>source {self.index}: {escaped(self.error)}</div>"
