"""The guarded fetcher: the only way by which polymux fetches what a stranger names.

A URL of a stranger may lead into the network of whoever fetches it. Here it may not: form, scheme,
port, name and all addresses are judged first, for each redirect anew, and the connection goes to
the judged addresses alone. What is refused, the limits and what is not promised:
docs/explanation/ssrf-protection.md.

This is an inner face of the house: functions that take a URL call it, and it may change.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from polymux._native import core
from polymux._util.text import shown
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
    """An answer whose body comes next, and what it takes to ask for its rest should it break off.

    Attributes:
        status: HTTP's status code.
        offset: Where the body begins, in bytes: behind what was there, or at 0.
        whole_bytes: The length of all, with what was there; None where the answer does not say.
        etag: Its strong entity tag; empty where it has none.
        is_encoded: Whether the server has encoded it: then what is written is not what a server
            counts bytes of, and no rest of it can be asked for.
    """

    status: int
    offset: int
    whole_bytes: int | None
    etag: str
    is_encoded: bool


class Unfinished(Protocol):
    """A file that keeps what has come of a body, for `fetch_rest` to go on with.

    Attributes:
        descriptor: Open for writing. The body is written where it stands, and it stays open.
        have_bytes: What has come, from the beginning; 0 for nothing.
        whole_bytes: The length of all; None where nobody knows it.
        etag: The entity tag of what has come; empty where it has none, or is not to be sent.
    """

    descriptor: int
    have_bytes: int
    whole_bytes: int | None
    etag: str

    def begins(self, start: FetchStart) -> None:
        """Called before the first byte of the body: with an offset of 0 what was there is to go.

        What it raises ends the fetch and comes out unchanged.
        """


if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux._native import _core
    from polymux.media.inputs import Destination

    #: Called with bytes of the body so far, decoded, and the bytes that the answer declared.
    OnProgress = Callable[[int, int | None], object]


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer that came whole, whatever its status is.

    Attributes:
        url: Where the redirects ended, without a fragment.
        status: HTTP's status code; 404 and 500 are answers too, see `ok`.
        content_type: As the server said; empty where it said nothing. It proves nothing.
        headers: Name and value as received, in their order.
        body_bytes: Length of the body, decoded.
        received_bytes: Length of the body as it was sent.
        redirects: How many were followed.
        data: The body, where no destination was given.
        path: The file with the body, where a path was given.
        offset: Where the body begins: not 0 where it is the rest of something, see `fetch_rest`.
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
        """Whether the status is one of success."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """The first value of a header, whose name is compared without case; None where absent."""
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
    """Fetches with GET what a stranger named, or refuses to.

    No cookie, credential, proxy or .netrc of this machine takes part. At most
    ``limits.redirects`` redirects are followed, each judged like the first URL; none from https to
    http. The body is decoded (gzip, deflate, br, zstd where libcurl has them). Ctrl-C ends it.

    Args:
        url: Beginning with ``http://`` or ``https://``.
        policy: What may be fetched beyond the public Internet. Default: nothing.
        limits: What it may cost. Default: `FetchLimits()`.
        destination: A path, whose file appears only when the body is whole and replaces one that is
            there; a binary file object; or None to keep the body in memory.
        on_progress: Called on this thread at most every 50 ms, and at the end. What it raises ends
            the fetch and comes out unchanged, like what the file object raises.

    Raises:
        URLRefusedError: Of the URL or of a redirect: its form, scheme, port, or where it leads; or
            too many redirects. The message never has the address of a name.
        ConnectError: The name is not known, or nobody takes the connection.
        TLSError: The certificate is not to be trusted.
        ConnectionLostError: The answer broke off, or is shorter than it declared.
        RequestTimeoutError: `limit` is ``"connect"``, ``"idle"``, ``"rate"`` or ``"total"``.
        AnswerTooLargeError: A limit of the body's or headers' size was passed.
        OutputError: The destination cannot be written.
        TypeError: An argument of the wrong type.

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
        >>> fetch(f"http://{host}/")
        Traceback (most recent call last):
        polymux.errors.URLRefusedError: the URL is refused: its port is not one of those that are
        allowed
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
    """Fetches what is missing of a body, whose beginning an earlier fetch has left.

    The rest is asked for with ``Range``, and with ``If-Range`` where there is an entity tag.
    What comes is exactly that rest, or all of it from the beginning. An answer that is neither
    (status 400, 412, 416 or 501; 206 with another range, length or entity tag, or encoded) is not
    read, and all is asked for instead, once. Whether the whole is what it should be, the caller
    finds out.

    Args:
        url: As for `fetch`, like all that is not described here.
        unfinished: Where the body goes. It keeps what came when the fetch ends early.
        policy: What may be fetched beyond the public Internet.
        limits: What it may cost; ``body_bytes`` counts what was there, too.
        on_progress: Called with what was there counted in.

    Raises:
        PolymuxError: As for `fetch`.

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
    """The same for asyncio, on a thread of the fetcher's own.

    Of these there are 64 at most: who comes beyond them waits, which counts for ``total_ms``.
    Cancelling the task ends the fetch within milliseconds, and the cancellation is passed on only
    after nothing of it runs any more.

    Args:
        url: As for `fetch`, like all that is not described here.
        policy: What may be fetched beyond the public Internet.
        limits: What it may cost.
        destination: A path, a binary file object (used on that thread), or None.
        on_progress: Called on that thread.

    Raises:
        PolymuxError: As for `fetch`.
        asyncio.CancelledError: The task was cancelled.

    Example:
        >>> import asyncio
        >>> asyncio.run(afetch("file:///etc/passwd"))
        Traceback (most recent call last):
        polymux.errors.URLRefusedError: the URL is refused: it must begin with http:// or https://
    """
    call = _Call(url, policy, limits, destination, on_progress)
    return await on_a_thread("fetch", call.run, (limits or FetchLimits()).total_ms)


class Judged(NamedTuple):
    """Where a URL leads, judged: to these addresses, and to no others.

    Attributes:
        host: Name in lower case, or address without brackets.
        port: TCP's.
        addresses: All of the host's, as text.
    """

    host: str
    port: int
    addresses: tuple[str, ...]


async def ajudged(
    url: str, *, policy: FetchPolicy | None = None, limits: FetchLimits | None = None
) -> Judged:
    """Judges a URL as `fetch` does, for those who connect by themselves; connects to nothing.

    Args:
        url: Beginning with ``http://`` or ``https://``.
        policy: As for `fetch`.
        limits: ``connect_ms`` and ``total_ms`` bound the look-up of the name.

    Raises:
        URLRefusedError: It must not be fetched.
        ConnectError: The name is not known.
        RequestTimeoutError: The resolver is silent.
        asyncio.CancelledError: The task was cancelled.

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
    """The arguments of a fetch, checked."""

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
            raise TypeError(f"url is text, not {shown(url)}")
        if policy is not None and not isinstance(policy, FetchPolicy):
            raise TypeError(f"policy is a FetchPolicy or None, not {shown(policy)}")
        if limits is not None and not isinstance(limits, FetchLimits):
            raise TypeError(f"limits is a FetchLimits or None, not {shown(limits)}")
        if on_progress is not None and not callable(on_progress):
            raise TypeError(f"on_progress is callable or None, not {shown(on_progress)}")
        # Half of a surrogate pair is for the core to refuse, with all that is no UTF-8.
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
        """Fetches on this thread, which it has waited for so long."""
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


def _begin(unfinished: Unfinished, *said: Any) -> None:
    unfinished.begins(FetchStart(*said))
