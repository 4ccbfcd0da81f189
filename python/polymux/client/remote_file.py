"""Output files on a server: referenced by URL, downloaded on demand."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from polymux._native import core
from polymux._util.html_repr import embedded, escaped, link
from polymux._util.imports import IMPORTING
from polymux._util.redaction import redact
from polymux._util.text import path_in, printable, shortened
from polymux.client import options
from polymux.client.answer import Answer, status_error
from polymux.client.connection import hosts_like
from polymux.errors import DecodeError, PolymuxError
from polymux.media.media_file import MediaFile, refuse_asynchronous

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager
    from types import ModuleType

    from polymux.client.options import Timeout
    from polymux.fetch.fetcher import Fetched, FetchLimits, FetchPolicy
    from polymux.media.inputs import WritableFile

__all__ = ["RemoteFile"]

_PIECE_BYTES = 256 << 10
_MAX_READ_BYTES = 256 << 20
_PARTIAL_CONTENT = 206
_MAX_SAVE_BYTES = 2 << 30
#: Maximum size of an error response's body.
_MAX_ERROR_BODY_BYTES = 1 << 20
_INLINE_BYTES = 10_000_000
#: Timeouts in seconds: for a preview in a notebook, the default, and the maximum.
_INLINE_S = 60.0
_MAX_FETCH_S = 1900.0
_MAX_TIMEOUT_S = 7 * 86400.0


class RemoteFile(MediaFile):
    """A file on a server. Each access downloads it again.

    Downloads send no API key, cookie or other credential. The SSRF protection of `polymux.fetch`
    allows the public Internet and the server that returned the URL. Downloads time out after
    1,900 s by default, or earlier if they stall.

    Attributes:
        url: The file's URL.
        path: None.
        data: None.

    Example:
        >>> from polymux.client.remote_file import RemoteFile
        >>> picture = RemoteFile("https://files.example/cat.png?sig=1")
        >>> picture.content_type, str(picture)
        ('image/png', 'https://files.example/cat.png?sig=1')
    """

    __slots__ = ("_certificates", "_host", "_verified", "url")
    url: str
    _host: str | None
    _certificates: str | None
    _verified: bool

    def __init__(
        self,
        url: str,
        *,
        host: str | None = None,
        certificates: str | None = None,
        verified: bool = True,
    ) -> None:
        """Create a file that `host`, as ``name:port``, may serve even from a private address.

        `verified` applies to the certificate of `host` only. Other hosts are always verified.
        """
        super().__init__(None)
        self._set(url=url, _host=host, _certificates=certificates, _verified=verified)

    @property
    def size_bytes(self) -> int:
        """Not available before the download.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError("size_bytes: not available for a file on a server. Download it first")

    @property
    def content_type(self) -> str:
        """MIME type according to the extension in the URL."""
        return core.content_type_of(path_in(self.url))

    def read(
        self,
        *,
        limit_bytes: int | None = None,
        timeout: float | Timeout | None = None,
    ) -> bytes:
        """Download the file into memory.

        Args:
            limit_bytes: Maximum size in bytes. Default: 256 MiB.
            timeout: Total timeout in seconds, or a `Timeout`, of which `total`, `connect` and
                `idle` apply. Default: 1,900 s, 10 s to connect, 20 s without a byte. Downloads
                slower than 1,000 bytes/s are also aborted.

        Raises:
            URLRefusedError: The SSRF protection blocked the URL.
            NotFoundError: The file no longer exists.
            APIStatusError: The server returned another error.
            AnswerTooLargeError: The file is too large.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: The download timed out.
        """
        limits = _limits(limit_bytes, timeout, _MAX_READ_BYTES)
        return _data_of(_fetcher().fetch(self.url, policy=self._policy(), limits=limits))

    async def aread(
        self,
        *,
        limit_bytes: int | None = None,
        timeout: float | Timeout | None = None,
    ) -> bytes:
        """Download the file into memory; see `read`."""
        limits = _limits(limit_bytes, timeout, _MAX_READ_BYTES)
        return _data_of(await _fetcher().afetch(self.url, policy=self._policy(), limits=limits))

    def save(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        overwrite: bool = True,
        limit_bytes: int | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
        timeout: float | Timeout | None = None,
    ) -> Path:
        """Download the file to a path. The file appears there only when it is complete.

        Args:
            path: Output path; its directory must exist.
            overwrite: Replace an existing file. Default: True.
            limit_bytes: Maximum size in bytes. Default: 2 GiB.
            on_progress: Called with the bytes received and the total (None if unknown), at most
                every 50 ms and at the end. An exception from it aborts the download.
            timeout: See `read`.

        Returns:
            The output path.

        Raises:
            OutputError: The output already exists or cannot be written.
            PolymuxError: See `read`.
        """
        target = Path(os.fsdecode(path))
        with _pending(target, overwrite=overwrite) as taking:
            plan = self._plan(taking, limit_bytes, timeout)
            _check(_fetcher().fetch(self.url, **plan, on_progress=on_progress), taking.beginning)
        return target

    async def asave(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        overwrite: bool = True,
        limit_bytes: int | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
        timeout: float | Timeout | None = None,
    ) -> Path:
        """Download the file to a path; see `save`. An executor thread calls `on_progress`.

        Raises:
            TypeError: `on_progress` is asynchronous.
            PolymuxError: See `save`.
        """
        target = Path(os.fsdecode(path))
        refuse_asynchronous("on_progress", on_progress)
        with _pending(target, overwrite=overwrite) as taking:
            plan = self._plan(taking, limit_bytes, timeout)
            fetched = await _fetcher().afetch(self.url, **plan, on_progress=on_progress)
            _check(fetched, taking.beginning)
        return target

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the bytes in pieces. Uses a temporary file."""
        with _temporary_file() as file:
            taking = _Taking(file)
            _check(_fetcher().fetch(self.url, **self._plan(taking)), taking.beginning)
            yield from _pieces(file)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the bytes in pieces. Uses a temporary file."""
        with _temporary_file() as file:
            taking = _Taking(file)
            _check(await _fetcher().afetch(self.url, **self._plan(taking)), taking.beginning)
            for piece in _pieces(file):
                yield piece

    def _plan(
        self,
        taking: _Taking,
        limit_bytes: int | None = None,
        timeout: float | Timeout | None = None,
    ) -> dict[str, Any]:
        """Return the arguments of `fetch` and `afetch` for a download to a file."""
        limits = _limits(limit_bytes, timeout, _MAX_SAVE_BYTES)
        return {"policy": self._policy(), "limits": limits, "destination": taking}

    def _policy(self) -> FetchPolicy:
        policy: FetchPolicy = _fetcher().FetchPolicy(
            allowed_hosts=() if self._host is None else hosts_like(self._host),
            certificate_bundle=self._certificates,
            verify_allowed_hosts=self._verified,
        )
        return policy

    def _repr_html_(self) -> str:
        """Return an image or player for notebooks; small files are embedded."""
        kind = self.content_type.partition("/")[0]
        place = link(self.url, _name_of(self.url))
        if kind not in ("image", "audio", "video"):
            return f"<div>{place}</div>"

        try:
            data = self.read(limit_bytes=_INLINE_BYTES, timeout=_INLINE_S)
        except PolymuxError as error:
            return f"<div>{place}: {escaped(error)}</div>"
        tag = "img" if kind == "image" else kind
        return f"<div>{embedded(tag, self.content_type, data)}</div>"

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        """The URL without its query, which may grant access to the file."""
        return f"RemoteFile({redact(self.url.partition('?')[0])!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteFile) and other.url == self.url

    def __hash__(self) -> int:
        return hash((RemoteFile, self.url))

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(
            RemoteFile,
            self.url,
            host=self._host,
            certificates=self._certificates,
            verified=self._verified,
        )
        return made, ()


