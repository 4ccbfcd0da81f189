"""Operations that download, by every interface: the HTTP API, both clients, `Local`, commands."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.downloads.backend import DownloadBackend
from polymux.downloads.downloader import PageDownloader
from polymux.downloads.settings import DownloadSettings
from polymux.engines.process.in_process import InProcessBackend
from polymux.runtime.settings import EngineSettings, StoreSettings
from polymux.summaries.backend import SummaryBackend
from polymux.summaries.settings import SummaryOptions
from support.chat_model import model_path
from support.commands import Shell, environment, run
from support.media_url_server import Writer, allowing
from support.polymux_server import PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.service.backend import Backend
    from support.http_server import Server


def backends(site: Server, folder: Path) -> list[Backend]:
    policy = allowing(site)
    settings = DownloadSettings(music_search=site.url("/find/{query}"))
    pages = PageDownloader(settings, policy, folder / "drafts", 3600)
    media = InProcessBackend("media", "media", ["convert_to_mp3"], max_concurrency=2)
    return [media, DownloadBackend(pages, media), SummaryBackend(pages, SummaryOptions()), Writer()]


@pytest.fixture
def server(site: Server, tmp_path: Path) -> Iterator[PolymuxServer]:
    store = StoreSettings(tmp_path / "s")
    with PolymuxServer(store.folder, lambda: backends(site, store.folder)) as running:
        running.answer_within_s = 60.0
        yield running


def test_a_video(server: PolymuxServer, site: Server, tmp_path: Path) -> None:
    """With the command (which uses the sync client), the async client and `AsyncLocal`."""
    url = site.url("/low.mp4")
    words = ["download-video", url, "--resolution", "144p", "--output-dir", "kept"]
    run(*words, cwd=tmp_path, **environment_of(server))
    [kept] = (tmp_path / "kept").iterdir()
    first = kept.read_bytes()
    assert polymux.probe(kept).duration_s == pytest.approx(3, abs=0.2)

    async def by_async_client() -> bytes:
        async with polymux.AsyncClient(server.url, server.key) as client:
            return await (await client.download_video(url, resolution="144p")).aread()

    assert asyncio.run(by_async_client()) == first
    place = tmp_path / "async"
    place.mkdir()

    async def by_async_local() -> bytes:
        async with polymux.AsyncLocal(place, backends=backends(site, place)) as local:
            return (await local.download_video(url, resolution="144p")).read()

    assert asyncio.run(by_async_local()) == first


def test_music_and_a_summary_by_their_commands(
    server: PolymuxServer, site: Server, tmp_path: Path
) -> None:
    given = environment_of(server)
    run("download-music", "Blue Danube", "--output-dir", "kept", cwd=tmp_path, **given)
    [kept] = (tmp_path / "kept").iterdir()
    assert polymux.probe(kept).duration_s == pytest.approx(3.0, abs=0.2)
    done = run("summarize-video", site.url("/page/low.mp4"), cwd=tmp_path, **given)
    assert done.stdout.decode().strip() == "A river carries stones."


def environment_of(server: PolymuxServer) -> dict[str, str]:
    return {"POLYMUX_BASE_URL": server.url, "POLYMUX_API_KEY": server.key}


def test_music(site: Server, tmp_path: Path) -> None:
    search = DownloadSettings(music_search=site.url("/find/{query}"))
    with polymux.Local(fetch=allowing(site), download=search) as local:
        path = local.download_music("Blue Danube").save(tmp_path / "music.mp3")
    assert polymux.probe(path).duration_s == pytest.approx(3.0, abs=0.2)
    assert site.requests[0].target == "/find/Blue%20Danube"


def test_a_summary(site: Server) -> None:
    chat = EngineSettings("chat", {"model": str(model_path()), "context": 1024}, threads=1)
    short = SummaryOptions(words=10)
    with polymux.Local(fetch=allowing(site), engines={"chat": chat}, summaries=short) as local:
        text = local.summarize_video(site.url("/page/high.mp4")).text
    assert text.strip()
    assert len(text) < 1000
    assert site.requests[-1].target == "/captions.vtt"


def test_options_of_summaries_are_heard(site: Server) -> None:
    chat = EngineSettings("chat", {"model": str(model_path()), "context": 1024}, threads=1)
    wishes = SummaryOptions(model="nobody")
    no_backend = pytest.raises(polymux.NoBackendError, match="nobody")
    with polymux.Local(engines={"chat": chat}, summaries=wishes) as local, no_backend:
        local.summarize_video(site.url("/page/high.mp4"))


#: The command, which may also reach a local test site.
COMMAND = """
import functools, sys
from polymux import cli
from polymux.fetch.fetcher import FetchPolicy
from polymux.local import sync_local
policy = FetchPolicy(allowed_hosts=(sys.argv[1],))
sync_local.Local = functools.partial(sync_local.Local, fetch=policy)
sys.exit(cli.main(["convert-to-mp3", *sys.argv[2:]]))
"""


def converted(site: Server, path: str, *words: str, cwd: Path, code: int = 0) -> tuple[bytes, str]:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, site.authority, "--url", site.url(path), *words],
        cwd=cwd, env=environment(cwd), capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stderr.decode()
    return done.stdout, done.stderr.decode()


def test_a_conversion_by_its_command(site: Server, site_folder: Path, tmp_path: Path) -> None:
    """The URL gives the same result as the local file. A server in the environment is not used."""
    wanted = polymux.convert_to_mp3(site_folder / "tone.wav", bitrate="64k").read()
    words = ("--bitrate", "64k")
    assert converted(site, "/tone.wav", *words, cwd=tmp_path)[1].startswith(
        f"{site.url('/tone.wav')} -> tone.mp3  ("
    )
    assert (tmp_path / "tone.mp3").read_bytes() == wanted
    assert "--overwrite" in converted(site, "/tone.wav", cwd=tmp_path, code=1)[1]
    assert converted(site, "/tone.wav", "-o", "-", *words, cwd=tmp_path)[0] == wanted
    output = converted(site, "/page/low.mp4", "--output-dir", "made", "--json", cwd=tmp_path)[0]
    first, last = map(json.loads, output.splitlines())
    address = site.url("/page/low.mp4")
    assert first == {"status": "converted", "input": address, "output": "made/low.mp3"}
    assert last == {"status": "summary", "converted": 1, "failed": 0, "skipped": 0}
    assert polymux.probe(tmp_path / "made" / "low.mp3").duration_s == pytest.approx(3, abs=0.2)
    assert "404" in converted(site, "/none.wav", cwd=tmp_path, code=5)[1]
    words = ("--timeout", "0.5", "-o", "late.mp3")
    assert "0.5" in converted(site, "/slow/tone.wav", *words, cwd=tmp_path, code=8)[1]
    assert {one.name for one in tmp_path.iterdir()} == {"tone.mp3", "made"}


def test_a_conversion_that_is_interrupted(
    site: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    words = [sys.executable, "-c", COMMAND, site.authority, "--url", site.url("/slow/tone.wav")]
    with Shell(*words, cwd=tmp_path) as terminal:
        terminal.wait_for(r"\d  processing")
        terminal.press("\x03")
        terminal.wait_for("polymux: ")
        assert terminal.end() == 130
    assert "polymux predictions" not in terminal.text
    assert [one.name for one in tmp_path.rglob("*")] == ["temporary"]
