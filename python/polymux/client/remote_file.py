"""Files that a server has made: known by their address, fetched when they are wanted."""

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
from polymux._util.redaction import redact
from polymux._util.text import path_in, printable, shortened
from polymux.errors import DecodeError, PolymuxError
from polymux.media.media_file import MediaFile, refuse_asynchronous

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from polymux.client.options import Timeout
    from polymux.fetch.fetcher import Fetched, FetchLimits, FetchPolicy
    from polymux.media.inputs import WritableFile
    from polymux.media.results import ConversionReport

__all__ = ["RemoteFile"]

_PIECE_BYTES = 256 << 10
_MAX_READ_BYTES = 256 << 20
_PARTIAL_CONTENT = 206
_MAX_SAVE_BYTES = 2 << 30
#: Of a refusal's body, which says why.
_MAX_ERROR_BODY_BYTES = 1 << 20
_INLINE_BYTES = 10_000_000
#: Of a file that a notebook shows, of all others, and at most.
_INLINE_S = 60.0
_MAX_FETCH_S = 1900.0
_MAX_TIMEOUT_S = 7 * 86400.0


class RemoteFile(MediaFile):
    """A file on a server. Nothing is fetched before it is asked for, and then each time anew.

    It is fetched without any key, cookie or other credential, and through the guard of
    `polymux.fetch`: from the public Internet, and from the host that named it. What takes over
    1,900 s is given up, unless `timeout` says otherwise, and what stalls before.

    Attributes:
        url: Its address.
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
        """An address, the ``name:port`` that may have it wherever that is, and who is trusted.

        That host's certificate is looked at only if `verified`; those of all others always are.
        """
        for name, value in (
            ("path", None),
            ("data", None),
            ("url", url),
            ("_host", host),
            ("_certificates", certificates),
            ("_verified", verified),
        ):
            object.__setattr__(self, name, value)

    @property
    def report(self) -> ConversionReport:
        """Of conversions on this machine alone.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(
            "a file on a server has no report; polymux.convert_to_mp3, which works here, gives one"
        )

    @property
    def size_bytes(self) -> int:
        """Not known before the file is fetched.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError("the size of a file on a server is known once it is fetched")

    @property
    def content_type(self) -> str:
        """MIME type, by the extension in the address."""
        return core.content_type_of(path_in(self.url))

    def read(
        self,
        *,
        limit_bytes: int | None = None,
        timeout: float | Timeout | None = None,
    ) -> bytes:
        """Fetches the file into memory.

        Args:
            limit_bytes: Longest file that is taken. Default: 256 MiB.
            timeout: Seconds that this may take, or a `Timeout`, of which `total`, `connect` and
                `idle` count. Default: 1,900 s, 10 s to connect, 20 s without a byte. Slower than
                1,000 bytes a second is given up as well.

        Raises:
            URLRefusedError: The address leads where nothing may be fetched from.
            NotFoundError: The server has it no more.
            APIStatusError: The server refuses or fails otherwise.
            AnswerTooLargeError: It is over the limit.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: It took too long.
        """
        from polymux.fetch.fetcher import fetch

        limits = _limits(limit_bytes, timeout, _MAX_READ_BYTES)
        return _data_of(fetch(self.url, policy=self._policy(), limits=limits))

    async def aread(
        self,
        *,
        limit_bytes: int | None = None,
        timeout: float | Timeout | None = None,
    ) -> bytes:
        """The same for asyncio."""
        from polymux.fetch.fetcher import afetch

        limits = _limits(limit_bytes, timeout, _MAX_READ_BYTES)
        return _data_of(await afetch(self.url, policy=self._policy(), limits=limits))

    def save(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        *,
        overwrite: bool = True,
        limit_bytes: int | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
        timeout: float | Timeout | None = None,
    ) -> Path:
        """Fetches the file to a path, piece by piece; it appears there only when it is whole.

        Args:
            path: Where to write; the folder must exist.
            overwrite: Replace an existing file. Default: True.
            limit_bytes: Longest file that is taken. Default: 2 GiB.
            on_progress: Told the bytes that have come and the bytes in all, None where the server
                does not say; at most every 50 ms, and at the end. What it raises ends the fetch.
            timeout: As for `read`.

        Returns:
            The path written.

        Raises:
            OutputError: Something is in the way, or it cannot be written.
            PolymuxError: As for `read`.
        """
        from polymux.fetch.fetcher import fetch

        target = Path(os.fsdecode(path))
        with _pending(target, overwrite=overwrite) as taking:
            plan = self._plan(taking, limit_bytes, timeout)
            _check(fetch(self.url, **plan, on_progress=on_progress), taking.beginning)
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
        """The same for asyncio; `on_progress` is called on a thread of the loop's executor.

        Raises:
            TypeError: `on_progress` is asynchronous.
            PolymuxError: As for `save`.
        """
        from polymux.fetch.fetcher import afetch

        target = Path(os.fsdecode(path))
        refuse_asynchronous("on_progress", on_progress)
        with _pending(target, overwrite=overwrite) as taking:
            plan = self._plan(taking, limit_bytes, timeout)
            _check(await afetch(self.url, **plan, on_progress=on_progress), taking.beginning)
        return target

    def __iter__(self) -> Iterator[bytes]:
        """The bytes, piece by piece, over a temporary file."""
        from tempfile import TemporaryFile

        from polymux.fetch.fetcher import fetch

        with TemporaryFile() as file:
            taking = _Taking(file)
            _check(fetch(self.url, **self._plan(taking)), taking.beginning)
            yield from _pieces(file)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The same for asyncio."""
        from tempfile import TemporaryFile

        from polymux.fetch.fetcher import afetch

        with TemporaryFile() as file:
            taking = _Taking(file)
            _check(await afetch(self.url, **self._plan(taking)), taking.beginning)
            for piece in _pieces(file):
                yield piece

    def _plan(
        self,
        taking: _Taking,
        limit_bytes: int | None = None,
        timeout: float | Timeout | None = None,
    ) -> dict[str, Any]:
        """Arguments of `fetch` and `afetch` for what goes to a file."""
        limits = _limits(limit_bytes, timeout, _MAX_SAVE_BYTES)
        return {"policy": self._policy(), "limits": limits, "destination": taking}

    def _policy(self) -> FetchPolicy:
        from polymux.client.connection import hosts_like
        from polymux.fetch.fetcher import FetchPolicy

        return FetchPolicy(
            allowed_hosts=() if self._host is None else hosts_like(self._host),
            certificate_bundle=self._certificates,
            verify_allowed_hosts=self._verified,
        )

    def _repr_html_(self) -> str:
        """The picture, player or video for notebooks, small ones in the page itself."""
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
        """The address without its query, which may be a key to it."""
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


