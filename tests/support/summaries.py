"""A server that summarizes the pages of a site, with a model that records its prompts."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.downloads.downloader import PageDownloader
from polymux.downloads.settings import DownloadSettings
from polymux.engines.base import Cancelled, Engine, Output
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.backend import Backend
from polymux.service.model import OperationResult
from polymux.summaries.backend import SummaryBackend
from polymux.summaries.settings import SummaryOptions

from support.polymux_server import PolymuxServer
from support.video_site import CAPTIONS, PAGE, Site

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import EngineSink, Request, Token
    from polymux.service.model import OperationRequest, ProgressSink

    from support.http_server import Exchange, Server

SUMMARIZE = "/api/v1/videosummarization"


class Model(Backend):
    """Records its prompts and mentions them; transcribes every recording as one sentence."""

    def __init__(self) -> None:
        self.name = "model"
        self.operations = frozenset(("chat", "transcribe"))
        self.models = ("small",)
        self.asked: list[OperationRequest] = []
        self.heard: list[Any] = [{"timestamp": [0.0, 2.0], "text": "Somebody speaks."}]
        #: The operation that waits for `hold`, and the number of its first call that waits.
        self.waiting = ("chat", 1)
        self.hold = asyncio.Event()
        self.hold.set()
        self.ended: list[str] = []
        self.window: int | None = None
        self.finish_reason = "stop"

    def window_tokens(self) -> int | None:
        return self.window

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        self.asked.append(work)
        number = sum(one.operation == work.operation for one in self.asked)
        if work.operation == self.waiting[0] and number >= self.waiting[1]:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.ended.append("cancelled")
                raise
        if work.operation == "transcribe":
            assert work.values["audio"].path.stat().st_size > 1000
            return OperationResult({"text": "Somebody speaks.", "chunks": self.heard})
        message = {"role": "assistant", "content": f" summary {number} "}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return OperationResult({"choices": [choice]})

    @property
    def chats(self) -> list[dict[str, Any]]:
        return [dict(one.values) for one in self.asked if one.operation == "chat"]

    def material(self, number: int) -> str:
        """The text between the two marks of a prompt, without the title."""
        text = self.chats[number]["messages"][1]["content"]
        mark = re.search("=== [0-9a-f]{16} ===", text)
        assert mark is not None
        material = str(text.split(mark[0])[1]).strip()
        return re.sub(r"^Title: [^\n]+\n\n", "", material)

    def holds(self, server: PolymuxServer, operation: str, number: int = 1) -> None:
        """Make this call and later ones wait."""

        def hold() -> None:
            self.waiting = (operation, number)
            self.hold.clear()

        server.loop.call_soon_threadsafe(hold)

    def step(self, server: PolymuxServer) -> None:

        def step() -> None:
            self.hold.set()
            self.hold.clear()

        server.loop.call_soon_threadsafe(step)


class ToldSite(Site):
    """A site with the test's captions, and its chapters on ``/chapters/NAME``.

    ``/shows/URL`` is a page with the video's captions at that URL. The site's captions are at
    ``/captions.vtt`` and ``/given?id=5``.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.captions: tuple[int, bytes] = 200, CAPTIONS.encode()
        self.chapters = {"Stones": 0, "Sand": 2}

    async def answer(self, exchange: Exchange) -> None:
        kind, _, name = exchange.target.lstrip("/").partition("/")
        if exchange.target in ("/captions.vtt", "/given?id=5"):
            status, data = self.captions
            await exchange.answer(status, data, "Content-Type: text/vtt")
        elif kind == "shows":
            more = f'<track kind="captions" src="{name}" srclang="en">'
            page = PAGE.format(title="A talk", source="/high.mp4", more=more)
            await exchange.answer(200, page.encode(), "Content-Type: text/html; charset=utf-8")
        elif kind == "chapters":
            page = self._chaptered(exchange, name)
            await exchange.answer(200, page.encode(), "Content-Type: text/html")
        else:
            await super().answer(exchange)

    def _chaptered(self, exchange: Exchange, name: str) -> str:
        """A page with chapters marked up for search engines (https://schema.org/Clip)."""
        host = {key.lower(): value for key, value in exchange.headers}["host"]
        starts = [*self.chapters.values(), 3]
        clips = [
            {"@type": "Clip", "name": title, "startOffset": start_s, "endOffset": end_s}
            for (title, start_s), end_s in zip(self.chapters.items(), starts[1:], strict=True)
        ]
        video = {
            "@context": "https://schema.org", "@type": "VideoObject", "name": "Rivers",
            "duration": "PT3S", "contentUrl": f"http://{host}/{name}", "hasPart": clips,
        }  # fmt: skip
        script = f'<script type="application/ld+json">{json.dumps(video)}</script>'
        return f"<!doctype html><html><head><title>t</title>{script}</head></html>"


class Listening(Engine):
    """Transcribes endlessly in its process; files in a folder show its start and end."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self._folder = Path(options["folder"])
        return {}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        sink.report(0.5)
        (self._folder / "began").touch()
        while not token.cancelled:
            time.sleep(0.01)
        (self._folder / "cancelled").touch()
        raise Cancelled


class Served(PolymuxServer):
    """A server with that model and a site's pages; `options` are those of summaries."""

    def __init__(self, folder: Path, site: Server, **options: Any) -> None:
        self.model = Model()
        self._policy = FetchPolicy(allowed_hosts=(site.authority,))
        self._options = SummaryOptions(**options)
        super().__init__(folder / "s", self._backends)

    def _backends(self) -> list[Backend]:
        folder = self.settings.store.folder / "drafts"
        pages = PageDownloader(DownloadSettings(), self._policy, folder, 3600)
        return [self.model, SummaryBackend(pages, self._options)]
