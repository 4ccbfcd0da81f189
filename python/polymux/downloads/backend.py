"""The ``download_video`` and ``download_music`` operations."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.text import shown
from polymux.engines.media.engine import PAGE_COVER, PAGE_TAGS, REMUX
from polymux.service.backend import Backend
from polymux.service.errors import status_error
from polymux.service.model import OperationResult
from polymux.upstreams.song_search.songs import search_text

if TYPE_CHECKING:
    from polymux.downloads.downloader import PageDownloader
    from polymux.service.model import OperationRequest, ProgressSink

_HEIGHT = re.compile(r"([0-9]{3,4})p?", re.ASCII)
#: Share of a download's progress; building the output file is the rest.
_SHARE = 0.9


class DownloadBackend(Backend):
    """Runs ``download_video`` and ``download_music`` (`contracts.md` 11 and 13).

    Args:
        media: Backend of the media engine; combines the downloaded files into one.
    """

    def __init__(self, pages: PageDownloader, media: Backend) -> None:
        self.name = "download"
        self.operations = frozenset(("download_video", "download_music"))
        self.max_concurrency = pages.settings.max_concurrency
        #: Also used by routes that accept page URLs as input files.
        self.pages = pages
        self._media = media

    def refuse(self, work: OperationRequest) -> None:
        """Reject an empty or too long query before a job is created."""
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
    """Parse a resolution into lines; None means the best (`contracts.md` G.2.9)."""
    text = str(resolution or "").strip().lower()
    if text in ("", "best"):
        return None
    matched = _HEIGHT.fullmatch(text)
    if matched is not None and 144 <= int(matched[1]) <= 4320:
        return int(matched[1])
    raise status_error(
        errors.BadRequestError,
        f"resolution: invalid (got {shown(resolution)}, allowed 144 to 4320 lines such as 720p, or "
        "best)",
        code="invalid_request",
        param="resolution",
    )
