"""URL inputs: download a URL and use it like an uploaded file."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from polymux import errors
from polymux._util.file_signatures import NO_TEXT
from polymux._util.text import display_name
from polymux.fetch.fetcher import FetchLimits, afetch
from polymux.service.backend import DelegatingBackend
from polymux.service.errors import status_error
from polymux.service.model import Estimate, Upload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from polymux.downloads.downloader import PageDownloader
    from polymux.fetch.fetcher import Fetched, FetchPolicy
    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest, OperationResult, ProgressSink
    from polymux.service.temporary_files import TempFile

#: Share of the download in a job's progress.
_SHARE = 0.3
_LOOKED_AT_BYTES = 64 << 10
#: Beginnings of web pages and playlists. The media engine judges all other files: no media
#: container begins like this.
_PAGES = (b"<", b"#extm3u")
#: Finds a page after leading text, such as output of a script before it.
_PAGE_TAG = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|script)[\s>]")
#: Statuses for unauthenticated clients and blocked networks. The page downloader may succeed: it
#: uses the operator's cookies and proxy, and imitates a browser if necessary.
_NOT_FOR_EVERYBODY = (401, 403, 429)
#: Codes of the page downloader that tell less than the error of the fetch before it.
_NO_BETTER = ("upstream_failed", "unsupported_media")


class RefusedAddressError(errors.URLRefusedError, errors.BadRequestError):
    """A URL in a request is not allowed; contains the field's name."""


class UrlFetcher:
    """Downloads untrusted URLs, with a limit of concurrent downloads.

    Args:
        policy: Allowed hosts beyond the public Internet.
        max_bytes: Maximum size of a file.
        total_s: Maximum time for one file.
        at_once: Maximum number of concurrent downloads; others wait.
        pages: Downloads media from web pages. Default: reject web pages.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        max_bytes: int,
        *,
        total_s: float = 1800.0,
        at_once: int = 8,
        pages: PageDownloader | None = None,
    ) -> None:
        self._policy = policy
        self._limits = FetchLimits(body_bytes=max_bytes, total_ms=round(total_s * 1000))
        self._places = asyncio.Semaphore(at_once)
        self._pages = pages

    async def fetch(self, url: str, sink: ProgressSink, drafts: list[TempFile]) -> Upload:
        """Download a file, or the audio of a web page.

        Args:
            url: As the client sent it.
            sink: Receives progress and provides drafts.
            drafts: Receives all drafts created here; the caller must discard them.

        Raises:
            URLRefusedError: The URL is not allowed.
            APIStatusError: The file is missing or too large, or the server failed.
        """
        async with self._places:
            draft = sink.draft(0)
            drafts.append(draft)
            fetched = await self._fetched(url, draft, sink)
            if isinstance(fetched, errors.PolymuxError):
                first: errors.PolymuxError | None = fetched
            elif is_page(await asyncio.to_thread(_start, draft)):
                first = None
            else:
                sink.log(f"downloaded {fetched.body_bytes} bytes from the URL")
                name = _name_of(fetched)
                return Upload(draft.path, name, fetched.content_type, fetched.body_bytes)
        if self._pages is None:
            raise status_error(
                errors.APIStatusError,
                "url: not a media file but a web page, which is not supported on this server. The "
                "server's administrator can install polymux[download]",
                code="unsupported_media",
                status=415,
                param="url",
            )
        draft.discard()
        try:
            return await self._pages.audio(url, sink, drafts)
        except errors.APIStatusError as error:
            if first is not None and error.code in _NO_BETTER:
                sink.log(f"the URL could not be downloaded as a web page either: {error}")
                raise first from None
            raise

    async def _fetched(
        self, url: str, draft: TempFile, sink: ProgressSink
    ) -> Fetched | errors.PolymuxError:
        """Download the URL; returns an error that the page downloader may avoid.

        Raises:
            PolymuxError: Any other error.
        """
        loop = asyncio.get_running_loop()

        def report(done_bytes: int, expected_bytes: int | None) -> None:
            if expected_bytes:
                loop.call_soon_threadsafe(sink.report, done_bytes / expected_bytes)

        try:
            fetched = await afetch(
                url,
                policy=self._policy,
                limits=self._limits,
                destination=draft.path,
                on_progress=report,
            )
        except errors.PolymuxError as error:
            if self._pages is not None and self._pages.has_proxy and _is_out_of_reach(error):
                return failure_of(error)
            raise failure_of(error) from None
        if fetched.ok:
            draft.reserve(fetched.body_bytes)
            return fetched
        failure = failure_of_status(fetched.status)
        if self._pages is not None and fetched.status in _NOT_FOR_EVERYBODY:
            return failure
        raise failure


def failure_of(error: errors.PolymuxError) -> errors.PolymuxError:
    """Convert an error of a fetch to the API error for the client (`contracts.md` G.1)."""
    if isinstance(error, errors.AnswerTooLargeError):
        return status_error(
            errors.RequestTooLargeError, f"the file at the URL is too large: {error}",
            param="url",
        )  # fmt: skip
    if isinstance(error, errors.RequestTimeoutError):
        return _upstream("the request to the URL timed out", "upstream_timeout", 504)
    if isinstance(error, (errors.TransportError, errors.DecodeError)):
        return _upstream(f"cannot download the URL: {error}", "upstream_failed", 502)
    if isinstance(error, errors.URLRefusedError) and error.limit == "redirects":
        # Too many redirects are a fault of the site, not a forbidden URL.
        return _upstream(f"cannot download the URL: {error}", "upstream_failed", 502)
    return refused_address(error) if isinstance(error, errors.URLRefusedError) else error


def refused_address(error: errors.URLRefusedError, param: str = "url") -> RefusedAddressError:
    """Convert an SSRF error to an API error with the name of the request field."""
    return status_error(
        RefusedAddressError, error.message, code="url_refused", status=400, param=param
    )


def failure_of_status(status: int) -> errors.APIStatusError:
    """Return the API error for an HTTP error status of the URL."""
    if status in (404, 410):
        return status_error(
            errors.NotFoundError,
            f"the URL was not found (status {status})",
            code="gone",
            param="url",
        )
    return _upstream(f"the URL returned status {status}", "upstream_failed", 502)


def _upstream(message: str, code: str, status: int) -> errors.InternalServerError:
    return status_error(errors.InternalServerError, message, code=code, status=status, param="url")


def _is_out_of_reach(error: errors.PolymuxError) -> bool:
    """Check whether no connection was established; excludes rejected URLs and TLS errors."""
    if isinstance(error, errors.RequestTimeoutError):
        return error.limit == "connect"
    return isinstance(error, errors.ConnectError) and not isinstance(error, errors.TLSError)


def _start(draft: TempFile) -> bytes:
    with draft.path.open("rb") as file:
        return file.read(_LOOKED_AT_BYTES)


def is_page(start: bytes) -> bool:
    r"""Check whether a file begins like a web page or playlist, also after leading text.

    Example:
        >>> from polymux.downloads.url_inputs import is_page
        >>> is_page(b"\xef\xbb\xbf<!-- a comment --><p>"), is_page(b"Wait...<html><body>")
        (True, True)
        >>> is_page(b"ID3\x03\0 of <html> in a tag"), is_page(b"no page")
        (False, False)
    """
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        start = start.decode("utf-16", "replace").encode()
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(_PAGES):
        return True
    return NO_TEXT.search(text) is None and _PAGE_TAG.search(text) is not None


def _name_of(fetched: Fetched) -> str:
    """Return the last path segment of the final URL; for people, never used in a path."""
    segment = unquote(urlsplit(fetched.url).path.rpartition("/")[2], errors="replace")
    return display_name(segment)[:200] or "file"


#: Operations that accept a URL instead of a file, and the field of the file.
FIELDS = {"convert_to_mp3": "file", "transcribe": "audio"}


class AddressedBackend(DelegatingBackend):
    """Adds URL inputs to a backend: downloads the file before the request takes a slot.

    Delegates everything else to `inner`.
    """

    def __init__(self, inner: Backend, url_fetcher: UrlFetcher) -> None:
        super().__init__(inner)
        self._url_fetcher = url_fetcher

    def refuse(self, work: OperationRequest) -> None:
        """Ask `inner`, with a placeholder file instead of the URL."""
        self._inner.refuse(_filled(work, _NO_FILE) if _lacks_file(work) else work)

    async def estimate(self, work: OperationRequest) -> Estimate:
        """Return an unknown estimate before the file is downloaded."""
        if _lacks_file(work):
            return Estimate()
        return await self._inner.estimate(work)

    def prepared(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        return self._brought(work, sink) if _lacks_file(work) else self._inner.prepared(work, sink)

    @asynccontextmanager
    async def _brought(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AsyncIterator[OperationRequest]:
        drafts: list[TempFile] = []
        try:
            file = await self._url_fetcher.fetch(
                str(work.values["url"]), sink.part(0.0, _SHARE), drafts
            )
            yield _filled(work, file)
        finally:
            for draft in drafts:
                draft.discard(beside=True)

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Run `inner`; the download already used the first part of the progress."""
        brought = work.operation in FIELDS and work.values.get("url") is not None
        return await self._inner.run(work, sink.part(_SHARE, 1.0) if brought else sink)


_NO_FILE = Upload(Path(os.devnull), "", "", 0)


def _lacks_file(work: OperationRequest) -> bool:
    """Check whether the request has a URL instead of a file."""
    field = FIELDS.get(work.operation)
    return field is not None and field not in work.values


def _filled(work: OperationRequest, file: Upload) -> OperationRequest:
    return replace(work, values={**work.values, FIELDS[work.operation]: file})


def addressed(backend: Backend, url_fetcher: UrlFetcher) -> Backend:
    """Add URL inputs to a backend if one of its operations accepts them."""
    return (
        backend if backend.operations.isdisjoint(FIELDS) else AddressedBackend(backend, url_fetcher)
    )
