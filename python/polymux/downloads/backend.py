"""Videos and music out of pages, as operations."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.media.engine import PAGE_COVER, PAGE_TAGS, REMUX
from polymux.service.backend import Backend
from polymux.service.errors import status_error
from polymux.service.model import OperationResult
from polymux.upstreams.song_search.songs import search_text

if TYPE_CHECKING:
    from polymux.downloads.downloader import PageDownloader
    from polymux.service.model import OperationRequest, ProgressSink

_HEIGHT = re.compile(r"([0-9]{3,4})p?", re.ASCII)
#: Of a download's progress, what the page is; the rest is the making of one file.
_SHARE = 0.9


class DownloadBackend(Backend):
    """``download_video`` and ``download_music`` (`contracts.md` 11 and 13).

    Args:
        pages: What fetches.
        media: What makes one file of what came: a backend of the media engine.
    """

    def __init__(self, pages: PageDownloader, media: Backend) -> None:
        self.name = "download"
        self.operations = frozenset(("download_video", "download_music"))
        self.max_concurrency = pages.settings.max_concurrency
        #: What fetches; doors ask it for files too.
        self.pages = pages
        self._media = media

    def refuse(self, work: OperationRequest) -> None:
        """Queries that say nothing, or too much: no job is made for them."""
        if work.operation == "download_music":
            search_text(str(work.values["query"]), "query")

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        if work.operation == "download_video":
            return await self._video(work, sink)
        return await self._music(work, sink)

    async def _video(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        height = height_of(work.values.get("resolution"))
        asked = self.pages.downloaded(
            str(work.values["url"]), "video", sink.part(0, _SHARE), height=height
        )
        async with asked as found:
            files = {
                f"file_{number}": await asyncio.to_thread(found.upload, one)
                for number, one in enumerate(found.files)
            }
            step = replace(
                work,
                operation=REMUX,
                values={**files, "files": len(files), "title": found.title or "video"},
                given=frozenset(),
            )
            return await self._media.run(step, sink.part(_SHARE, 1))

    async def _music(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        query = search_text(str(work.values["query"]), "query")
        wanted, is_address = self.pages.settings.search(query)
        asked = self.pages.downloaded(
            wanted, "audio", sink.part(0, _SHARE), cover=True, is_search=not is_address
        )
        async with asked as found:
            sink.log(f"found: {found.title}" if found.title else "found a recording without title")
            values: dict[str, Any] = {
                "file": await asyncio.to_thread(found.upload, found.files[-1]),
                "vbr_quality": 0,
                PAGE_TAGS: dict(found.tags),
            }
            if found.cover is not None:
                values[PAGE_COVER] = await asyncio.to_thread(found.upload, found.cover)
            step = replace(work, operation="convert_to_mp3", values=values, given=frozenset(values))
            product = await self._media.run(step, sink.part(_SHARE, 1))
        output = {"response": product.output["response"]}
        return OperationResult(output, product.version, product.metrics)


def height_of(resolution: Any) -> int | None:
    """Lines of a resolution; None for the best (`contracts.md` G.2.9)."""
    text = str(resolution or "").strip().lower()
    if text in ("", "best"):
        return None
    matched = _HEIGHT.fullmatch(text)
    if matched is not None and 144 <= int(matched[1]) <= 4320:
        return int(matched[1])
    raise status_error(
        errors.BadRequestError,
        "resolution: lines from 144 to 4320, such as 720p, or best",
        code="invalid_request",
        param="resolution",
    )
