"""`Local` as anybody makes it: what reaches out is there, without a backend made by hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.downloads.settings import DownloadSettings
from polymux.fetching import FetchPolicy
from polymux.server.settings import EngineSettings
from polymux.summaries.settings import SummaryOptions
from support.chat_model import model_path
from support.commands import run

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import Server


def policy(site: Server) -> FetchPolicy:
    return FetchPolicy(allowed_hosts=(site.authority,))


def test_a_video(site: Server, tmp_path: Path) -> None:
    with polymux.Local(fetch=policy(site)) as local:
        made = local.download_video(site.url("/page/low.mp4"), resolution="144p")
        path = made.save(tmp_path / "video.mp4")
    found = polymux.probe(path)
    assert found.duration_s == pytest.approx(3.0, abs=0.2)
    assert {one.type for one in found.streams} == {"video", "audio"}


def test_a_video_of_the_other_face(site: Server) -> None:
    async def made() -> bytes:
        async with polymux.AsyncLocal(fetch=policy(site)) as local:
            video = await local.download_video(site.url("/page/low.mp4"))
            return await video.aread()

    assert asyncio.run(made())[4:8] == b"ftyp"


def test_music(site: Server, tmp_path: Path) -> None:
    """The search is the operator's, who is the caller here."""
    search = DownloadSettings(music_search=site.url("/find/{query}"))
    with polymux.Local(fetch=policy(site), download=search) as local:
        path = local.download_music("Blue Danube").save(tmp_path / "music.mp3")
    assert polymux.probe(path).duration_s == pytest.approx(3.0, abs=0.2)
    assert site.requests[0].target == "/find/Blue%20Danube"


def test_a_summary(site: Server) -> None:
    """By a chat model of this machine, a small one."""
    chat = EngineSettings("chat", {"model": str(model_path()), "context": 1024}, threads=1)
    short = SummaryOptions(words=10)
    with polymux.Local(fetch=policy(site), engines={"chat": chat}, summaries=short) as local:
        text = local.summarize_video(site.url("/page/high.mp4")).text
    assert text.strip()
    assert len(text) < 1000
    assert site.requests[-1].target == "/captions.vtt"


def test_options_of_summaries_are_heard(site: Server) -> None:
    chat = EngineSettings("chat", {"model": str(model_path()), "context": 1024}, threads=1)
    wishes = SummaryOptions(model="nobody")
    told = pytest.raises(polymux.NoBackendError, match="nobody")
    with polymux.Local(engines={"chat": chat}, summaries=wishes) as local, told:
        local.summarize_video(site.url("/page/high.mp4"))
    assert site.requests == []


def test_loopback_is_nobodys_without_leave(site: Server, tmp_path: Path) -> None:
    """Nor the command's, whose user has said nothing of this machine's network."""
    with polymux.Local() as local, pytest.raises(polymux.BadRequestError) as caught:
        local.download_video(site.url("/page/low.mp4"))
    assert caught.value.code == "url_refused"
    words = ["download-video", site.url("/page/low.mp4"), "--local", "--save", "kept"]
    done = run(*words, cwd=tmp_path, code=None)
    assert done.returncode != 0
    assert b"the URL is refused" in done.stderr
    assert list((tmp_path / "kept").glob("*")) == []
    assert site.requests == []
