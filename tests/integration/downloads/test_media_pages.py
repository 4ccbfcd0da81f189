"""Pages with media: yt-dlp runs in a process whose only connection is the SSRF proxy."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import Client, errors
from polymux.downloads.settings import DownloadSettings
from polymux.server.settings.settings import CompatSettings
from replicate.exceptions import ModelError
from support.fetches import answering, wait_until
from support.http_server import Server
from support.media_url_server import allowing, downloaders
from support.polymux_server import CONVERT, PolymuxServer, form
from support.programs import run
from support.replicate_compat import of

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange


MODEL_NAME = "polymux/convert-to-mp3"


def served(folder: Path, *sites: Server, **download: Any) -> PolymuxServer:
    settings = DownloadSettings(**download)
    return PolymuxServer(folder / "s", fetch=allowing(*sites), download=settings)


def test_a_video_that_its_site_calls_a_page(site_folder: Path, tmp_path: Path) -> None:
    """The content decides the type (U45 in docs/development/testing.md)."""
    data = (site_folder / "low.mp4").read_bytes()
    with (
        Server(answering(200, data, "Content-Type: text/html; charset=utf-8")) as site,
        served(tmp_path, site) as server,
        Client(server.url, server.key) as client,
    ):
        sound = polymux.probe(client.convert_to_mp3(url=site.url("/page")).read())
        video = polymux.probe(client.download_video(site.url("/page")).read())
        assert list((tmp_path / "s" / "drafts").iterdir()) == []
    assert [one.type for one in sound.streams] == ["audio"]
    assert {one.type for one in video.streams} == {"audio", "video"}
    assert sound.duration_s == pytest.approx(3, abs=0.3)


def probed(kept: Path) -> tuple[dict[str, Any], float]:
    entries = "stream=codec_type,codec_name,height:format=duration"
    words = ("-v", "error", "-show_entries", entries, "-of", "json")
    found = json.loads(run("ffprobe", *words, kept).stdout)
    return {one["codec_type"]: one for one in found["streams"]}, float(found["format"]["duration"])


@pytest.mark.parametrize(
    ("path", "codec"), [("/hls/list.m3u8", "mpeg2video"), ("/dash/list.mpd", "mpeg4")],
)  # fmt: skip
def test_a_video_is_one_file_that_plays(
    site: Server, tmp_path: Path, path: str, codec: str
) -> None:
    """Separate video and audio are merged, and segments of a list are joined."""
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        made = client.download_video(site.url(path))
        kept = made.save(tmp_path / "video.bin")
        assert made.content_type in ("video/mp4", "video/matroska", "video/x-matroska")
        assert list((tmp_path / "s" / "drafts").iterdir()) == []
    streams, duration_s = probed(kept)
    assert {one["codec_name"] for one in streams.values()} == {codec, "aac"}
    assert duration_s == pytest.approx(3, abs=0.4)
    run("ffmpeg", "-v", "error", "-xerror", "-i", kept, "-f", "null", "-")


#: Master lists with two heights. In LARGE, both exceed the requested height and the larger file is
#: missing.
HEIGHTS = "#EXTM3U\n" + "#EXT-X-STREAM-INF:BANDWIDTH={},RESOLUTION={}\n{}\n" * 2
BOTH = HEIGHTS.format(300_000, "192x144", "low.m3u8", 900_000, "320x240", "hls/list.m3u8")
LARGE = HEIGHTS.format(300_000, "640x480", "absent.m3u8", 900_000, "320x240", "hls/list.m3u8")


@pytest.mark.parametrize(
    ("text", "resolution", "height"),
    [(BOTH, "200", 144), (LARGE, "180p", 240)],
)
def test_the_best_at_or_below_what_was_asked_for(
    site: Server, site_folder: Path, tmp_path: Path, text: str, resolution: str, height: int
) -> None:
    """If none is small enough, the next larger one is used."""
    (site_folder / "lists.m3u8").write_text(text)
    low = site_folder / "low.m3u8"
    if not low.exists():
        run("ffmpeg", "-v", "error", "-i", site_folder / "low.mp4", "-c:v", "mpeg2video",
            "-f", "hls", "-hls_playlist_type", "vod", low)  # fmt: skip
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        made = client.download_video(site.url("/lists.m3u8"), resolution=resolution)
        kept = made.save(tmp_path / "video.bin")
    assert probed(kept)[0]["video"]["height"] == height


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/page/missing.mp4", 404, "gone"),
        ("/find/nothing-at-all", 404, "gone"),
    ],
)
def test_pages_that_lead_nowhere(
    site: Server, site_folder: Path, tmp_path: Path, path: str, status: int, code: str
) -> None:
    with served(tmp_path, site) as server, Client(server.url, server.key, retry=0) as client:
        if path.startswith("/find"):
            site.script.__self__.found = "missing.mp4"  # type: ignore[attr-defined]
        with pytest.raises(errors.APIStatusError) as caught:
            client.convert_to_mp3(url=site.url(path))
        error = caught.value
        assert (error.status, error.code) == (status, code), error
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


def test_pages_are_refused_where_nothing_reads_them(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site, enabled=False) as server, Client(server.url, server.key) as client:
        with pytest.raises(errors.APIStatusError, match=r"polymux\[download\]") as caught:
            client.convert_to_mp3(url=site.url("/page/high.mp4"))
        assert caught.value.status == 415
        with pytest.raises(errors.NoBackendError):
            client.download_music("song")


def test_cancelled_its_processes_are_gone(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        body, headers = form(("url", site.url("/page/slow/high.mp4")))
        begun = server.ask("POST", CONVERT, body, [*headers, ("Prefer", "respond-async")])
        wait_until(lambda: any(one.target == "/slow/high.mp4" for one in site.requests))
        assert len(downloaders()) == 2  # The downloader and its proxy.
        assert client.predictions.cancel(begun.json()["id"]).status == "canceled"
        wait_until(lambda: downloaders() == [])
        wait_until(lambda: list((tmp_path / "s" / "drafts").iterdir()) == [])


def test_cancelled_while_the_page_is_read(tmp_path: Path) -> None:
    """yt-dlp cannot be interrupted while it waits for a site, so its process is killed."""
    begun = threading.Event()

    async def drips(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>")
        while True:
            await exchange.send(b" ")
            await asyncio.sleep(0.1)
            begun.set()

    with (
        Server(drips) as web,
        served(tmp_path, web) as server,
        Client(server.url, server.key) as client,
    ):
        body = {"url": web.url("/page")}
        job = server.json("/api/v1/downloadvideo", body, [("Prefer", "respond-async")]).json()["id"]
        assert begun.wait(20)
        assert len(downloaders()) == 2
        assert client.predictions.cancel(job).status == "canceled"
        wait_until(lambda: downloaders() == [])
        wait_until(lambda: list((tmp_path / "s" / "drafts").iterdir()) == [])
        assert len(web.requests) == 1


def test_through_the_replicate_api(site: Server, tmp_path: Path) -> None:
    compat = CompatSettings(replicate=True)
    asked = {"file": site.url("/page/high.mp4")}
    with PolymuxServer(tmp_path / "s", fetch=allowing(site), compat=compat) as server:
        made = of(server).run(MODEL_NAME, input=asked)
        address = str(made["response"] if isinstance(made, dict) else made)
        data = server.ask("GET", address.removeprefix(server.url), key=None).body
        assert polymux.probe(data).duration_s > 2
        with pytest.raises(ModelError):
            of(server).run(MODEL_NAME, input={"file": "http://127.0.0.1:1/page"})
        listed = server.ask("GET", "/api/v1/predictions").json()["results"]
        assert [one.get("error_code") for one in listed] == ["url_refused", None]
        assert list((tmp_path / "s" / "drafts").iterdir()) == []
