"""A server with every operation that accepts a media URL, and checks for leftovers."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from polymux.downloads.backend import DownloadBackend
from polymux.downloads.downloader import PageDownloader
from polymux.downloads.settings import DownloadSettings
from polymux.downloads.url_inputs import UrlFetcher, addressed
from polymux.engines.process.in_process import InProcessBackend
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.backend import Backend
from polymux.service.model import OperationResult
from polymux.summaries.backend import SummaryBackend
from polymux.summaries.settings import SummaryOptions

from support.fetches import wait_until
from support.polymux_server import Answer, PolymuxServer, form
from support.services import Scripted

if TYPE_CHECKING:
    from typing import Self

    from polymux.service.model import OperationRequest, ProgressSink

    from support.http_server import Server

#: Operations that fetch a file themselves and leave web pages to the downloader.
FILES = {"convert_to_mp3": "/api/v1/convert2mp3", "transcribe": "/api/v1/modelhost/stt"}
#: Operations that always use the downloader.
PAGES = {
    "download_video": "/api/v1/downloadvideo",
    "summarize_video": "/api/v1/videosummarization",
}
OPERATIONS = (*FILES, *PAGES)
#: Searches for a page. In these tests the search finds a path of the test site.
MUSIC = "download_music"
_MAX_S = 3600.0


def allowing(*sites: Server) -> FetchPolicy:
    """A policy that allows downloads from these local sites."""
    return FetchPolicy(allowed_hosts=tuple(one.authority for one in sites))


def fetched(server: PolymuxServer, operation: str, url: str) -> Answer:
    if operation in FILES:
        body, headers = form(("url", url))
        return server.ask("POST", FILES[operation], body, headers)
    if operation == MUSIC:
        return server.json("/api/v1/downloadmusic", {"query": urlsplit(url).path.lstrip("/")})
    return server.json(PAGES[operation], {"url": url})


class Writer(Backend):
    name = "writer"
    operations = frozenset(("chat",))
    models = ("small",)

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        message = {"role": "assistant", "content": "A river carries stones."}
        return OperationResult({"choices": [{"index": 0, "message": message}]})


class MediaUrlServer(PolymuxServer):
    """Downloads from local sites. Media conversion is real; every other operation is scripted."""

    answer_within_s = 120.0

    def __init__(
        self,
        folder: Path,
        *sites: Server,
        max_bytes: int = 1 << 20,
        bundle: Path | None = None,
        **download: Any,
    ) -> None:
        self._policy = FetchPolicy(
            allowed_hosts=tuple(one.authority for one in sites), certificate_bundle=bundle
        )
        if sites:
            download.setdefault("music_search", sites[0].url("/{query}"))
        self._download = DownloadSettings(max_bytes=max_bytes, **download)
        self.speech = Scripted("speech", ("transcribe",), max_concurrency=4)
        super().__init__(folder / "s", self._backends)

    def __enter__(self) -> Self:
        # Other local processes use the usual temporary folder.
        self._temporary = tempfile.TemporaryDirectory(prefix="t-")
        self._usual_place, tempfile.tempdir = tempfile.tempdir, self._temporary.name
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        try:
            super().__exit__(*exception)
        finally:
            tempfile.tempdir = self._usual_place
            self._temporary.cleanup()

    def _backends(self) -> list[Backend]:
        drafts = self.settings.store.folder / "drafts"
        pages = PageDownloader(self._download, self._policy, drafts, _MAX_S)
        url_fetcher = UrlFetcher(
            self._policy,
            self._download.max_bytes,
            total_s=self._download.total_s,
            pages=pages,
        )
        media = InProcessBackend("media", "media", ["convert_to_mp3"], max_concurrency=4)
        return [
            addressed(media, url_fetcher),
            addressed(self.speech, url_fetcher),
            DownloadBackend(pages, media),
            SummaryBackend(pages, SummaryOptions()),
            Writer(),
        ]

    def fetches(self, operation: str, url: str) -> Answer:
        return fetched(self, operation, url)

    def made(self, operation: str, url: str) -> bytes:
        return self.file(self.fetches(operation, url))

    def file(self, answer: Answer) -> bytes:
        assert answer.status == 200, answer.body
        address = str(answer.json()["response"]).removeprefix(self.url)
        return self.ask("GET", address, key=None).body

    def failure(self, operation: str, url: str) -> tuple[int, str, str]:
        """Status, code and message of a request that must fail and leave nothing behind."""
        answer = self.fetches(operation, url)
        assert answer.status >= 400, answer.body
        self.has_nothing_left()
        error = answer.json()
        return answer.status, str(error.get("code", "")), str(error["error"])

    def has_nothing_left(self) -> None:
        """Wait until no temporary file, downloader or egress proxy is left."""
        drafts = self.settings.store.folder / "drafts"
        wait_until(lambda: not any(drafts.iterdir()) and not downloaders())
        assert list(Path(self._temporary.name).iterdir()) == []


def downloaders() -> list[int]:
    """The process ids of the downloaders and egress proxies below this process."""
    found = [os.getpid()]
    for pid in found:
        with suppress(OSError):  # The process may have ended.
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(one) for one in _text(task).split()]
    words = {pid: _text(Path(f"/proc/{pid}/cmdline")) for pid in found[1:]}
    return [pid for pid, line in words.items() if "polymux.downloads.engine" in line]


def _text(path: Path) -> str:
    """The text of a file in /proc, or an empty text if the process has ended."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


class Watched:
    """Measures the peak memory of a downloader (`max_bytes`) during the block."""

    def __init__(self) -> None:
        self.max_bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.05):
            for pid in downloaders():
                self.max_bytes = max(self.max_bytes, _status_bytes(pid, "VmHWM"))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class Grown:
    """Measures how much the memory of a process grows at most during the block.

    Args:
        process: The id of a process of this user. Default: this process.

    Attributes:
        bytes: The growth of the resident memory; 0 before the end of the block.
    """

    bytes = 0

    def __init__(self, process: int | None = None) -> None:
        self._process = "self" if process is None else str(process)

    def __enter__(self) -> Self:
        # Reset the peak (VmHWM); see proc(5).
        Path(f"/proc/{self._process}/clear_refs").write_text("5")
        self._usual_bytes = _status_bytes(self._process, "VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = _status_bytes(self._process, "VmHWM") - self._usual_bytes


def _status_bytes(process: object, name: str) -> int:
    """A number from /proc/PID/status in bytes, or 0 if the process has ended."""
    for line in _text(Path(f"/proc/{process}/status")).splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0
