"""Real backends for every field of the kind ``url``; only what follows a download is scripted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.downloads.backend import DownloadBackend
from polymux.downloads.downloader import PageDownloader
from polymux.downloads.settings import DownloadSettings
from polymux.downloads.url_inputs import UrlFetcher, addressed
from polymux.engines.chat.backend import ChatBackend
from polymux.engines.diffusion.backend import DiffusionBackend
from polymux.engines.diffusion.engine import ESTIMATE
from polymux.engines.media.engine import LOAD_PICTURES, MEASURE_PICTURE, REMUX
from polymux.fetch.fetcher import FetchPolicy
from polymux.models.roles import ROLES, ModelAssignment
from polymux.service.model import OperationResult, OutputFile
from polymux.summaries.backend import SummaryBackend
from polymux.summaries.settings import SummaryOptions
from polymux.upstreams.song_search.backend import SongSearchBackend
from polymux.upstreams.song_search.settings import SongSearchSettings

from support.services import Scripted
from support.url_corpus import PUBLIC

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest, ProgressSink

#: The only proxy that requests may use.
PROXY = f"http://{PUBLIC}:80"
_CHAT = {
    "id": "chat-1", "object": "chat.completion", "created": 1, "model": "scripted",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "seen"}}],
}  # fmt: skip
_FACTS = {"width": 64, "height": 64, "channels": 3, "bits": 8}


class Doing(Scripted):
    """A backend with a valid result for every operation."""

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        def made(kind: str) -> OutputFile:
            return self.file(sink, self.data, kind, "a")

        operation = work.operation
        if operation == LOAD_PICTURES:
            return OperationResult(
                {"pictures": [{**_FACTS, "pixels": made("application/octet-stream")}]}
            )
        if operation in ("generate_image", "upscale_image"):
            return OperationResult([made("image/png")])
        if operation in ("convert_to_mp3", REMUX):
            return OperationResult({"response": made("video/mp4")})
        answers: dict[str, Any] = {
            "chat": _CHAT,
            "free_chat": {"response": "seen"},
            "transcribe": {"text": "heard"},
            MEASURE_PICTURE: _FACTS,
            ESTIMATE: {"seconds": 0.0, "memory_bytes": 0, "why": ""},
        }
        return OperationResult(answers[operation])


def backends(folder: Path) -> list[Backend]:
    """Backends for all operations with a URL field. They may reach only the public side."""
    policy = FetchPolicy(allowed_networks=("203.0.113.0/24",))
    pages = PageDownloader(
        DownloadSettings(max_concurrency=4, total_s=60), policy, folder / "drafts", 3600
    )
    url_fetcher = UrlFetcher(policy, 1 << 20, pages=pages)
    media = Doing("media", ("convert_to_mp3",), max_concurrency=8)
    chats = Doing("chats", ("chat", "free_chat"), max_concurrency=8)
    painter = Doing("diffusion", ("generate_image", "upscale_image"), max_concurrency=8)
    cast = ModelAssignment(
        {role: {"path": "none", "name": one.model} for role, one in ROLES.items()}, {}
    )
    search = SongSearchSettings(
        ("itunes",), itunes_url=f"http://{PUBLIC}", allowed_proxies=(PROXY,), cache_bytes=0
    )
    return [
        addressed(media, url_fetcher),
        addressed(Doing("speech", ("transcribe",), max_concurrency=8), url_fetcher),
        ChatBackend(chats, media, models=["scripted"], sees=True, policy=policy),
        DownloadBackend(pages, media),
        SummaryBackend(pages, SummaryOptions(model="scripted")),
        DiffusionBackend(painter, media, cast, url_fetcher, non_commercial=True),
        SongSearchBackend(search),
    ]
