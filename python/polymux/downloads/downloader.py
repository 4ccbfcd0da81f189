"""Download media from web pages, each in a sandboxed process behind an SSRF-checking proxy."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
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
from polymux.engines.process.sandbox import python_paths
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
#: Maximum memory of the process and of each child. Pages can decompress to any size and playlists
#: can have any number of entries. deno allocates half a gigabyte at its start.
_DATA_BYTES = 2 << 30
#: File size limit above `max_bytes`: yt-dlp's progress hook reports the excess first.
_MORE_BYTES = 1 << 20
#: Traffic allowance for pages, scripts and rejected formats.
_PAGES_BYTES = 64 << 20
#: Marks a smuggled fragment, see yt-dlp's `smuggle_url`.
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
    """The files and metadata downloaded from a page.

    Attributes:
        files: One file, or one for video and one for audio; deleted at the end of the download.
        title: From the page; for people.
        duration_s: From the page; None if missing.
        captions: Language of the captions if `files` contains captions, else empty.
        chapters: Start in seconds and title of each, from the page.
        tags: From the page: ``title``, ``artist``, ``album``, ``date``.
        cover: Cover image; None if not requested or not available.
    """

    files: tuple[Path, ...]
    title: str
    duration_s: float | None
    captions: str = ""
    chapters: tuple[tuple[float, str], ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    cover: Path | None = None

    def upload(self, path: Path) -> Upload:
        """Return one of the files as an upload named after the page's title.

        Errors show that name, because the temporary path means nothing to clients.
        """
        name = f"{self.title or 'media'}{path.suffix}"
        return Upload(path, name, "", path.stat().st_size)


class PageDownloader:
    """Downloads media from web pages, with a limit of concurrent downloads.

    Args:
        policy: Allowed hosts beyond the public Internet.
        folder: Writable folder on the file system of the store, so files can be renamed into it.
        max_s: Maximum duration of media, in seconds.

    Raises:
        InvalidRequestError: The environment variable of the operator's proxy has no valid URL.
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
        """Whether an operator's proxy is configured."""
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
        """Download the media of a page; its files are deleted at the end of the context.

        Args:
            url: The page's URL, or a search of yt-dlp.
            kind: ``"video"``, ``"audio"``, or ``"captions"``: the captions, or the audio of a video
                without captions.
            height: Maximum height in lines. Default: the best available.
            cover: Also download the cover image. Default: False.
            is_search: `url` is a yt-dlp search and not a URL to check. The proxy checks every
                connection of a search and of a page. Default: False.

        Raises:
            APIStatusError: The site did not provide the media; contains its reason.
        """
        url = plain(url)
        if not is_search:
            try:
                # The proxy would reject the URL too, but seconds later.
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
                f"the download timed out (limit {self.settings.total_s:.0f} s)",
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
            # In the temporary directory, because the path of a Unix socket has a length limit.
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
                    # Untrusted pages can crash the process in many ways.
                    raise site_failed("the downloader failed to process the site's data") from None
                raise
            finally:
                if process is not None:
                    await process.close()
                await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        return self._checked(folder, product.output)

    def _process(self, folder: Path, socket_path: Path, proxy: GuardedProxy) -> EngineBackend:
        settings = self.settings
        own = python_paths()
        options: dict[str, Any] = {
            "folder": os.fspath(folder),
            "max_bytes": settings.max_bytes,
            "max_s": self._max_s,
        }
        if settings.cookies is not None:
            # yt-dlp writes the cookies that sites set into its file: give it a copy.
            options["cookies"] = os.fspath(shutil.copy(settings.cookies, folder / "cookies"))
        bundle = self._policy.certificate_bundle
        if bundle is not None:
            options["certificates"] = os.path.realpath(bundle)
            own.add(options["certificates"])
        confinement = {
            "readable": [*_READABLE, *sorted(own)],
            "writable": [os.fspath(folder)],
            "network": True,
            "families": [socket.AF_INET, socket.AF_INET6],
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
        """Validate the output of the process: regular files directly in its folder."""
        files = tuple(folder / str(name) for name in output["files"])
        cover = folder / str(output["cover"]) if output.get("cover") else None
        for path in (*files, *([] if cover is None else [cover])):
            if path.parent != folder or not stat.S_ISREG(path.lstat().st_mode):
                raise engine_failed(
                    "the downloader returned a name that is not a regular file in its folder"
                )
        if not 1 <= len(files) <= 2:
            raise engine_failed(f"the downloader returned {len(files)} files (expected: 1 or 2)")
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
        """Download the audio of a page into a draft, as an upload."""
        async with self.downloaded(url, "audio", sink) as found:
            size_bytes = found.files[-1].stat().st_size
            draft = sink.draft(size_bytes)
            drafts.append(draft)
            found.files[-1].rename(draft.path)
        sink.log(f"downloaded {size_bytes} bytes from the page")
        name = f"{found.title or 'audio'}{found.files[-1].suffix}"
        return Upload(draft.path, name, "", size_bytes)


def plain(url: str) -> str:
    """Remove a fragment that yt-dlp would interpret as its internal data from a URL or search.

    With such fragments yt-dlp passes request options to itself, such as a ``Referer``. Other
    fragments stay: some sites identify their media by the fragment.

    Example:
        >>> from polymux.downloads.downloader import plain
        >>> plain("http://a.example/#__youtubedl_smuggle=%7B%7D"), plain("http://a.example/#/show/1")
        ('http://a.example/', 'http://a.example/#/show/1')
    """
    before, mark, fragments = url.partition("#")
    # yt-dlp ignores whitespace inside URLs.
    return before if mark and _OWN_WORDS in "".join(fragments.split()) else url


def is_installed() -> bool:
    return find_spec("yt_dlp") is not None
