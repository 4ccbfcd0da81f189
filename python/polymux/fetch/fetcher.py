"""The URL fetcher with SSRF protection, used for all URLs from untrusted input.

A URL from untrusted input could point into the private network of the machine that fetches it. The
fetcher therefore validates syntax, scheme, port, host name and all resolved IP addresses, again
for each redirect, and connects only to the validated addresses.
docs/explanation/ssrf-protection.md describes blocked URLs, limits and what is not guaranteed.

This is an internal API that may change.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from polymux._native import core
from polymux.fetch.policy import FetchLimits, FetchPolicy, native_limits, native_policy
from polymux.fetch.threads import on_a_thread
from polymux.media.inputs import is_path, path_bytes

__all__ = [
    "FetchLimits",
    "FetchPolicy",
    "FetchStart",
    "Fetched",
    "Judged",
    "Unfinished",
    "afetch",
    "ajudged",
    "fetch",
    "fetch_rest",
]


class FetchStart(NamedTuple):
    """The start of a response, with the facts that are needed to resume an interrupted body.

    Attributes:
        status: HTTP status code.
        offset: Position of the body's first byte: after the existing data, or 0.
        whole_bytes: Total length including existing data; None if unknown.
        etag: Strong entity tag; may be empty.
        is_encoded: Whether the body has a content encoding. The decoded data does not correspond to
            the server's byte ranges, so such a body cannot be resumed.
    """

    status: int
    offset: int
    whole_bytes: int | None
    etag: str
    is_encoded: bool


class Unfinished(Protocol):
    """A file with a partial body that `fetch_rest` can resume.

    Attributes:
        descriptor: Descriptor open for writing, at the write position. It stays open.
        have_bytes: Number of existing bytes from the start; may be 0.
        whole_bytes: Total length; None if unknown.
        etag: Entity tag of the existing bytes; empty if unknown or not to be sent.
    """

    descriptor: int
    have_bytes: int
    whole_bytes: int | None
    etag: str

    def begins(self, start: FetchStart) -> None:
        """Called before the first byte of the body. If the offset is 0, discard existing data.

        An exception from it aborts the fetch and is raised unchanged.
        """


if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux._native import _core
    from polymux.media.inputs import Destination

    #: Called with the number of decoded bytes so far, and the declared length of the body.
    OnProgress = Callable[[int, int | None], object]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A complete response with any status.

    Attributes:
        url: URL after redirects, without a fragment.
        status: HTTP status code. 404 and 500 are also responses; see `ok`.
        content_type: Content type from the server, not verified; empty if missing.
        headers: Names and values as received, in order.
        body_bytes: Length of the decoded body.
        received_bytes: Length of the body as sent.
        redirects: Number of redirects.
        data: The body, if no destination was given.
        path: The file with the body, if a path was given.
        offset: Position of the body's first byte; not 0 for a resumed body, see `fetch_rest`.
    """

    url: str
    status: int
    content_type: str
    headers: tuple[tuple[str, str], ...]
    body_bytes: int
    received_bytes: int
    redirects: int
    data: bytes | None = None
    path: Path | None = None
    offset: int = 0

    def __repr__(self) -> str:
        url = self.url.partition("?")[0]
        return f"Fetched(url={url!r}, status={self.status}, body_bytes={self.body_bytes})"

    @property
    def ok(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """Return the first value of a header (case-insensitive); None if missing."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


def fetch(
    url: str,
    *,
    policy: FetchPolicy | None = None,
    limits: FetchLimits | None = None,
    destination: Destination = None,
    on_progress: OnProgress | None = None,
) -> Fetched:
    """Fetch a URL from untrusted input with GET, or reject it.

    Sends no cookies or credentials, and ignores proxies and .netrc of this machine. Follows at
    most ``limits.redirects`` redirects, validates each like the first URL, and rejects redirects
    from https to http. Decodes the body (gzip, deflate, br, zstd if libcurl supports them). Ctrl-C
    aborts the fetch.

    Args:
        url: An ``http://`` or ``https://`` URL.
        policy: Allowed hosts beyond the public Internet. Default: none.
        limits: Limits on size and time. Default: `FetchLimits()`.
        destination: A path, whose file appears only when the body is complete and replaces an
            existing one; a binary file object; or None to return the body in memory.
        on_progress: Called on this thread at most every 50 ms, and at the end. Exceptions from it
            and from the file object abort the fetch and are raised unchanged.

    Raises:
        URLRefusedError: The URL or a redirect is not allowed, because of its syntax, scheme, port
            or addresses; or there are too many redirects. The message never contains the IP address
            of a host name.
        ConnectError: The host name is unknown, or the connection was refused.
        TLSError: The certificate is not trusted.
        ConnectionLostError: The connection was lost, or the body is shorter than declared.
        RequestTimeoutError: Timed out; `limit` is ``"connect"``, ``"idle"``, ``"rate"`` or
            ``"total"``.
        AnswerTooLargeError: Body or headers are too large.
        OutputError: The destination cannot be written.
        TypeError: An argument has the wrong type.

    Example:
        >>> from http.server import BaseHTTPRequestHandler, HTTPServer
        >>> from threading import Thread
        >>> class Hello(BaseHTTPRequestHandler):
        ...     def do_GET(self) -> None:
        ...         self.send_response(200)
        ...         self.end_headers()
        ...         self.wfile.write(b"hello")
        ...     def log_message(self, *arguments: object) -> None:
        ...         pass
        >>> server = HTTPServer(("127.0.0.1", 0), Hello)
        >>> Thread(target=server.handle_request).start()
        >>> host = f"127.0.0.1:{server.server_port}"
        >>> fetch(f"http://{host}/", policy=FetchPolicy(allowed_hosts=(host,))).data
        b'hello'
        >>> server.server_close()
        >>> fetch("http://media.example:8080/")
        Traceback (most recent call last):
        polymux.errors.URLRefusedError: the URL is refused: port 8080 is not allowed (allowed: 80,
        443)
    """
    return _Call(url, policy, limits, destination, on_progress).run(core.CancelToken())


def fetch_rest(
    url: str,
    unfinished: Unfinished,
    *,
    policy: FetchPolicy | None = None,
    limits: FetchLimits | None = None,
    on_progress: OnProgress | None = None,
) -> Fetched:
    """Resume the fetch of a body.

    Sends ``Range``, and ``If-Range`` if there is an entity tag. The response must contain exactly
    the rest, or the whole body. Other responses (status 400, 412, 416 or 501; 206 with another
    range, length or entity tag, or with a content encoding) are discarded, and the whole body is
    requested once. The caller has to verify the complete file.

    Args:
        url: See `fetch`, also for everything else that is not described here.
        unfinished: Stores the body. It keeps the received part if the fetch ends early.
        policy: Allowed hosts beyond the public Internet.
        limits: Limits on size and time; ``body_bytes`` includes the existing bytes.
        on_progress: Called with byte counts that include the existing bytes.

    Raises:
        PolymuxError: See `fetch`.

    Example:
        >>> import tempfile
        >>> class Nothing:
        ...     have_bytes, whole_bytes, etag = 0, None, ""
        ...     def __init__(self, file) -> None:
        ...         self.descriptor = file.fileno()
        ...     def begins(self, start: FetchStart) -> None:
        ...         print(start.status)
        >>> with tempfile.TemporaryFile() as file:
        ...     fetch_rest("file:///etc/passwd", Nothing(file))
        Traceback (most recent call last):
        polymux.errors.URLRefusedError: the URL is refused: it must begin with http:// or https://
    """
    call = _Call(url, policy, limits, None, on_progress, unfinished)
    return call.run(core.CancelToken())


async def afetch(
    url: str,
    *,
    policy: FetchPolicy | None = None,
    limits: FetchLimits | None = None,
    destination: Destination = None,
    on_progress: OnProgress | None = None,
) -> Fetched:
    """Fetch a URL in asyncio, on a separate thread; see `fetch`.

    At most 64 threads run at once. Further calls wait, and the wait counts toward ``total_ms``.
    Canceling the task aborts the fetch within milliseconds. The cancellation is raised after the
    thread has ended.

    Args:
        url: See `fetch`, also for everything else that is not described here.
        policy: Allowed hosts beyond the public Internet.
        limits: Limits on size and time.
        destination: A path, a binary file object (used on that thread), or None.
        on_progress: Called on that thread.

    Raises:
        PolymuxError: See `fetch`.
        asyncio.CancelledError: The task was canceled.

    Example:
        >>> import asyncio
        >>> asyncio.run(afetch("file:///etc/passwd"))
        Traceback (most recent call last):
        polymux.errors.URLRefusedError: the URL is refused: it must begin with http:// or https://
    """
    call = _Call(url, policy, limits, destination, on_progress)
    return await on_a_thread("fetch", call.run, (limits or FetchLimits()).total_ms)


class Judged(NamedTuple):
    """The validated destination of a URL. Connect only to these addresses.

    Attributes:
        host: Host name in lower case, or IP address without brackets.
        port: TCP port.
        addresses: All IP addresses of the host, as text.
    """

    host: str
    port: int
    addresses: tuple[str, ...]


async def ajudged(
    url: str, *, policy: FetchPolicy | None = None, limits: FetchLimits | None = None
) -> Judged:
    """Validate a URL like `fetch` without connecting, for callers that connect themselves.

    Args:
        url: An ``http://`` or ``https://`` URL.
        policy: See `fetch`.
        limits: ``connect_ms`` and ``total_ms`` limit the DNS lookup.

    Raises:
        URLRefusedError: The URL is not allowed.
        ConnectError: The host name is unknown.
        RequestTimeoutError: The DNS lookup timed out.
        asyncio.CancelledError: The task was canceled.

    Example:
        >>> import asyncio
        >>> policy = FetchPolicy(allowed_hosts=("127.0.0.1:8080",))
        >>> asyncio.run(ajudged("http://127.0.0.1:8080/a", policy=policy))
        Judged(host='127.0.0.1', port=8080, addresses=('127.0.0.1',))
        >>> asyncio.run(ajudged("http://127.0.0.1/a", policy=policy))
        Traceback (most recent call last):
        polymux.errors.URLRefusedError: the URL is refused: its host is not on the public Internet
    """
    address = url.encode("utf-8", "surrogatepass")
    native, kept = native_policy(policy or FetchPolicy()), limits or FetchLimits()

    def judge(token: _core.CancelToken, waited_ms: int) -> tuple[str, int, list[str]]:
        return core.resolve_destination(address, native, native_limits(kept, waited_ms), token)

    host, port, addresses = await on_a_thread("look-up", judge, kept.total_ms)
    return Judged(host, port, tuple(addresses))


class _Call:
    """The validated arguments of a fetch."""

    def __init__(
        self,
        url: str,
        policy: FetchPolicy | None,
        limits: FetchLimits | None,
        destination: Destination,
        on_progress: OnProgress | None,
        unfinished: Unfinished | None = None,
    ) -> None:
        if not isinstance(url, str):
            raise TypeError(f"url: invalid type (got {type(url).__name__}, allowed str)")
        if policy is not None and not isinstance(policy, FetchPolicy):
            raise TypeError(
                f"policy: invalid type (got {type(policy).__name__}, allowed FetchPolicy or None)"
            )
        if limits is not None and not isinstance(limits, FetchLimits):
            raise TypeError(
                f"limits: invalid type (got {type(limits).__name__}, allowed FetchLimits or None)"
            )
        if on_progress is not None and not callable(on_progress):
            raise TypeError(
                f"on_progress: invalid type (got {type(on_progress).__name__}, allowed a callable "
                "or None)"
            )
        # The core rejects lone surrogates together with other invalid UTF-8.
        self._url = url.encode("utf-8", "surrogatepass")
        self._policy = native_policy(policy or FetchPolicy())
        self._limits = limits or FetchLimits()
        self._on_progress = on_progress
        self._unfinished = unfinished
        self._file: object = None
        self._path: Path | None = None
        if is_path(destination) or isinstance(destination, bytes):
            self._path = Path(os.fsdecode(path_bytes(destination)))  # type: ignore[arg-type]
        else:
            self._file = destination

    def run(self, token: _core.CancelToken, waited_ms: int = 0) -> Fetched:
        """Fetch on this thread. `waited_ms`: time that the call has waited for the thread."""
        if self._unfinished is not None:
            return self._fetched(("descriptor", self._unfinished.descriptor), token, waited_ms)
        if self._path is None:
            file = None if self._file is None else ("file", self._file)
            return self._fetched(file, token, waited_ms)
        from polymux._util.atomic_file import PendingFile

        pending = PendingFile(self._path, overwrite=True)
        try:
            fetched = self._fetched(("descriptor", pending.descriptor), token, waited_ms)
            pending.commit()
        finally:
            pending.discard()
        return fetched

    def _fetched(
        self, destination: tuple[str, object] | None, token: _core.CancelToken, waited_ms: int
    ) -> Fetched:
        rest, on_start = None, None
        if (kept := self._unfinished) is not None:
            rest = (kept.have_bytes, kept.etag, kept.whole_bytes)
            on_start = partial(_begin, kept)
        answer = core.fetch(
            self._url, self._policy, native_limits(self._limits, waited_ms), destination,
            self._on_progress, token, rest, on_start,
        )  # fmt: skip
        answer["headers"] = tuple(answer["headers"])
        return Fetched(**answer, path=self._path)


def _begin(unfinished: Unfinished, *fields: Any) -> None:
    unfinished.begins(FetchStart(*fields))