def _name_of(url: str) -> str:
    return path_in(url).rpartition("/")[2] or url.partition("?")[0]


class _Taking:
    """Hands bytes on to a file, and keeps the first of them: those of a refusal say why."""

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
    """A file that appears under its name unless something is raised meanwhile."""
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
    from polymux.client import options
    from polymux.fetch.fetcher import FetchLimits

    given = options.as_timeout(timeout)
    body_bytes = usual_bytes if given_bytes is None else given_bytes
    limits = FetchLimits(body_bytes=body_bytes, total_ms=_milliseconds(_MAX_FETCH_S))
    found = {"total_ms": given.total, "connect_ms": given.connect, "idle_ms": given.idle}
    named = {name: _milliseconds(one) for name, one in found.items() if one is not None}
    return replace(limits, **named)


def _milliseconds(seconds: float) -> int:
    """Rounded up; what is longer than a week is a week."""
    return ceil(min(seconds, _MAX_TIMEOUT_S) * 1000)


def _check(fetched: Fetched, beginning: bytes | bytearray = b"") -> None:
    """Checks that the server had the file; what came begins so, where it went to a file.

    Raises:
        APIStatusError: It had not.
        DecodeError: The server sent a part of it, which nobody has asked for.
    """
    if fetched.status == _PARTIAL_CONTENT:
        place = shortened(printable(fetched.header("content-range") or ""))
        raise DecodeError(f"the server sent a part of the file only ({place or 'status 206'})")
    if fetched.ok:
        return
    from polymux.client.answer import Answer, status_error

    fields = "".join(f"{name}: {value}\r\n" for name, value in fetched.headers)
    body = bytes(beginning) if fetched.data is None else fetched.data
    raise status_error(Answer((fetched.status, fields.encode(), body, 1, 0.0)))


def _data_of(fetched: Fetched) -> bytes:
    _check(fetched)
    assert fetched.data is not None  # noqa: S101 - no destination was given
    return fetched.data


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece
