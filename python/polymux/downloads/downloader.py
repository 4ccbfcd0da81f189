"""Media out of pages: for each a confined process with one way out, and the files it leaves."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.downloads.engine import FETCH_PAGE
from polymux.downloads.proxy import LOOK_UP, GuardedProxy
from polymux.downloads.url_inputs import failure_of, refused_address
from polymux.downloads.ytdlp import site_failed
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.fetch.fetcher import ajudged
from polymux.service.errors import engine_failed, status_error
from polymux.service.model import LOCAL, OperationRequest, Upload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from polymux.downloads.settings import DownloadSettings
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.model import ProgressSink
    from polymux.service.temporary_files import TempFile

_FAMILY = "polymux.downloads.engine:DownloadEngine"
_LOAD_S = 60.0
_SILENCE_S = 60.0
#: What its process may hold, and each that it starts: pages unpack to any size, and lists of parts
#: name any number. deno has half a gigabyte before its first line.
_DATA_BYTES = 2 << 30
#: Of a file, more than is taken: the downloader's own watch speaks first.
_MORE_BYTES = 1 << 20
#: Of all that comes: pages, scripts, and what was looked at and left.
_PAGES_BYTES = 64 << 20
#: In yt-dlp's `smuggle_url`.
_OWN_WORDS = "__youtubedl_smuggle"
_READABLE = (
    "/usr",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/mime.types",
    "/proc",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
)


@dataclass(frozen=True)
class Downloaded:
    """What a page has shown.

    Attributes:
        files: One, or the picture's and the sound's; in a folder that goes with the download.
        title: As the page calls it; for people.
        duration_s: As the page says; None where it does not.
        captions: The language of captions, where the file is those; else empty.
        chapters: Seconds and title of each, as the page says.
        tags: What the page says of a recording: ``title``, ``artist``, ``album``, ``date``.
        cover: The picture that stands for it, where that was wanted and there is one; else None.
    """

    files: tuple[Path, ...]
    title: str
    duration_s: float | None
    captions: str = ""
    chapters: tuple[tuple[float, str], ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    cover: Path | None = None

    def upload(self, path: Path) -> Upload:
        """One of its files as if it had been sent, by the page's name for it.

        That is what errors call it: where it lies for now says nothing to anybody.
        """
        name = f"{self.title or 'media'}{path.suffix}"
        return Upload(path, name, "", path.stat().st_size)


class PageDownloader:
    """Fetches what pages show, so many at once.

    Args:
        settings: The operator's.
        policy: What may be reached beyond the public Internet.
        folder: Where it may write: of the file system of the store's files.
        max_s: Longest media, in seconds.

    Raises:
        InvalidRequestError: The variable of the operator's proxy has no address of one.
    """

    def __init__(
        self, settings: DownloadSettings, policy: FetchPolicy, folder: Path, max_s: float
    ) -> None:
        self.settings = settings
        self._policy = policy
        self._folder = folder
        self._max_s = max_s
        self._places = asyncio.Semaphore(settings.max_concurrency)
        self._upstream_proxy = settings.upstream_proxy()

    @property
    def has_proxy(self) -> bool:
        """Whether pages are reached by way of the operator's own proxy."""
        return self._upstream_proxy is not None

    @asynccontextmanager
    async def downloaded(
        self,
        url: str,
        kind: str,
        sink: ProgressSink,
        *,
        height: int | None = None,
        cover: bool = False,
        is_search: bool = False,
    ) -> AsyncIterator[Downloaded]:
        """What a page shows; its files go at the end.

        Args:
            url: The page's, or a search of yt-dlp's.
            kind: ``"video"``, ``"audio"``, or ``"captions"``: those, and the sound where there are
                none.
            sink: For progress.
            height: The best not above it, in lines; else the best.
            cover: Whether the picture that stands for it is wanted too. Default: False.
            is_search: It is a search of yt-dlp's, and no address to be judged. What the search asks
                and finds is judged at the way out, like all that pages lead to. Default: False.

        Raises:
            APIStatusError: The site does not give it; with its reason.
        """
        url = plain(url)
        if not is_search:
            try:
                # Its process would be told no as well, seconds later.
                await ajudged(url, policy=self._policy, limits=LOOK_UP)
            except errors.PolymuxError as error:
                raise failure_of(error) from None
        async with self._places:
            folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._folder))
            try:
                values = {"url": url, "kind": kind, "height": height, "cover": cover}
                yield await self._in_time(folder, values, sink)
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _in_time(
        self, folder: Path, values: Mapping[str, Any], sink: ProgressSink
    ) -> Downloaded:
        try:
            async with asyncio.timeout(self.settings.total_s):
                return await self._fetched(folder, values, sink)
        except TimeoutError:
            raise status_error(
                errors.InternalServerError,
                f"this took longer than the {self.settings.total_s:.0f} s that a download may",
                code="upstream_timeout",
                status=504,
                param="url",
            ) from None

    async def _fetched(
        self, folder: Path, values: Mapping[str, Any], sink: ProgressSink
    ) -> Downloaded:
        max_bytes = 2 * self.settings.max_bytes + _PAGES_BYTES
        async with GuardedProxy(
            self._policy, max_bytes, upstream_proxy=self._upstream_proxy
        ) as proxy:
            # Of a length that a Unix socket's address can have, wherever the store is.
            place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="polymux-"))
            process = None
            try:
                await proxy.start(place / "out")
                process = await asyncio.to_thread(self._process, folder, place / "out", proxy)
                work = OperationRequest(FETCH_PAGE, "", "", values, frozenset(values), LOCAL)
                product = await process.run(work, sink)
            except errors.APIStatusError as error:
                loaded = process is not None and process.health().state != "failed"
                at_the_site = error.code == "upstream_failed" or (
                    loaded and error.code == "engine_failed"
                )
                if at_the_site and proxy.refusals:
                    words = errors.URLRefusedError(proxy.refusals[0])
                    raise refused_address(words) from None
                if at_the_site and error.code == "engine_failed":
                    # Pages of strangers bring it down in ways that nobody has listed.
                    raise site_failed("the downloader failed at what the site sends") from None
                raise
            finally:
                if process is not None:
                    await process.close()
                await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        return self._checked(folder, product.output)

    def _process(self, folder: Path, socket_path: Path, proxy: GuardedProxy) -> EngineBackend:
        settings = self.settings
        package = Path(__file__).parents[1]
        own = {sys.prefix, sys.base_prefix, str(package.parent), *(one for one in sys.path if one)}
        options: dict[str, Any] = {
            "folder": os.fspath(folder),
            "max_bytes": settings.max_bytes,
            "max_s": self._max_s,
        }
        if settings.cookies is not None:
            # yt-dlp writes what sites set into its file: the operator's own stays as it is.
            options["cookies"] = os.fspath(shutil.copy(settings.cookies, folder / "cookies"))
        bundle = self._policy.certificate_bundle
        if bundle is not None:
            options["certificates"] = os.path.realpath(bundle)
            own.add(options["certificates"])
        confinement = {
            "readable": [*_READABLE, *sorted(own)],
            "writable": [os.fspath(folder)],
            "network": True,
            "outlet": {
                "socket": os.fspath(socket_path), "url": proxy.url, "port": proxy.port
            },
            "limits": {
                "CORE": 0,
                "DATA": _DATA_BYTES,
                "FSIZE": settings.max_bytes + _MORE_BYTES,
                "NOFILE": 512,
            },
        }  # fmt: skip
        supervision = Supervision(
            threads=1, load_s=_LOAD_S, silence_s=_SILENCE_S, confinement=confinement
        )
        return EngineBackend("download", _FAMILY, (FETCH_PAGE,), options, supervision=supervision)

    def _checked(self, folder: Path, output: Mapping[str, Any]) -> Downloaded:
        """What the process says, where it is so: plain files in its folder."""
        files = tuple(folder / str(name) for name in output["files"])
        cover = folder / str(output["cover"]) if output.get("cover") else None
        for path in (*files, *([] if cover is None else [cover])):
            if path.parent != folder or not stat.S_ISREG(path.lstat().st_mode):
                raise engine_failed("the downloader names a file that is none")
        if not 1 <= len(files) <= 2:
            raise engine_failed("the downloader has fetched nothing")
        duration = output.get("duration_s")
        known = isinstance(duration, (int, float)) and duration > 0
        chapters = tuple(
            (float(start_s), str(title)) for start_s, title in output.get("chapters") or ()
        )
        return Downloaded(
            files,
            str(output.get("title") or ""),
            duration if known else None,
            str(output.get("captions") or ""),
            chapters,
            {str(name): str(value) for name, value in (output.get("tags") or {}).items()},
            cover,
        )

    async def audio(self, url: str, sink: ProgressSink, drafts: list[TempFile]) -> Upload:
        """The sound of what a page shows, as a file that was sent."""
        async with self.downloaded(url, "audio", sink) as found:
            size_bytes = found.files[-1].stat().st_size
            draft = sink.draft(size_bytes)
            drafts.append(draft)
            found.files[-1].rename(draft.path)
        sink.log(f"fetched {size_bytes} bytes from the page")
        name = f"{found.title or 'audio'}{found.files[-1].suffix}"
        return Upload(draft.path, name, "", size_bytes)


def plain(url: str) -> str:
    """An address, or a search, without the fragment that yt-dlp would take for its own words.

    By such it tells itself what to ask with, as another site's name for ``Referer``. Fragments of
    other kinds are left: some sites have the name of what they show there.

    Example:
        >>> from polymux.downloads.downloader import plain
        >>> plain("http://a.example/#__youtubedl_smuggle=%7B%7D"), plain("http://a.example/#/show/1")
        ('http://a.example/', 'http://a.example/#/show/1')
    """
    before, mark, fragments = url.partition("#")
    # Whitespace within is left out by parsers of addresses.
    return before if mark and _OWN_WORDS in "".join(fragments.split()) else url


def is_installed() -> bool:
    return find_spec("yt_dlp") is not None