def _fetcher() -> ModuleType:
    with IMPORTING:
        from polymux.fetch import fetcher

    return fetcher


def _temporary_file() -> AbstractContextManager[BinaryIO]:
    with IMPORTING:
        from tempfile import TemporaryFile

    return TemporaryFile()


def _name_of(url: str) -> str:
    return path_in(url).rpartition("/")[2] or url.partition("?")[0]


class _Taking:
    """Forwards bytes to a file and keeps the first ones, which may be an error message."""

    def __init__(self, file: WritableFile) -> None:
        self._file = file
        self.beginning = bytearray()

    def write(self, data: bytes, /) -> object:
        room = _MAX_ERROR_BODY_BYTES - len(self.beginning)
        if room > 0:
            self.beginning += data[:room]
        return self._file.write(data)


@contextmanager
def _pending(target: Path, *, overwrite: bool) -> Iterator[_Taking]:
    """Yield a file that gets its name at the end unless an exception occurs."""
    with IMPORTING:
        from polymux._util.atomic_file import PendingFile

    pending = PendingFile(target, overwrite=overwrite)
    try:
        yield _Taking(pending)
        pending.commit()
    finally:
        pending.discard()


def _limits(
    given_bytes: int | None, timeout: float | Timeout | None, usual_bytes: int
) -> FetchLimits:
    given = options.as_timeout(timeout)
    body_bytes = usual_bytes if given_bytes is None else given_bytes
    limits: FetchLimits = _fetcher().FetchLimits(
        body_bytes=body_bytes, total_ms=_milliseconds(_MAX_FETCH_S)
    )
    found = {"total_ms": given.total, "connect_ms": given.connect, "idle_ms": given.idle}
    named = {name: _milliseconds(one) for name, one in found.items() if one is not None}
    return replace(limits, **named)


def _milliseconds(seconds: float) -> int:
    """Convert to milliseconds, rounded up, at most one week."""
    return ceil(min(seconds, _MAX_TIMEOUT_S) * 1000)


def _check(fetched: Fetched, beginning: bytes | bytearray = b"") -> None:
    """Check that the server returned the file. `beginning`: the first bytes written to a file.

    Raises:
        APIStatusError: The server returned an error.
        DecodeError: The server returned only a part, although no range was requested.
    """
    if fetched.status == _PARTIAL_CONTENT:
        place = shortened(printable(fetched.header("content-range") or ""))
        raise DecodeError(
            f"download: the server sent only a part of the file ({place or 'status 206'})"
        )
    if fetched.ok:
        return
    fields = "".join(f"{name}: {value}\r\n" for name, value in fetched.headers)
    body = bytes(beginning) if fetched.data is None else fetched.data
    raise status_error(Answer((fetched.status, fields.encode(), body, 1, 0.0, ())))


def _data_of(fetched: Fetched) -> bytes:
    _check(fetched)
    assert fetched.data is not None  # noqa: S101 - set, because there is no destination
    return fetched.data


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece
