"""Files that lie at addresses, brought here: as if they had been sent."""

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
from polymux._util.text import NO_TEXT, display_name
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

#: Of a job's progress, what bringing its file is.
_SHARE = 0.3
_LOOKED_AT_BYTES = 64 << 10
#: How pages and lists of parts begin, whatever their first element is, which may be a comment. All
#: else is for the media engine to judge: no container of media begins so.
_PAGES = (b"<", b"#extm3u")
#: Of a page that begins with text, as where a program says something before it.
_PAGE_TAG = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|script)[\s>]")
#: What sites answer whom they do not know, or ask from where they let few in. Pages are asked for
#: with the operator's cookies, by the operator's proxy, and as by a browser where that is wanted.
_NOT_FOR_EVERYBODY = (401, 403, 429)
#: Of the reader of pages, what says no more than the fetch before it.
_NO_BETTER = ("upstream_failed", "unsupported_media")


class RefusedAddressError(errors.URLRefusedError, errors.BadRequestError):
    """An address of a request that leads where it may not, with the field that it came in."""


class UrlFetcher:
    """Fetches what strangers name, so many at once.

    Args:
        policy: What may be fetched beyond the public Internet.
        max_bytes: Longest file.
        total_s: Longest time for one.
        at_once: How many; others wait.
        pages: For what turns out to be a page. Default: pages are refused.
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
        """The file at an address, or the sound of the page there.

        Args:
            url: As it was asked for.
            sink: For progress, and room.
            drafts: What was made is added, for whoever asks to discard.

        Raises:
            URLRefusedError: It leads where it may not.
            APIStatusError: There is nothing, too much, or nobody answers.
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
                sink.log(f"fetched {fetched.body_bytes} bytes from the address")
                name = _name_of(fetched)
                return Upload(draft.path, name, fetched.content_type, fetched.body_bytes)
        if self._pages is None:
            raise status_error(
                errors.APIStatusError,
                "there is a page at this address, and no media file: pages are read where "
                "polymux[download] is installed",
                code="unsupported_media",
                status=415,
                param="url",
            )
        draft.discard()
        try:
            return await self._pages.audio(url, sink, drafts)
        except errors.APIStatusError as error:
            if first is not None and error.code in _NO_BETTER:
                sink.log(f"as a page it cannot be read either: {error}")
                raise first from None
            raise

    async def _fetched(
        self, url: str, draft: TempFile, sink: ProgressSink
    ) -> Fetched | errors.PolymuxError:
        """What lies there; or a failure that the reader of pages may not meet with.

        Raises:
            PolymuxError: Any other.
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
    """A fetch's failure, as whoever named the address is told (`contracts.md` G.1)."""
    if isinstance(error, errors.AnswerTooLargeError):
        return status_error(
            errors.RequestTooLargeError, f"what lies at the address is too large: {error}",
            param="url",
        )  # fmt: skip
    if isinstance(error, errors.RequestTimeoutError):
        return _upstream("the address did not answer in time", "upstream_timeout", 504)
    if isinstance(error, (errors.TransportError, errors.DecodeError)):
        return _upstream(f"the address cannot be fetched: {error}", "upstream_failed", 502)
    if isinstance(error, errors.URLRefusedError) and error.limit == "redirects":
        # A site in a circle is no address that may not be asked for.
        return _upstream(f"the address cannot be fetched: {error}", "upstream_failed", 502)
    return refused_address(error) if isinstance(error, errors.URLRefusedError) else error


def refused_address(error: errors.URLRefusedError, param: str = "url") -> RefusedAddressError:
    """The guard's word about an address of a request, with the field concerned."""
    return status_error(
        RefusedAddressError, error.message, code="url_refused", status=400, param=param
    )


def failure_of_status(status: int) -> errors.APIStatusError:
    """An address that answers, and has nothing."""
    if status in (404, 410):
        return status_error(
            errors.NotFoundError,
            f"there is nothing at this address (status {status})",
            code="gone",
            param="url",
        )
    return _upstream(f"the address answers with status {status}", "upstream_failed", 502)


def _upstream(message: str, code: str, status: int) -> errors.InternalServerError:
    return status_error(errors.InternalServerError, message, code=code, status=status, param="url")


def _is_out_of_reach(error: errors.PolymuxError) -> bool:
    """Whether nobody was reached; where an address may not be asked for is another matter."""
    if isinstance(error, errors.RequestTimeoutError):
        return error.limit == "connect"
    return isinstance(error, errors.ConnectError) and not isinstance(error, errors.TLSError)


def _start(draft: TempFile) -> bytes:
    with draft.path.open("rb") as file:
        return file.read(_LOOKED_AT_BYTES)


def is_page(start: bytes) -> bool:
    r"""Whether a file begins as a page or a list of parts; also a page behind a text.

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
    """The last segment of where the redirects ended; for people, never part of a path."""
    segment = unquote(urlsplit(fetched.url).path.rpartition("/")[2], errors="replace")
    return display_name(segment)[:200] or "file"


#: Operations that take an address in a file's place, and the file's field.
FIELDS = {"convert_to_mp3": "file", "transcribe": "audio"}


class AddressedBackend(DelegatingBackend):
    """A backend whose file may lie at an address: then it is brought before it has a place.

    What else it does is done as without.

    Args:
        inner: What does the work.
        url_fetcher: What brings files.
    """

    def __init__(self, inner: Backend, url_fetcher: UrlFetcher) -> None:
        super().__init__(inner)
        self._url_fetcher = url_fetcher

    def refuse(self, work: OperationRequest) -> None:
        """As the one that does it, with a file in the address's place."""
        self._inner.refuse(_filled(work, _NO_FILE) if _lacks_file(work) else work)

    async def estimate(self, work: OperationRequest) -> Estimate:
        """Nobody knows, before the file is here."""
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
        """Does it; of its progress, the rest."""
        brought = work.operation in FIELDS and work.values.get("url") is not None
        return await self._inner.run(work, sink.part(_SHARE, 1.0) if brought else sink)


_NO_FILE = Upload(Path(os.devnull), "", "", 0)


def _lacks_file(work: OperationRequest) -> bool:
    """Whether there is an address in the place of its file."""
    field = FIELDS.get(work.operation)
    return field is not None and field not in work.values


def _filled(work: OperationRequest, file: Upload) -> OperationRequest:
    return replace(work, values={**work.values, FIELDS[work.operation]: file})


def addressed(backend: Backend, url_fetcher: UrlFetcher) -> Backend:
    """A backend that takes addresses too, where one of its operations has any."""
    return (
        backend if backend.operations.isdisjoint(FIELDS) else AddressedBackend(backend, url_fetcher)
    )
